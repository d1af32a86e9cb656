#include "async/parked.h"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <mutex>

namespace keelson::async {

// The parked handlers of one context. Shared with them: a callback in the hands of another thread may outlive the
// context.
class ParkingLot {
 public:
  void Enter(Parked& parked) {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    parked.in_lot_ = true;
    parked.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &parked;
    first_ = &parked;
  }

  bool Leave(Parked& parked) {
    std::lock_guard lock(mutex_);
    return Unlink(parked);
  }

  void Close() {
    while (const std::optional<std::shared_ptr<Parked>> parked = Next()) {
      if (*parked != nullptr) (*parked)->Drop();  // without the lock: a handler may own callbacks of others
    }
  }

 private:
  // Unlinks one; null for one whose last callback is being destroyed now and destroys the handler itself.
  std::optional<std::shared_ptr<Parked>> Next() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    if (first_ == nullptr) return std::nullopt;
    Parked& parked = *first_;
    Unlink(parked);
    return parked.weak_from_this().lock();
  }

  bool Unlink(Parked& parked) {
    if (!parked.in_lot_) return false;
    parked.in_lot_ = false;
    (parked.previous_ == nullptr ? first_ : parked.previous_->next_) = parked.next_;
    if (parked.next_ != nullptr) parked.next_->previous_ = parked.previous_;
    return true;
  }

  std::mutex mutex_;  // over everything, and over the links of the parked
  bool closed_ = false;
  Parked* first_ = nullptr;
};

namespace {

class ParkingLotService final : public asio::execution_context::service {
 public:
  using key_type = ParkingLotService;
  static asio::execution_context::id id;
  explicit ParkingLotService(asio::execution_context& context) : service(context) {}
  const std::shared_ptr<ParkingLot> lot = std::make_shared<ParkingLot>();

 private:
  void shutdown() override { lot->Close(); }
};
asio::execution_context::id ParkingLotService::id;

}  // namespace

Parked::Parked(const asio::any_io_executor& executor)
    : lot_(asio::use_service<ParkingLotService>(asio::query(executor, asio::execution::context)).lot) {}

void Parked::Enter() { lot_->Enter(*this); }
bool Parked::Leave() { return lot_->Leave(*this); }

}  // namespace keelson::async
