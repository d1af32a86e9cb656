#include "flowcontrol/seat_gate.h"

#include "base/check.h"

namespace keelson::flowcontrol {
namespace {

constexpr int kAddressBits = 44;
constexpr int kAddressShift = 4;
constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << kAddressBits) - 1;
constexpr std::uint64_t kOneSeat = std::uint64_t{1} << kAddressBits;
constexpr std::uint64_t kOneRecord = std::uint64_t{1} << 57;
static_assert(alignof(SeatGate::Record) == 1 << kAddressShift);
static_assert(kOneSeat * (SeatGate::kSeatsMax + 1) == kOneRecord);

SeatGate::Record* RecordOf(std::uint64_t word) {
  return reinterpret_cast<SeatGate::Record*>((word & kAddressMask) << kAddressShift);
}
int SeatsOf(std::uint64_t word) { return static_cast<int>(word / kOneSeat) & SeatGate::kSeatsMax; }
int RecordsOf(std::uint64_t word) { return static_cast<int>(word / kOneRecord) & SeatGate::kRecordsMax; }

}  // namespace

template <class Fits>
SeatGate::Result SeatGate::Change(int seats, Record& record, Fits fits) {
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(&record) >> kAddressShift;
  std::uint64_t word = word_.load(std::memory_order_acquire);
  for (;;) {
    const int records = RecordsOf(word);
    const int next_seats = SeatsOf(word) + seats;
    if ((word & kClosed) != 0 || records == kRecordsMax || address > kAddressMask || !fits(SeatsOf(word), next_seats))
      return {};
    record.older = RecordOf(word);
    const std::uint64_t next = static_cast<std::uint64_t>(records + 1) * kOneRecord +
                               static_cast<std::uint64_t>(next_seats) * kOneSeat + address;
    if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire))
      return {.done = true, .records = records + 1};
  }
}

SeatGate::Result SeatGate::Take(int seats, Record& record) {
  if (seats > kSeatsMax) return {};
  return Change(seats, record, [this](int before, int after) {
    const int limit = limit_.load(std::memory_order_relaxed);
    return after <= kSeatsMax && before < limit && after <= limit;
  });
}

SeatGate::Result SeatGate::GiveBack(int seats, Record& record) {
  return Change(-seats, record, [](int, int after) { return after >= 0; });
}

SeatGate::Record* SeatGate::Close() { return RecordOf(word_.exchange(kClosed, std::memory_order_acq_rel)); }

SeatGate::Record* SeatGate::Detach() {
  std::uint64_t word = word_.load(std::memory_order_acquire);
  std::uint64_t next = 0;
  do {
    next = (word & kClosed) | static_cast<std::uint64_t>(SeatsOf(word)) * kOneSeat;
  } while (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire));
  return RecordOf(word);
}

void SeatGate::Open(int seats_in_use, int limit) {
  KS_CHECK(seats_in_use >= 0);
  if (seats_in_use > kSeatsMax) return;
  limit_.store(limit, std::memory_order_relaxed);
  word_.store(static_cast<std::uint64_t>(seats_in_use) * kOneSeat, std::memory_order_release);
}

}  // namespace keelson::flowcontrol
