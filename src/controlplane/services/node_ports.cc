#include "controlplane/services/node_ports.h"

#include <algorithm>

#include "base/arena.h"
#include "codec/base64.h"
#include "codec/protobuf.h"
#include "schema/schema.h"
#include "schema/types.h"

namespace keelson::controlplane {
namespace {

constexpr int kBandMin = 16, kBandMax = 128, kBandStep = 32;
constexpr int kRoundsBeforeLeakCleanup = 3;
constexpr std::string_view kResource = "servicenodeportallocations";

std::size_t BandOf(int size) {
  return size <= kBandMin ? 0 : static_cast<std::size_t>(std::clamp(size / kBandStep, kBandMin, kBandMax));
}

}  // namespace

std::string PortBitmap::Allocate(int port) {
  if (!range_.Contains(port))
    return "provided port is not in the valid range. The range of valid ports is " + range_.String();
  if (taken_[Index(port)]) return "provided port is already allocated";
  taken_[Index(port)] = true;
  return {};
}

std::optional<int> PortBitmap::AllocateNext(base::Random& random) {
  const auto search = [&](std::size_t first, std::size_t last) -> std::optional<int> {
    if (first >= last) return std::nullopt;
    const std::size_t start = first + static_cast<std::size_t>(random.Below(last - first));
    for (std::size_t i = 0; i < last - first; ++i) {
      const std::size_t at = first + (start - first + i) % (last - first);
      if (taken_[at]) continue;
      taken_[at] = true;
      return range_.base + static_cast<int>(at);
    }
    return std::nullopt;
  };
  const std::size_t band = BandOf(range_.size);
  if (auto port = search(band, taken_.size())) return port;
  return search(0, band);
}

std::vector<int> PortBitmap::Ports() const {
  std::vector<int> ports;
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) ports.push_back(range_.base + static_cast<int>(i));
  }
  return ports;
}

std::string PortBitmap::Data() const {
  std::string bytes((taken_.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) bytes[bytes.size() - 1 - i / 8] |= static_cast<char>(1 << i % 8);
  }
  bytes.erase(0, bytes.find_first_not_of('\0'));
  return bytes;
}

PortBitmap PortBitmap::FromData(PortRange range, std::string_view data) {
  PortBitmap ports(range);
  for (std::size_t i = 0; i < ports.taken_.size() && i / 8 < data.size(); ++i) {
    ports.taken_[i] = (data[data.size() - 1 - i / 8] >> i % 8 & 1) != 0;
  }
  return ports;
}

Outcome<NodePorts::Stored, std::string> NodePorts::Parse(const kv::RangeResponse& response) const {
  if (response.kvs.empty()) return Stored{.ports = PortBitmap(range_)};
  base::Arena arena;
  auto decoded = codec::DecodeProto(arena, response.kvs.front().value.view(), schema::types::core_v1::kRangeAllocation);
  if (!decoded.ok()) return "unable to decode the port allocations: " + decoded.error().message;
  const Value object = decoded->value;
  if (object["range"].as_string() != range_.String())
    return std::string("the provided port range does not match the current port range");
  const std::string_view text = object["data"].as_string();  // base64 of the message's bytes, as in JSON
  std::string data(text.size() / 4 * 3, '\0');
  data.resize(codec::ReadBase64(text, data.data()));
  return Stored{.revision = response.kvs.front().mod_revision, .ports = PortBitmap::FromData(range_, data)};
}

Awaitable<Outcome<NodePorts::Stored, std::string>> NodePorts::Get() {
  auto got = co_await kv_.Range({.key = key_});
  if (!got.ok()) co_return got.error().message;
  co_return Parse(*got);
}

Awaitable<Outcome<std::optional<NodePorts::Stored>, std::string>> NodePorts::Put(const Stored& before,
                                                                                 const PortBitmap& after) {
  base::Arena arena;
  Value object = Value::Map(arena);
  object.Set(arena, "apiVersion", "v1");
  object.Set(arena, "kind", "RangeAllocation");
  object.Set(arena, "metadata", Value::Map(arena));
  object.Set(arena, "range", Value::String(arena, range_.String()));
  const std::string data = after.Data();
  std::string text(codec::Base64Size(data.size()), '\0');
  codec::WriteBase64(data.data(), data.size(), text.data());
  object.Set(arena, "data", Value::String(arena, text));
  std::string bytes;
  codec::EncodeProto(object, schema::types::core_v1::kRangeAllocation, bytes);
  kv::TxnRequest txn;
  txn.compare.push_back({.key = key_, .number = before.revision});
  txn.success.push_back(kv::Op::Put({.key = key_, .value = kv::SharedBytes::FromString(std::move(bytes))}));
  txn.failure.push_back(kv::Op::Range({.key = key_}));
  auto done = co_await kv_.Txn(std::move(txn));
  if (!done.ok()) co_return done.error().message;
  if (done->succeeded) co_return std::optional<Stored>();
  auto newer = Parse(done->responses.front().range);
  if (!newer.ok()) co_return newer.error();
  co_return std::optional<Stored>(*std::move(newer));
}

Awaitable<std::string> NodePorts::Apply(Change change) {
  auto got = co_await Get();
  if (!got.ok()) co_return got.error();
  Stored stored = *std::move(got);
  for (;;) {  // another writer made progress in every failed round
    if (stored.revision == 0) co_return "cannot allocate resources of type " + std::string(kResource) + " at this time";
    PortBitmap ports = stored.ports;
    if (std::string refused = change(ports); !refused.empty()) co_return refused;
    auto put = co_await Put(stored, ports);
    if (!put.ok()) co_return put.error();
    if (!put->has_value()) co_return std::string();
    stored = **std::move(put);
  }
}

Awaitable<void> NodePorts::Release(std::vector<int> ports) {
  if (ports.empty()) co_return;
  co_await Apply([&ports](PortBitmap& bitmap) {
    for (const int port : ports) bitmap.Release(port);
    return std::string();
  });
}

Awaitable<Outcome<PortBitmap, std::string>> NodePorts::Read() {
  auto got = co_await Get();
  if (!got.ok()) co_return got.error();
  co_return std::move(got->ports);
}

Awaitable<std::string> NodePorts::Repair(
    std::function<Awaitable<Outcome<std::vector<int>, std::string>>()> used_ports) {
  for (;;) {
    auto stored = co_await Get();  // before the services: what is allocated in between makes the write below fail
    if (!stored.ok()) co_return stored.error();
    auto used = co_await used_ports();
    if (!used.ok()) co_return used.error();
    PortBitmap rebuilt(range_);
    for (const int port : *used) rebuilt.Allocate(port);  // duplicates and strangers are their services' problem
    std::vector<std::pair<int, int>> leaks;
    {
      std::lock_guard lock(leaks_mutex_);
      for (const int port : stored->ports.Ports()) {
        if (rebuilt.Has(port)) continue;
        const auto known = std::ranges::find(leaks_, port, &std::pair<int, int>::first);
        const int left = known == leaks_.end() ? kRoundsBeforeLeakCleanup - 1 : known->second;
        if (left == 0) continue;
        leaks.emplace_back(port, left - 1);
        rebuilt.Allocate(port);
      }
    }
    if (stored->revision == 0 || rebuilt.Data() != stored->ports.Data()) {
      auto put = co_await Put(*stored, rebuilt);
      if (!put.ok()) co_return put.error();
      if (put->has_value()) continue;
    }
    std::lock_guard lock(leaks_mutex_);
    leaks_ = std::move(leaks);
    co_return std::string();
  }
}

}  // namespace keelson::controlplane
