#include "controlplane/kubelet.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <mutex>

#include "base/read_file.h"
#include "base/strings.h"
#include "endpoints/handlers.h"
#include "webhook/file_text.h"

namespace keelson::controlplane {
namespace {

constexpr std::chrono::seconds kReloadPeriod{60};  // how old certificates in use may be

Outcome<std::string, std::string> ReadFile(const std::string& path) {
  if (path.empty()) return Outcome<std::string, std::string>(std::in_place);
  return base::ReadFile(path);
}

bool IsGlobalUnicast(const asio::ip::address& address) {
  if (address.is_loopback() || address.is_multicast() || address.is_unspecified()) return false;
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    const bool link_local = bytes[0] == 169 && bytes[1] == 254;
    return !link_local && address.to_v4() != asio::ip::address_v4::broadcast();
  }
  if (address.to_v6().is_v4_mapped()) {
    return IsGlobalUnicast(asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()));
  }
  return !address.to_v6().is_link_local();
}

}  // namespace

bool IsProxyableIP(std::string_view address) {
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(std::string(address), error);
  return !error && IsGlobalUnicast(parsed);
}

// The certificate files as they were last read. A failed reload keeps what was there.
struct KubeletConnections::Credentials {
  KubeletClientConfig config;
  std::mutex mutex;
  std::string ca, certificate, key;
  std::shared_ptr<net::TLSClientContext> verified, unverified;
  std::chrono::steady_clock::time_point read_at{};

  Outcome<void, std::string> Load() {
    std::string texts[3];
    const std::string* files[3] = {&config.ca_file, &config.certificate_file, &config.key_file};
    for (int i = 0; i < 3; ++i) {
      auto text = ReadFile(*files[i]);
      if (!text.ok()) return text.error();
      texts[i] = *std::move(text);
    }
    read_at = std::chrono::steady_clock::now();
    if (verified != nullptr && texts[0] == ca && texts[1] == certificate && texts[2] == key) return {};
    net::TLSClientOptions options;
    options.ca_pem = texts[0];
    options.client_cert_pem = texts[1];
    options.client_key_pem = texts[2];
    options.insecure_skip_verify = texts[0].empty();
    auto with = net::TLSClientContext::New(options);
    if (!with.ok()) return with.error().message;
    options.insecure_skip_verify = true;
    options.ca_pem.clear();
    auto without = net::TLSClientContext::New(options);
    if (!without.ok()) return without.error().message;
    verified = *std::move(with);
    unverified = *std::move(without);
    ca = std::move(texts[0]);
    certificate = std::move(texts[1]);
    key = std::move(texts[2]);
    return {};
  }

  std::shared_ptr<net::TLSClientContext> Current(bool verify) {
    std::lock_guard lock(mutex);
    if (std::chrono::steady_clock::now() - read_at > kReloadPeriod) (void)Load();
    return verify ? verified : unverified;
  }
};

KubeletConnections::~KubeletConnections() = default;

Outcome<std::shared_ptr<KubeletConnections>, std::string> KubeletConnections::New(KubeletClientConfig config,
                                                                                  ResourceStorage& storage,
                                                                                  async::IOPool& pool) {
  std::shared_ptr<KubeletConnections> made(new KubeletConnections(std::move(config), storage));
  auto credentials = std::make_shared<Credentials>();
  credentials->config = made->config_;
  if (auto loaded = credentials->Load(); !loaded.ok()) return loaded.error();
  net::TLSClientOptions plain;  // pods and services: not verified, no certificate of ours
  plain.insecure_skip_verify = true;
  auto unverified = net::TLSClientContext::New(plain);
  if (!unverified.ok()) return unverified.error().message;
  enum class Reach { kAnywhere, kProxyable };
  const auto transport = [&](Reach reach, std::function<std::shared_ptr<net::TLSClientContext>()> tls) {
    proxy::TransportOptions options;
    options.tls = std::move(tls);
    if (reach == Reach::kProxyable) options.allow = IsProxyableIP;
    options.dial = made->config_.dial;
    options.dialer = made->config_.dialer;
    return std::make_shared<proxy::Transport>(pool, std::move(options));
  };
  made->kubelets_ = transport(Reach::kAnywhere, [credentials] { return credentials->Current(true); });
  made->proxied_ = transport(Reach::kProxyable, [credentials] { return credentials->Current(true); });
  made->unverified_ = transport(Reach::kAnywhere, [credentials] { return credentials->Current(false); });
  made->anything_ = transport(Reach::kProxyable, [context = *unverified] { return context; });
  made->credentials_ = std::move(credentials);
  return made;
}

endpoints::Task<ConnectionInfo> KubeletConnections::Get(std::string node_name) const {
  auto store = storage_.Find("", "nodes");
  if (!store) co_return meta::NewNotFound({"", "nodes"}, node_name);
  auto object = co_await store->Get("", node_name, "");
  if (!object.ok()) co_return object.error();
  base::Arena arena;
  KS_CO_TRY(const Value node, store->Decode(arena, *object));
  const Value addresses = node.Get("status", "addresses");
  ConnectionInfo info;
  bool found = false;
  for (const std::string& type : config_.preferred_address_types) {
    for (const Value address : addresses.items()) {
      if (found || address["type"].as_string() != type) continue;
      info.host = address["address"].as_string();
      found = true;
    }
  }
  if (!found) {
    std::vector<std::string> known;  // as Go prints a slice of structs
    for (const Value address : addresses.items()) {
      known.push_back("{" + std::string(address["type"].as_string()) + " " +
                      std::string(address["address"].as_string()) + "}");
    }
    co_return meta::NewPlainError("no preferred addresses found; known addresses: [" + base::Join(known, " ") + "]");
  }
  const std::int64_t port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_int();
  info.port = std::to_string(port > 0 ? port : config_.port);
  for (const Value feature : node.Get("status", "declaredFeatures").items()) {
    if (feature.as_string() == "ExtendWebSocketsToKubelet") info.websockets = config_.websockets_to_kubelet;
  }
  co_return info;
}

}  // namespace keelson::controlplane
