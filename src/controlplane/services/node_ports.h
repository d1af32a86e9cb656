// Node ports of services: a bitmap in one key of the store, changed by compare and put, so that servers on one store
// never give out a port twice. Several ports of one service change in one write. Thread safety: all members from any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "base/outcome.h"
#include "base/random.h"
#include "kv/kv.h"

namespace keelson::controlplane {

struct PortRange {
  int base = 30000;
  int size = 2768;
  bool Contains(int port) const { return port >= base && port < base + size; }
  std::string String() const { return std::to_string(base) + "-" + std::to_string(base + size - 1); }
};

// The ports of a range that are taken. A value.
class PortBitmap {
 public:
  explicit PortBitmap(PortRange range) : range_(range), taken_(static_cast<std::size_t>(range.size), false) {}

  const PortRange& range() const { return range_; }
  bool Has(int port) const { return range_.Contains(port) && taken_[Index(port)]; }
  std::string Allocate(int port);  // "" or what is wrong, in upstream's words
  // From above the band that is left to ports users choose, while there are any.
  std::optional<int> AllocateNext(base::Random& random);
  void Release(int port) {
    if (range_.Contains(port)) taken_[Index(port)] = false;
  }
  std::vector<int> Ports() const;
  std::string Data() const;  // a number in big-endian bytes without leading zeros, bit 0 is the first port
  // Bits beyond the range are dropped.
  static PortBitmap FromData(PortRange range, std::string_view data);

 private:
  std::size_t Index(int port) const { return static_cast<std::size_t>(port - range_.base); }
  PortRange range_;
  std::vector<bool> taken_;
};

class NodePorts {
 public:
  // `key`: /registry/ranges/servicenodeports. `kv` must outlive this.
  NodePorts(kv::Store& kv, std::string key, PortRange range, base::Random& random = base::Random::Real())
      : kv_(kv), key_(std::move(key)), range_(range), random_(random) {}

  const PortRange& range() const { return range_; }
  base::Random& random() { return random_; }

  // Changes the bitmap; `change` is called again with the newer one after a conflict. A non-empty error from `change`
  // is returned and nothing is written. Also an error: the bitmap does not exist yet (Repair creates it).
  using Change = std::function<std::string(PortBitmap& ports)>;
  Awaitable<std::string> Apply(Change change);
  Awaitable<void> Release(std::vector<int> ports);
  Awaitable<Outcome<PortBitmap, std::string>> Read();

  // Rebuilds the bitmap from the ports that services use. Unused ports stay allocated for a few rounds (leaked, or of a
  // service being written), then they are freed. Creates the bitmap if it does not exist. Returns "" or the
  // error.
  Awaitable<std::string> Repair(std::function<Awaitable<Outcome<std::vector<int>, std::string>>()> used_ports);

 private:
  struct Stored {
    kv::Revision revision = 0;  // 0: there is none
    PortBitmap ports;
  };
  Outcome<Stored, std::string> Parse(const kv::RangeResponse& response) const;
  Awaitable<Outcome<Stored, std::string>> Get();
  // The state after it: succeeded when `put` holds.
  Awaitable<Outcome<std::optional<Stored>, std::string>> Put(const Stored& before, const PortBitmap& after);

  kv::Store& kv_;
  std::string key_;
  PortRange range_;
  base::Random& random_;
  std::mutex leaks_mutex_;
  std::vector<std::pair<int, int>> leaks_;  // port, rounds left
};

}  // namespace keelson::controlplane
