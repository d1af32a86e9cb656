#include "server/debug_pages.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "async/deadlines.h"
#include "async/event.h"
#include "base/strings.h"
#include "endpoints/responses.h"
#include "endpoints/sources.h"
#include "telemetry/cpu_profile.h"
#include "telemetry/log.h"

namespace keelson::server {
namespace {

using endpoints::ExchangePtr;

constexpr std::string_view kRoot = "/debug/pprof/";
constexpr int kProfileSeconds = 30;
constexpr int kProfileSecondsMax = 300;
constexpr std::size_t kFlagBytesMax = 1024;

constexpr std::string_view kIndex = R"(<html>
<head>
<title>/debug/pprof/</title>
</head>
<body>
/debug/pprof/
<ul>
<li><a href="profile?seconds=30">profile</a>: CPU profile in the format of pprof. The parameter seconds says for how long.
Resolve it with the binary: pprof keelson profile</li>
<li><a href="threads">threads</a>: the threads of the process, their state and the CPU time they used</li>
<li><a href="malloc">malloc</a>: the allocator's account of the heap, as XML (malloc_info)</li>
<li><a href="symbol">symbol</a>: tells pprof that addresses are resolved with the binary</li>
</ul>
</body>
</html>
)";

http::Response Page(std::string_view content_type, std::string_view body) {
  http::Response response;
  response.headers.Add("Content-Type", content_type);
  response.headers.Add("X-Content-Type-Options", "nosniff");
  response.body = base::SharedBytes(body);
  return response;
}

http::Response UnknownProfile() {
  http::Response response = endpoints::PlainError(404, "Unknown profile");
  response.headers.Add("X-Go-Pprof", "1");
  return response;
}

// One line a thread: its number, name, state and CPU seconds.
std::string Threads() {
  std::string out = "TID      STATE  CPU SECONDS  NAME\n";
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return out;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/stat");
    std::string stat((std::istreambuf_iterator<char>(file)), {});
    const auto open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;  // it has just ended
    const auto fields = base::Split(std::string_view(stat).substr(close + 2), ' ');
    if (fields.size() < 13) continue;
    const double used =
        (std::atof(std::string(fields[11]).c_str()) + std::atof(std::string(fields[12]).c_str())) / ticks;
    char line[128];
    std::snprintf(line, sizeof(line), "%-8s %-6.*s %11.2f  %s\n", entry->d_name, static_cast<int>(fields[0].size()),
                  fields[0].data(), used, stat.substr(open + 1, close - open - 1).c_str());
    out += line;
  }
  closedir(tasks);
  return out;
}

std::string MallocInfo() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return {};
  malloc_info(0, stream);
  std::fclose(stream);
  std::string out(text, size);
  std::free(text);
  return out;
}

Awaitable<http::Response> ServeCPUProfile(ExchangePtr exchange) {
  int seconds = 0;
  const std::string_view asked = exchange->query.Get("seconds");
  std::from_chars(asked.data(), asked.data() + asked.size(), seconds);
  if (seconds <= 0) seconds = kProfileSeconds;
  if (seconds > kProfileSecondsMax) {
    co_return endpoints::PlainError(
        400, "profile duration exceeds the limit of " + std::to_string(kProfileSecondsMax) + " s");
  }
  auto profile = telemetry::CPUProfile::Start();
  if (!profile) {
    co_return endpoints::PlainError(500, "Could not enable CPU profiling: cpu profiling already in use");
  }
  auto over = std::make_shared<async::Event>();
  if (exchange->http.on_close) exchange->http.on_close([over] { over->Set(); });
  const auto at = base::Clock::Real().Monotonic() + std::chrono::seconds(seconds);
  const auto entry = async::Deadlines::Global().Add(at, [over] { over->Set(); });
  co_await over->Wait();
  http::Response response;
  response.headers.Add("Content-Type", "application/octet-stream");
  response.headers.Add("Content-Disposition", "attachment; filename=\"profile\"");
  response.headers.Add("X-Content-Type-Options", "nosniff");
  // The file itself is compressed, as pprof wants it; this is no content encoding.
  response.body = endpoints::NewGzipSource(endpoints::NewBytesSource(base::SharedBytes::FromString(profile->Finish())));
  co_return response;
}

Awaitable<http::Response> ServeVerbosity(ExchangePtr exchange) {
  const auto answer = [](int code, const std::string& text) {
    http::Response response = Page("text/plain", text + "\n");
    response.status = code;
    return response;
  };
  if (exchange->http.method != "PUT") co_return answer(406, "unsupported http method");
  auto body = co_await exchange->http.body->ReadAll(kFlagBytesMax);
  if (!body.ok()) co_return answer(400, "error reading request body");
  const std::string text(body->view());
  std::int32_t level = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (error != std::errc() || end != text.data() + text.size()) {
    const char* why = error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax";
    co_return answer(400, "error setting flag: failed set klog.logging.verbosity " + text +
                              ": strconv.ParseInt: parsing " + base::GoQuote(text) + ": " + why);
  }
  log::SetVerbosity(level);
  co_return answer(200, "successfully set klog.logging.verbosity to " + text);
}

}  // namespace

void InstallDebugPages(PathMux& mux) {
  mux.Unlisted("/debug/pprof", [](ExchangePtr) -> Awaitable<http::Response> {
    http::Response response;
    response.status = 302;
    response.headers.Add("Content-Type", "text/html; charset=utf-8");
    response.headers.Add("Location", kRoot);
    response.body = base::SharedBytes::Static("<a href=\"/debug/pprof/\">Found</a>.\n\n");
    co_return response;
  });
  mux.UnlistedPrefix(std::string(kRoot), [](ExchangePtr exchange) -> Awaitable<http::Response> {
    const std::string_view name = std::string_view(exchange->http.path).substr(kRoot.size());
    if (name.empty()) co_return Page("text/html; charset=utf-8", kIndex);
    if (name == "profile") co_return co_await ServeCPUProfile(exchange);
    if (name == "symbol") co_return Page("text/plain; charset=utf-8", "num_symbols: 0\n");
    if (name == "threads") co_return Page("text/plain; charset=utf-8", Threads());
    if (name == "malloc") co_return Page("text/xml; charset=utf-8", MallocInfo());
    co_return UnknownProfile();
  });
  mux.Unlisted("/debug/flags/v", ServeVerbosity);
}

}  // namespace keelson::server
