#include "controlplane/endpoint_reconciler.h"

#include <algorithm>

#include "codec/protobuf.h"
#include "controlplane/bootstrap.h"
#include "schema/types.h"

namespace keelson::controlplane {
namespace {

constexpr std::int64_t kLeaseSeconds = 15;
constexpr std::string_view kService = "kubernetes", kNamespace = "default";
constexpr std::string_view kSkipMirror = "endpointslice.kubernetes.io/skip-mirror";

std::vector<std::string> AddressesOf(Value endpoints) {
  std::vector<std::string> addresses;
  for (const Value address : endpoints["subsets"][std::size_t{0}]["addresses"].items())
    addresses.emplace_back(address["ip"].as_string());
  return addresses;
}

bool IsIPv6(const std::string& address) { return address.find(':') != std::string::npos; }

Value NewObject(base::Arena& arena, std::string_view api_version, std::string_view kind) {
  Value object = Value::Map(arena);
  object.Set(arena, "kind", kind);
  object.Set(arena, "apiVersion", api_version);
  Value metadata = object.EnsureMap(arena, "metadata");
  metadata.Set(arena, "name", kService);
  metadata.Set(arena, "namespace", kNamespace);
  return object;
}

}  // namespace

const schema::Struct& StoredAddressType() { return schema::types::core_v1::kEndpoints; }

std::vector<std::string> CountedAddresses(std::vector<std::string> present, const std::string& own, std::size_t count) {
  if (std::ranges::find(present, own) != present.end() && present.size() <= count) return present;
  if (std::ranges::find(present, own) == present.end()) present.push_back(own);
  std::ranges::sort(present);
  // The neighbours behind us go first: every server removes others than its neighbour does.
  const auto at = static_cast<std::size_t>(std::ranges::find(present, own) - present.begin());
  std::size_t self = at;
  while (present.size() > std::max<std::size_t>(count, 1)) {
    const std::size_t remove = (self + 1) % present.size();
    present.erase(present.begin() + static_cast<std::ptrdiff_t>(remove));
    if (remove < self) --self;
  }
  return present;
}

Value EndpointReconciler::Ports(base::Arena& arena) const {
  Value port = Value::Map(arena);
  port.Set(arena, "name", "https");
  port.Set(arena, "port", Value(options_.port));
  port.Set(arena, "protocol", "TCP");
  Value ports = Value::List(arena, 1);
  ports.Append(arena, port);
  return ports;
}

Awaitable<std::string> EndpointReconciler::RefreshLease() {
  auto lease = co_await kv_.LeaseGrant(kLeaseSeconds);
  if (!lease.ok()) co_return lease.error().message;
  base::Arena arena;
  Value object = Value::Map(arena);
  object.Set(arena, "kind", "Endpoints");
  object.Set(arena, "apiVersion", "v1");
  object.EnsureMap(arena, "metadata").Set(arena, "generation", Value(++generation_));
  Value address = Value::Map(arena);
  address.Set(arena, "ip", std::string_view(options_.address));
  Value subset = Value::Map(arena);
  subset.EnsureList(arena, "addresses").Append(arena, address);
  object.EnsureList(arena, "subsets").Append(arena, subset);
  std::string bytes;
  codec::EncodeProto(object, StoredAddressType(), bytes);
  kv::TxnRequest put;
  put.success.push_back(kv::Op::Put({.key = options_.etcd_prefix + "/masterleases/" + options_.address,
                                     .value = kv::SharedBytes::FromString(std::move(bytes)),
                                     .lease = lease->id}));
  auto done = co_await kv_.Txn(std::move(put));
  co_return done.ok() ? std::string() : done.error().message;
}

Awaitable<Outcome<std::vector<std::string>, std::string>> EndpointReconciler::Leased() {
  const std::string root = options_.etcd_prefix + "/masterleases/";
  auto range = co_await kv_.Range({.key = root, .range_end = kv::PrefixEnd(root)});
  if (!range.ok()) co_return range.error().message;
  std::vector<std::string> addresses;
  for (const kv::KeyValue& entry : range->kvs) {
    base::Arena arena;
    auto object = codec::DecodeProto(arena, entry.value.view(), StoredAddressType());
    if (!object.ok()) continue;
    for (std::string& address : AddressesOf(object->value)) {
      if (!address.empty()) addresses.push_back(std::move(address));
    }
  }
  std::ranges::sort(addresses);
  co_return addresses;
}

Awaitable<std::string> EndpointReconciler::Write(std::vector<std::string> addresses) {
  const MakeObject endpoints = [&](base::Arena& arena, Value existing) -> std::optional<Value> {
    const Value subsets = existing["subsets"], labels = existing["metadata"]["labels"];
    Value ports = Ports(arena);
    if (!existing.is_null() && labels[kSkipMirror].as_string() == "true" &&
        subsets.size() == (addresses.empty() ? 0 : 1) && AddressesOf(existing) == addresses &&
        (addresses.empty() || subsets[std::size_t{0}]["ports"] == ports)) {
      return std::nullopt;
    }
    Value object = existing.is_null() ? NewObject(arena, "v1", "Endpoints") : existing.Clone(arena);
    object["metadata"].EnsureMap(arena, "labels").Set(arena, kSkipMirror, "true");
    Value list = Value::List(arena);
    if (!addresses.empty()) {
      Value subset = Value::Map(arena);
      for (const std::string& ip : addresses) {
        Value address = Value::Map(arena);
        address.Set(arena, "ip", std::string_view(ip));
        subset.EnsureList(arena, "addresses").Append(arena, address);
      }
      subset.Set(arena, "ports", ports);
      list.Append(arena, subset);
    }
    object.Set(arena, "subsets", list);
    return object;
  };
  if (auto written = co_await UpsertObject(endpoints_, std::string(kNamespace), std::string(kService), endpoints);
      !written.ok()) {
    co_return std::string(written.error().message());
  }
  if (!slices_) co_return std::string();
  const bool ipv6 = !addresses.empty() && std::ranges::all_of(addresses, IsIPv6);
  const MakeObject slice = [&](base::Arena& arena, Value existing) -> std::optional<Value> {
    Value object = NewObject(arena, "discovery.k8s.io/v1", "EndpointSlice");
    object["metadata"].EnsureMap(arena, "labels").Set(arena, "kubernetes.io/service-name", kService);
    object.Set(arena, "addressType", ipv6 ? "IPv6" : "IPv4");
    Value list = Value::List(arena);
    for (const std::string& ip : addresses) {
      if (IsIPv6(ip) != ipv6) continue;
      Value endpoint = Value::Map(arena);
      endpoint.EnsureList(arena, "addresses").Append(arena, std::string_view(ip));
      endpoint.EnsureMap(arena, "conditions").Set(arena, "ready", true);
      list.Append(arena, endpoint);
    }
    object.Set(arena, "endpoints", list);
    object.Set(arena, "ports", addresses.empty() ? Value::List(arena) : Ports(arena));
    if (existing.is_null()) return object;
    const bool same_labels = existing["metadata"]["labels"]["kubernetes.io/service-name"].as_string() == kService;
    if (same_labels && existing["endpoints"] == object["endpoints"] && existing["ports"] == object["ports"])
      return std::nullopt;
    Value changed = existing.Clone(arena);
    changed["metadata"].EnsureMap(arena, "labels").Set(arena, "kubernetes.io/service-name", kService);
    changed.Set(arena, "endpoints", object["endpoints"]);
    changed.Set(arena, "ports", object["ports"]);
    return changed;
  };
  auto written = co_await UpsertObject(slices_, std::string(kNamespace), std::string(kService), slice);
  co_return written.ok() ? std::string() : std::string(written.error().message());
}

Awaitable<std::string> EndpointReconciler::Reconcile() {
  if (options_.type == Type::kNone) co_return std::string();
  if (options_.type == Type::kMasterCount) {
    auto existing = co_await endpoints_->Get(std::string(kNamespace), std::string(kService), "");
    std::vector<std::string> present;
    if (existing.ok()) {
      base::Arena arena;
      if (auto object = endpoints_->Decode(arena, *existing); object.ok() && (*object)["subsets"].size() == 1)
        present = AddressesOf(*object);
    } else if (existing.error().reason() != meta::StatusReason::kNotFound) {
      co_return std::string(existing.error().message());
    }
    co_return co_await Write(
        CountedAddresses(std::move(present), options_.address, static_cast<std::size_t>(options_.master_count)));
  }
  if (std::string error = co_await RefreshLease(); !error.empty()) co_return error;
  auto leased = co_await Leased();
  if (!leased.ok()) co_return leased.error();
  if (leased->empty()) {
    co_return std::string(
        "no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes "
        "Service");
  }
  co_return co_await Write(*std::move(leased));
}

Awaitable<std::string> EndpointReconciler::Remove() {
  if (options_.type == Type::kNone) co_return std::string();
  std::vector<std::string> rest;
  if (options_.type == Type::kLease) {
    kv::TxnRequest remove;
    remove.success.push_back(kv::Op::DeleteRange({.key = options_.etcd_prefix + "/masterleases/" + options_.address}));
    auto done = co_await kv_.Txn(std::move(remove));
    if (!done.ok()) co_return done.error().message;
    auto leased = co_await Leased();
    if (!leased.ok()) co_return leased.error();
    rest = *std::move(leased);
  } else {
    auto existing = co_await endpoints_->Get(std::string(kNamespace), std::string(kService), "");
    if (!existing.ok()) co_return std::string();
    base::Arena arena;
    auto object = endpoints_->Decode(arena, *existing);
    if (!object.ok()) co_return std::string(object.error().message());
    rest = AddressesOf(*object);
    std::erase(rest, options_.address);
  }
  co_return co_await Write(std::move(rest));
}

}  // namespace keelson::controlplane
