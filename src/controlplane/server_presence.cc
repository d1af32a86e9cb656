#include "controlplane/server_presence.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <set>

#include "async/deadlines.h"
#include "base/random.h"
#include "controlplane/bootstrap.h"
#include "object/json_text.h"
#include "object/time.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

constexpr std::chrono::seconds kInterval{10}, kLeaseDuration{3600}, kCollectInterval{3600};
constexpr std::string_view kSystem = "kube-system", kAuthentication = "extension-apiserver-authentication";
constexpr std::string_view kTracking = "kube-apiserver-legacy-service-account-token-tracking";
constexpr std::chrono::minutes kTrackingInterval{30};  // the config map is not made more often
constexpr std::string_view kPeerAddress = "kubernetes.io/peer-advertise-address";
constexpr std::string_view kIdentityLabel = "apiserver.kubernetes.io/identity";

std::string MicroTime(base::Clock::SystemTime time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - whole).count();
  std::string text = registry::FormatTime(time);  // 2026-01-02T03:04:05Z
  std::string fraction = std::to_string(1'000'000 + micros).substr(1);
  text.pop_back();
  return text + "." + fraction + "Z";
}

std::string JSONList(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ',';
    object::AppendJSONString(out, text);
  }
  return out + "]";
}

void AppendAuthorities(std::string_view pem, std::set<std::string>& seen, std::string& out) {
  BIO* in = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  while (X509* certificate = PEM_read_bio_X509(in, nullptr, nullptr, nullptr)) {
    BIO* text = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(text, certificate);
    char* data = nullptr;
    const long size = BIO_get_mem_data(text, &data);
    std::string block(data, static_cast<std::size_t>(size));
    BIO_free(text);
    const bool over = X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0;
    X509_free(certificate);
    if (!over && seen.insert(block).second) out += block;
  }
  BIO_free(in);
  ERR_clear_error();
}

// Deletes an identity lease: our own when this server stops, others' when they have expired.
Awaitable<void> DeleteLease(std::shared_ptr<registry::Store> leases, std::string name,
                            registry::DeleteOptions options) {
  request::Context context;
  context.info.name_space = kSystem;
  context.info.name = name;
  context.user = LoopbackUser();
  auto deleted = co_await leases->Delete(context, std::string(kSystem), name, std::move(options), nullptr);
  if (!deleted.ok() && deleted.error().reason() != meta::StatusReason::kNotFound)
    log::Error("Could not delete an identity lease", "name", name, "err", deleted.error());
}

}  // namespace

std::string ServerIdentity(std::string_view hostname) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  constexpr std::size_t kBytes = 16;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  // Each part behind its length in two bytes, the larger one first.
  std::string data;
  for (const std::string_view part : {hostname, std::string_view("kube-apiserver")}) {
    data += static_cast<char>(part.size() >> 8);
    data += static_cast<char>(part.size() & 0xff);
    data += part;
  }
  SHA256(reinterpret_cast<const unsigned char*>(data.data()), data.size(), digest);
  std::string text = "apiserver-";
  unsigned buffer = 0, bits = 0;
  for (std::size_t i = 0; i < kBytes; ++i) {
    buffer = buffer << 8 | digest[i];
    for (bits += 8; bits >= 5; bits -= 5) text += kAlphabet[buffer >> (bits - 5) & 31];
    buffer &= (1u << bits) - 1;
  }
  if (bits > 0) text += kAlphabet[buffer << (5 - bits) & 31];
  return text;
}

std::string JoinAuthorities(std::string_view first, std::string_view second) {
  std::set<std::string> seen;
  std::string out;
  AppendAuthorities(first, seen, out);
  AppendAuthorities(second, seen, out);
  return out;
}

ServerPresence::~ServerPresence() { Stop(); }

void ServerPresence::Install(server::GenericAPIServer& server, ResourceStorage& storage) {
  identity_ = ServerIdentity(options_.hostname);
  holder_ = identity_ + "_" + base::Random::Real().UUID();
  config_maps_ = storage.Find("", "configmaps");
  leases_ = storage.Find("coordination.k8s.io", "leases");
  if (auto endpoints = storage.Find("", "endpoints")) {
    reconciler_ = std::make_unique<EndpointReconciler>(kv_, options_.endpoints, endpoints,
                                                       storage.Find("discovery.k8s.io", "endpointslices"));
  }
  if (config_maps_)
    server.AddPostStartHook("start-cluster-authentication-info-controller",
                            [this] { return SyncAuthenticationInfo(); });
  if (config_maps_)
    server.AddPostStartHook("start-legacy-token-tracking-controller", [this] { return SyncTokenTracking(); });
  if (leases_ && options_.identity_lease) {
    server.AddPostStartHook("start-kube-apiserver-identity-lease-controller", [this] { return RenewIdentity(); });
    server.AddPostStartHook("start-kube-apiserver-identity-lease-garbage-collector",
                            [this] { return CollectIdentities(); });
  }
}

void ServerPresence::Start(async::IOPool& io) { done_ = asio::co_spawn(io.Next(), Run(), asio::use_future); }

void ServerPresence::Stop() {
  stopping_ = true;
  wake_.Set();
  if (done_.valid()) done_.wait();
  done_ = {};
}

Awaitable<void> ServerPresence::Run() {
  auto next_collection = base::Clock::Real().Monotonic() + kCollectInterval;
  std::string told;
  while (!stopping_) {
    const std::string error = reconciler_ ? co_await reconciler_->Reconcile() : std::string();
    if (!error.empty() && error != told)
      log::Error("Could not reconcile the endpoints of the service kubernetes", "err", error);
    told = error;
    if (!stopping_) {
      const auto entry =
          async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + kInterval, [this] { wake_.Set(); });
      co_await wake_.Wait();
      wake_.Reset();
    }
    if (stopping_) break;
    co_await SyncAuthenticationInfo();
    co_await SyncTokenTracking();
    co_await RenewIdentity();
    if (base::Clock::Real().Monotonic() < next_collection) continue;
    next_collection = base::Clock::Real().Monotonic() + kCollectInterval;
    co_await CollectIdentities();
  }
  if (reconciler_) {
    if (const std::string error = co_await reconciler_->Remove(); !error.empty())
      log::Error("Could not remove our endpoint", "err", error);
  }
  if (leases_ && options_.identity_lease) co_await DeleteLease(leases_, identity_, {});
}

void ServerPresence::SetClientCA(std::string pem) {
  std::lock_guard lock(mutex_);
  options_.client_ca_pem = std::move(pem);
}

void ServerPresence::SetRequestHeaderCA(std::string pem) {
  std::lock_guard lock(mutex_);
  options_.request_header_ca_pem = std::move(pem);
}

Awaitable<void> ServerPresence::SyncAuthenticationInfo() {
  if (!config_maps_) co_return;
  const MakeObject make = [this](base::Arena& arena, Value existing) -> std::optional<Value> {
    const Value had = existing["data"];
    Value data = Value::Map(arena);
    const auto authorities = [&](std::string_view key, const std::string& pem) {
      const std::string all = JoinAuthorities(had[key].as_string(), pem);
      if (!all.empty()) data.Set(arena, key, Value::String(arena, all));
    };
    std::string client_ca, request_header_ca;
    {
      std::lock_guard lock(mutex_);
      client_ca = options_.client_ca_pem;
      request_header_ca = options_.request_header_ca_pem;
    }
    authorities("client-ca-file", client_ca);
    if (!request_header_ca.empty()) {
      authorities("requestheader-client-ca-file", request_header_ca);
      const auto list = [&](std::string_view key, const std::vector<std::string>& texts) {
        data.Set(arena, key, Value::String(arena, JSONList(texts)));
      };
      list("requestheader-username-headers", options_.username_headers);
      list("requestheader-uid-headers", options_.uid_headers);
      list("requestheader-group-headers", options_.group_headers);
      list("requestheader-extra-headers-prefix", options_.extra_header_prefixes);
      list("requestheader-allowed-names", options_.allowed_names);
    }
    Value merged = had.is_map() ? had.Clone(arena) : Value::Map(arena);
    for (const auto& member : data.members()) merged.Set(arena, member.key, member.value);
    if (!existing.is_null() && merged == had) return std::nullopt;
    Value object = existing.is_null() ? Value::Map(arena) : existing.Clone(arena);
    if (existing.is_null()) {
      object.Set(arena, "kind", "ConfigMap");
      object.Set(arena, "apiVersion", "v1");
      Value metadata = object.EnsureMap(arena, "metadata");
      metadata.Set(arena, "name", kAuthentication);
      metadata.Set(arena, "namespace", kSystem);
    }
    if (!merged.empty()) object.Set(arena, "data", merged);
    return object;
  };
  auto written = co_await UpsertObject(config_maps_, std::string(kSystem), std::string(kAuthentication), make);
  if (!written.ok()) log::Error("Could not write the authentication config map", "err", written.error());
}

// Says since when uses of legacy service account tokens are recorded.
Awaitable<void> ServerPresence::SyncTokenTracking() {
  if (!config_maps_) co_return;
  const auto now = base::Clock::Real().Monotonic();
  const bool may_create = !tracking_made_ || now - *tracking_made_ >= kTrackingInterval;
  bool created = false;
  const MakeObject make = [&](base::Arena& arena, Value existing) -> std::optional<Value> {
    const std::string_view since = existing["data"]["since"].as_string();
    const bool dated = object::ParseTime(std::string(since) + "T00:00:00Z").ok();
    if (existing.is_null() ? !may_create : dated) return std::nullopt;
    created = existing.is_null();
    Value object = created ? Value::Map(arena) : existing.Clone(arena);
    if (created) {
      object.Set(arena, "kind", "ConfigMap");
      object.Set(arena, "apiVersion", "v1");
      Value metadata = object.EnsureMap(arena, "metadata");
      metadata.Set(arena, "name", kTracking);
      metadata.Set(arena, "namespace", kSystem);
    }
    const std::string today = registry::FormatTime(base::Clock::Real().Now()).substr(0, 10);
    object.EnsureMap(arena, "data").Set(arena, "since", Value::String(arena, today));
    return object;
  };
  auto written = co_await UpsertObject(config_maps_, std::string(kSystem), std::string(kTracking), make);
  if (!written.ok()) {
    log::Error("Could not write the config map of token tracking", "err", written.error());
  } else if (created) {
    tracking_made_ = now;
  }
}

Awaitable<void> ServerPresence::RenewIdentity() {
  if (!leases_ || !options_.identity_lease) co_return;
  const MakeObject make = [this](base::Arena& arena, Value existing) -> std::optional<Value> {
    Value object = existing.is_null() ? Value::Map(arena) : existing.Clone(arena);
    object.Set(arena, "kind", "Lease");
    object.Set(arena, "apiVersion", "coordination.k8s.io/v1");
    Value metadata = object.EnsureMap(arena, "metadata");
    metadata.Set(arena, "name", std::string_view(identity_));
    metadata.Set(arena, "namespace", kSystem);
    Value labels = metadata.EnsureMap(arena, "labels");
    labels.Set(arena, kIdentityLabel, "kube-apiserver");
    labels.Set(arena, "kubernetes.io/hostname", std::string_view(options_.hostname));
    if (!options_.peer_address.empty())
      metadata.EnsureMap(arena, "annotations").Set(arena, kPeerAddress, std::string_view(options_.peer_address));
    Value spec = object.EnsureMap(arena, "spec");
    spec.Set(arena, "holderIdentity", std::string_view(holder_));
    spec.Set(arena, "leaseDurationSeconds", Value(static_cast<std::int64_t>(kLeaseDuration.count())));
    spec.Set(arena, "renewTime", Value::String(arena, MicroTime(base::Clock::Real().Now())));
    return object;
  };
  auto written = co_await UpsertObject(leases_, std::string(kSystem), identity_, make);
  if (!written.ok()) log::Error("Could not renew the identity lease", "err", written.error());
}

// Leases of servers that have not been heard of for as long as their lease lasts.
Awaitable<void> ServerPresence::CollectIdentities() {
  if (!leases_ || !options_.identity_lease) co_return;
  auto list = co_await leases_->List(std::string(kSystem), {});
  if (!list.ok()) co_return;
  for (const auto& item : list->items) {
    request::Context context;
    auto lease = leases_->Decode(context.arena, item);
    if (!lease.ok() || lease->Get("metadata", "labels")[kIdentityLabel].as_string() != "kube-apiserver") continue;
    const Value spec = (*lease)["spec"];
    const auto renewed = registry::ParseTime(spec["renewTime"].as_string());
    const std::chrono::seconds lasts(spec["leaseDurationSeconds"].as_int());
    if (renewed && *renewed + lasts > base::Clock::Real().Now()) continue;
    co_await DeleteLease(leases_, std::string(lease->Get("metadata", "name").as_string()),
                         {.uid = std::string(lease->Get("metadata", "uid").as_string())});
  }
}

}  // namespace keelson::controlplane
