// A bound on the memory of what is compiled from definitions and can be compiled again: rules, and whole resources that
// no request and no watch uses. Beyond the bound, members that were not used since the last look are dropped (second
// chance). Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

namespace keelson::apiextensions {

class CompiledBudget {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{32} * 1024 * 1024;
  // Members that one Charge() looks at: a request that compiles does not pay for thousands that cannot be dropped.
  static constexpr std::size_t kLooksMax = 64;

  class Member {
   public:
    Member() = default;
    virtual ~Member() = default;
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    void Use() const {
      if (!used_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
    }

   private:
    friend class CompiledBudget;
    // Frees what was charged; false when it is in use. Called with the budget locked: must not call it.
    virtual bool Drop() const = 0;
    mutable std::atomic<bool> used_{true};
  };

  explicit CompiledBudget(std::size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // `member` has compiled something of about `bytes`, until it is dropped or destroyed. Drops others while the sum is
  // beyond the bound.
  void Charge(std::weak_ptr<const Member> member, std::size_t bytes);
  std::size_t bytes() const;  // charged for members that live

 private:
  struct Charged {
    std::weak_ptr<const Member> member;
    std::size_t bytes;
  };
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  std::deque<Charged> ring_;  // the front is looked at next
  std::size_t bytes_ = 0;     // of the ring, those destroyed since included
};

}  // namespace keelson::apiextensions
