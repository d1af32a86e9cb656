// Ends evaluations of CEL expressions when the request they belong to is cancelled: its client has gone, or its
// deadline has passed. Lives no longer than the request.
#pragma once

#include "async/cancellation.h"
#include "cel/program.h"

namespace keelson::admission {

class RequestInterrupt final : public cel::Interrupt {
 public:
  explicit RequestInterrupt(const async::Cancellation* cancellation) : cancellation_(cancellation) {}  // null: never
  bool Requested() const override { return cancellation_ != nullptr && cancellation_->cancelled(); }

 private:
  const async::Cancellation* cancellation_;
};

}  // namespace keelson::admission
