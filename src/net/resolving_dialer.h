// Dials with its own resolver instead of Resolver::Global(). Thread safety: Dial() from any coroutine.
#pragma once

#include <memory>
#include <utility>

#include "net/dialer.h"
#include "net/resolver.h"

namespace keelson::net {

class ResolvingDialer final : public Dialer {
 public:
  explicit ResolvingDialer(std::shared_ptr<Resolver> resolver) : resolver_(std::move(resolver)) {}
  Awaitable<Result<StreamSocket>> Dial(DialTarget target, std::chrono::steady_clock::time_point deadline) override;

 private:
  const std::shared_ptr<Resolver> resolver_;
};

}  // namespace keelson::net
