#include "controlplane/peer_endpoint_leases.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>

#include "async/deadlines.h"
#include "base/strings.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "controlplane/endpoint_reconciler.h"
#include "net/address.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

constexpr std::int64_t kLeaseSeconds = 15;
constexpr std::chrono::seconds kInterval{10};
constexpr std::chrono::milliseconds kReadyPoll{100};
constexpr std::string_view kIdentityLabel = "apiserverIdentity";

Value NewEndpoints(base::Arena& arena, const PeerEndpointOptions& options, const net::HostPort& address,
                   std::uint64_t port, std::int64_t generation) {
  Value endpoints = Value::Map(arena);
  endpoints.Set(arena, "kind", "Endpoints");
  endpoints.Set(arena, "apiVersion", "v1");
  Value metadata = endpoints.EnsureMap(arena, "metadata");
  metadata.Set(arena, "generation", Value(generation));
  metadata.EnsureMap(arena, "labels").Set(arena, kIdentityLabel, Value::String(arena, options.server_id));
  Value ip = Value::Map(arena);
  ip.Set(arena, "ip", Value::String(arena, address.host));
  Value https = Value::Map(arena);
  https.Set(arena, "name", "https");
  https.Set(arena, "port", Value(static_cast<std::int64_t>(port)));
  https.Set(arena, "protocol", "TCP");
  Value subset = Value::Map(arena);
  subset.EnsureList(arena, "addresses").Append(arena, ip);
  subset.EnsureList(arena, "ports").Append(arena, https);
  endpoints.EnsureList(arena, "subsets").Append(arena, subset);
  return endpoints;
}

}  // namespace

void PeerEndpointLeases::Start(async::IOPool& io) { done_ = asio::co_spawn(io.Next(), Run(), asio::use_future); }

void PeerEndpointLeases::Stop() {
  stopping_ = true;
  wake_.Set();
  if (done_.valid()) done_.wait();
  done_ = {};
}

Awaitable<void> PeerEndpointLeases::WaitFor(std::chrono::milliseconds time) {
  const auto entry = async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + time, [this] { wake_.Set(); });
  co_await wake_.Wait();
  if (!stopping_) wake_.Reset();
}

Awaitable<void> PeerEndpointLeases::Run() {
  while (!stopping_ && options_.ready && !options_.ready()) co_await WaitFor(kReadyPoll);
  std::string told;
  bool written = false;
  while (!stopping_) {
    const std::string error = co_await Update();
    written = written || error.empty();
    if (!error.empty() && error != told) log::Error("Unable to update peer endpoint leases", "err", error);
    told = error;
    co_await WaitFor(kInterval);
  }
  if (!written) co_return;
  if (const std::string error = co_await Remove(); !error.empty())
    log::Error("Unable to remove peer endpoint leases", "err", error);
}

Awaitable<std::string> PeerEndpointLeases::Update() {
  const auto address = net::SplitHostPort(options_.address);
  if (!address) co_return "address " + options_.address + ": missing port in address";
  const auto port = base::ParseUint64(address->port);
  if (!port) co_return "strconv.Atoi: parsing " + base::GoQuote(address->port) + ": invalid syntax";
  auto lease = co_await kv_.LeaseGrant(kLeaseSeconds);
  if (!lease.ok()) co_return lease.error().message;
  base::Arena arena;
  std::string bytes;
  codec::EncodeProto(NewEndpoints(arena, options_, *address, *port, ++generation_), StoredAddressType(), bytes);
  kv::TxnRequest put;
  put.success.push_back(kv::Op::Put(
      {.key = KeyOf(options_.server_id), .value = kv::SharedBytes::FromString(std::move(bytes)), .lease = lease->id}));
  auto done = co_await kv_.Txn(std::move(put));
  co_return done.ok() ? std::string() : done.error().message;
}

Awaitable<std::string> PeerEndpointLeases::Remove() {
  kv::TxnRequest remove;
  remove.success.push_back(kv::Op::DeleteRange({.key = KeyOf(options_.server_id)}));
  auto done = co_await kv_.Txn(std::move(remove));
  co_return done.ok() ? std::string() : done.error().message;
}

Awaitable<Outcome<net::HostPort, std::string>> PeerEndpointLeases::Find(std::string server_id) const {
  if (server_id.empty()) co_return std::string("error getting endpoint for serverId: empty serverId");
  auto range = co_await kv_.Range({.key = KeyOf(server_id)});
  if (!range.ok()) co_return range.error().message;
  if (range->kvs.empty()) co_return std::string("missing port in address");  // as Go splits ""
  base::Arena arena;
  const std::string_view stored = range->kvs.front().value.view();
  const auto object = stored.starts_with('{') ? codec::DecodeJSON(arena, stored, StoredAddressType())
                                              : codec::DecodeProto(arena, stored, StoredAddressType());
  if (!object.ok()) co_return object.error().message;
  if (object->value.Get("metadata", "labels", kIdentityLabel).as_string() != server_id)
    co_return std::string("missing port in address");
  const Value subset = object->value["subsets"][std::size_t{0}];
  const Value port = subset["ports"][std::size_t{0}];
  if (port.is_null()) co_return std::string("missing port in address");
  co_return net::HostPort{.host = std::string(subset["addresses"][std::size_t{0}]["ip"].as_string()),
                          .port = std::to_string(port["port"].as_int())};
}

}  // namespace keelson::controlplane
