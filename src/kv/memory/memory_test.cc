#include "kv/memory/memory.h"

#include <gtest/gtest.h>

#include "base/fake_clock.h"
#include "kv/contract_suite/contract.h"

namespace keelson::kv::memory {
namespace {

class MemoryHarness final : public Harness {
 public:
  MemoryHarness() : store_(Open({.clock = &clock_})) {}
  Store& store() override { return *store_; }
  void Advance(int seconds) override {
    clock_.Advance(std::chrono::seconds(seconds));
    store_->Tick();
  }
  bool fresh() const override { return true; }

 private:
  base::FakeClock clock_;
  std::unique_ptr<mvcc::EmbeddedStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Memory, Contract,
                         testing::Values(HarnessParam{"memory", [] { return std::make_unique<MemoryHarness>(); }, ""}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace keelson::kv::memory
