#include "cacher/cacher.h"

#include <gtest/gtest.h>

#include "cacher/cacher_harness.h"

namespace keelson::storage {
namespace {

INSTANTIATE_TEST_SUITE_P(Cacher, Contract,
                         ::testing::Values(HarnessParam{
                             "cacher", [](async::IOPool& io) { return std::make_unique<cacher::CacherHarness>(io); }}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace keelson::storage
