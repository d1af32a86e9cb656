// The whole HTTP surface: requests go through the handler chain of a complete server in this process, on an empty store
// in memory, as a cluster administrator. An input is up to kRequestsMax requests, separated by lines "%%": a line with
// method and target, header lines, an empty line, the body. Every request must be answered, with a valid HTTP status,
// within kAnswerTime; the sanitizers judge the rest. KEELSON_FUZZ_TELL=1 prints 5xx responses.
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/command.h"
#include "app/run.h"
#include "app/signals.h"
#include "async/io_pool.h"
#include "base/check.h"
#include "http/message.h"
#include "server/serving.h"

namespace keelson::app {
namespace {

constexpr std::size_t kRequestsMax = 8;
constexpr std::size_t kHeadersMax = 32;
constexpr std::size_t kBodyBytesRead = 4 << 20;  // of one answer; a watch has no end
constexpr std::chrono::seconds kAnswerTime{60};
constexpr int kInputsBetweenCleanings = 200;  // so that the store stays small

class WholeBody final : public http::BodyReader {
 public:
  explicit WholeBody(std::string text) : text_(std::move(text)) {}
  Awaitable<Outcome<http::SharedBytes, http::BodyError>> Read() override {
    co_return http::SharedBytes::FromString(std::exchange(text_, {}));
  }

 private:
  std::string text_;
};

struct Answer {
  int status = 0;
  std::string body;
};

// The bytes of the body that are ready: a source that waits for events (a watch) is not waited for.
std::string ReadNow(http::Response& response) {
  if (const auto* whole = std::get_if<http::SharedBytes>(&response.body)) return std::string(whole->view());
  auto& source = std::get<std::unique_ptr<http::BodySource>>(response.body);
  source->Start([] {});
  std::string text;
  for (auto state = http::BodySource::State::kMore; state == http::BodySource::State::kMore;) {
    std::vector<http::SharedBytes> slices;
    state = source->Pull(1 << 16, slices);
    for (const auto& slice : slices) text += slice.view();
    if (text.size() > kBodyBytesRead) break;
  }
  return text;
}

Awaitable<Answer> Send(http::Handler handler, http::Request request) {
  http::Response response = co_await handler(std::move(request));
  Answer answer{response.status, ReadNow(response)};
  for (auto& ended : response.on_end) ended(answer.body.size(), true);
  co_return answer;
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  KS_CHECK(fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0);
  KS_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

class Target {
 public:
  Target() {
    folder_ = (std::filesystem::temp_directory_path() / "keelson-requests-XXXXXX").string();
    KS_CHECK(mkdtemp(folder_.data()) != nullptr);
    setenv("TMPDIR", folder_.c_str(), 1);  // the server makes its folder there
    std::promise<http::Handler> ready;
    auto handler = ready.get_future();
    thread_ = std::thread([this, &ready] { Serve(ready); });
    handler_ = handler.get();
  }
  void RemoveFolder() const { std::filesystem::remove_all(folder_); }

  Answer Do(http::Request request) {
    auto answer = asio::co_spawn(io_.Next(), Send(handler_, std::move(request)), asio::use_future);
    KS_CHECK(answer.wait_for(kAnswerTime) == std::future_status::ready);
    return answer.get();
  }

 private:
  void Serve(std::promise<http::Handler>& ready) {
    const CommandEnvironment environment{.program = "keelson",
                                         .host = {.hostname = "fuzz", .default_ipv4 = "127.0.0.1"},
                                         .out = std::cout,
                                         .err = std::cerr};
    // Inputs name webhooks, nodes and aggregated servers anywhere: every connection ends at a proxy that is not there.
    const std::string egress = folder_ + "/egress.yaml";
    std::ofstream(egress)
        << "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n";
    for (const std::string_view name : {"cluster", "controlplane"}) {
      std::ofstream(egress, std::ios::app)
          << "- name: " << name << "\n  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: " << folder_
          << "/nobody.sock}}}\n";
    }
    auto prepared =
        PrepareCommand({"--data-dir=:memory:", "--cert-dir=" + folder_, "--bind-address=127.0.0.1",
                        "--secure-port=" + std::to_string(FreePort()), "--embedded-controllers=off", "--v=0",
                        "--io-threads=2", "--request-timeout=20s", "--egress-selector-config-file=" + egress},
                       environment);
    KS_CHECK(std::holds_alternative<CompletedOptions>(prepared));
    const auto ran = Run(std::get<CompletedOptions>(std::move(prepared)), signals_, [&](server::Serving& serving) {
      ready.set_value(serving.InProcessHandler(
          {.name = "fuzz", .groups = {std::string(request::kSystemMasters), std::string(request::kAuthenticated)}}));
    });
    KS_CHECK(ran.ok());
  }

  std::string folder_;
  Signals signals_;
  async::IOPool io_{1};
  http::Handler handler_;
  std::thread thread_;
};

// It runs until the process ends: requests that were answered by their timeout may still hold its objects.
Target& TheTarget() {
  static Target* const target = new Target;
  return *target;
}

// Ends the process without destroying what the server's threads use.
void End() {
  TheTarget().RemoveFolder();
  std::fflush(nullptr);
  std::_Exit(0);
}

std::optional<http::Request> Parse(std::string_view text) {
  http::Request request;
  const auto line_end = text.find('\n');
  const std::string_view line = text.substr(0, line_end);
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  request.method = line.substr(0, space);
  request.target = line.substr(space + 1);
  if (!http::ParseTarget(request.target, &request.path, &request.raw_query)) return std::nullopt;
  request.host = "127.0.0.1";
  std::string_view rest = line_end == std::string_view::npos ? std::string_view() : text.substr(line_end + 1);
  for (std::size_t i = 0; i < kHeadersMax && !rest.empty(); ++i) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view header = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (header.empty()) break;
    const auto colon = header.find(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    std::string_view value = header.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    if (http::CanonicalHeaderKey(header.substr(0, colon)) == "Content-Length") continue;
    request.headers.Add(std::string(header.substr(0, colon)), std::string(value));
  }
  request.headers.Add("Content-Length", std::to_string(rest.size()));
  request.remote_address = "127.0.0.1:1";
  request.body = std::make_unique<WholeBody>(std::string(rest));
  request.received = base::Clock::Real().Monotonic();
  return request;
}

// Deletes objects of earlier inputs; namespaces stay, because no controller removes their finalizer here.
void Clean(Target& target) {
  for (const char* const path :
       {"/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/events",
        "/apis/apps/v1/namespaces/default/deployments", "/api/v1/nodes",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
        "/apis/apiregistration.k8s.io/v1/apiservices?labelSelector=!kube-aggregator.kubernetes.io/automanaged"}) {
    auto request = Parse("DELETE " + std::string(path) + "\n\n{\"gracePeriodSeconds\":0}");
    if (request) (void)target.Do(*std::move(request));
  }
}

}  // namespace
}  // namespace keelson::app

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson;
  static const bool tell = std::getenv("KEELSON_FUZZ_TELL") != nullptr;
  static int inputs = 0;
  app::Target& target = app::TheTarget();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (std::size_t i = 0; i < app::kRequestsMax && !text.empty(); ++i) {
    const auto end = std::min(text.find("\n%%\n"), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 4, text.size()));
    auto request = app::Parse(one);
    if (!request) continue;
    const app::Answer answer = target.Do(*std::move(request));
    KS_CHECK(answer.status >= 100 && answer.status <= 599);
    if (tell && answer.status >= 500)
      std::fprintf(stderr, "%d %.*s\n  %s\n", answer.status, static_cast<int>(one.find('\n')), one.data(),
                   answer.body.substr(0, 400).c_str());
  }
  if (++inputs % app::kInputsBetweenCleanings == 0) app::Clean(target);
  // libFuzzer ends with exit(): again and again, so that it comes before the destruction of most static objects.
  if (std::has_single_bit(static_cast<unsigned>(inputs))) std::atexit(app::End);
  return 0;
}

// The stand-in main of builds without libFuzzer calls it at its end.
extern "C" void KeelsonFuzzEnd() { keelson::app::End(); }
