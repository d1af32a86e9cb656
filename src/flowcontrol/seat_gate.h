// Seats of one priority level while nothing waits in its queues: requests take and give back seats by one compare and
// swap, and leave a record of the change. The level's fair queuing (queue_set.h) applies the records later, in order.
//
//   bit 63   62..57           56..44         43..0
//   closed   records linked   seats in use   address of the newest record, without its four low bits (zero)
//
// A closed gate sends every request to the mutex of the level. The bound of each field closes the way as well: nothing
// is lost when records are not applied for a while or when seats or addresses do not fit.
//
// Thread safety: Take() and GiveBack() from any thread; the other members by the holder of the level's mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace keelson::flowcontrol {

class SeatGate {
 public:
  static constexpr int kRecordsMax = 63;
  static constexpr int kSeatsMax = (1 << 13) - 1;
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  struct alignas(16) Record {
    Record* older = nullptr;
  };
  struct Result {
    bool done = false;
    int records = 0;  // that are linked now
  };

  // REQUIRES: `record` is not linked. It must live until it has been handed out by Close() or Detach().
  Result Take(int seats, Record& record);
  Result GiveBack(int seats, Record& record);

  // Both return the records linked so far, newest first, and forget them.
  Record* Close();
  Record* Detach();
  // REQUIRES: closed. It stays closed when the seats do not fit.
  void Open(int seats_in_use, int limit);

 private:
  template <class Fits>
  Result Change(int seats, Record& record, Fits fits);

  std::atomic<std::uint64_t> word_{kClosed};
  std::atomic<int> limit_{0};  // changes while the gate is closed only
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
};

}  // namespace keelson::flowcontrol
