#include "telemetry/cpu_profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace keelson::telemetry {
namespace {

std::uint64_t Varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0; !in.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

void Burn(double seconds) {
  const auto until = std::clock() + static_cast<std::clock_t>(seconds * CLOCKS_PER_SEC);
  while (std::clock() < until) {
  }
}

TEST(CPUProfile, IsAProfileOfWhatRan) {
  auto profile = CPUProfile::Start();
  ASSERT_TRUE(profile);
  EXPECT_FALSE(CPUProfile::Start()) << "one at a time";
  Burn(0.3);
  const std::string text = profile->Finish();
  std::string_view in = text;
  std::uint64_t samples = 0, nanoseconds = 0, mappings = 0, locations = 0;
  std::vector<std::string> strings;
  while (!in.empty()) {
    const std::uint64_t key = Varint(in);
    if ((key & 7) == 0) {
      Varint(in);
      continue;
    }
    ASSERT_EQ(key & 7, 2u);
    const std::size_t size = Varint(in);
    ASSERT_LE(size, in.size());
    std::string_view message = in.substr(0, size);
    in.remove_prefix(size);
    mappings += key >> 3 == 3;
    locations += key >> 3 == 4;
    if (key >> 3 == 6) strings.emplace_back(message);
    if (key >> 3 != 2) continue;
    Varint(message);
    message.remove_prefix(Varint(message));  // the stack
    Varint(message);
    Varint(message);
    samples += Varint(message);
    nanoseconds += Varint(message);
  }
  EXPECT_GE(samples, 1u);  // of 30, where signals are not held back (the thread sanitizer does that)
  EXPECT_EQ(nanoseconds, samples * 10'000'000);
  EXPECT_GE(mappings, 1u);
  EXPECT_GE(locations, 1u);
  ASSERT_GE(strings.size(), 5u);
  EXPECT_EQ(strings[0], "");
  EXPECT_EQ(strings[1], "samples");
  auto again = CPUProfile::Start();
  EXPECT_TRUE(again);
}

}  // namespace
}  // namespace keelson::telemetry
