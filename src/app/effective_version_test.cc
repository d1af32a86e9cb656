#include "app/effective_version.h"

#include <gtest/gtest.h>

namespace keelson::app {
namespace {

using Items = std::vector<std::string>;

TEST(EffectiveVersion, Flags) {
  struct Case {
    Items emulated, oldest;
    const char* want;  // emulated, oldest; or the error
  };
  const Case cases[] = {
      {{}, {}, "1.36 1.35"},
      {{"1.36"}, {}, "1.36 1.35"},
      {{"kube=1.36"}, {"kube=1.35"}, "1.36 1.35"},
      {{" kube = v1.36.0 "}, {}, "1.36 1.35"},
      {{"1.34"}, {}, "1.34 1.33"},
      {{"1.33"}, {}, "1.33 1.33"},
      {{"1.35"}, {"1.35"}, "1.35 1.35"},
      {{"x"}, {}, "could not parse \"x\" as version"},
      {{"1"}, {}, "illegal version string \"1\""},
      {{"01.36"}, {}, "illegal zero-prefixed version component \"01\" in \"01.36\""},
      {{"1.36.4"}, {}, "patch version not allowed, got: kube=1.36.4"},
      {{"1.36", "kube=1.35"}, {}, "duplicate version flag, kube=1.36 and kube=1.35"},
      {{"wardle=1.2"}, {}, "component not registered: wardle"},
      {{}, {"wardle=1.2"}, "component not registered: wardle"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.want);
    const auto read = EffectiveVersion::FromFlags(c.emulated, c.oldest);
    EXPECT_EQ(read.ok() ? read->emulation.ToString() + " " + read->min_compatibility.ToString() : read.error(), c.want);
  }
}

TEST(EffectiveVersion, Ranges) {
  EXPECT_EQ(EffectiveVersion().Validate(), Items{});
  EXPECT_EQ((EffectiveVersion{.emulation = {1, 32}, .min_compatibility = {1, 33}}.Validate()),
            (Items{"emulation version 1.32 is not between [1.33, 1.36.0]",
                   "minCompatibilityVersion version 1.33 is not between [1.33, 1.32]"}));
  EXPECT_EQ((EffectiveVersion{.emulation = {1, 37}, .min_compatibility = {1, 36}}.Validate()),
            Items{"emulation version 1.37 is not between [1.33, 1.36.0]"});
}

TEST(EffectiveVersion, OtherVersionsAreNotBuilt) {
  EXPECT_EQ(EffectiveVersion().Unbuilt(), Items{});
  EXPECT_EQ((EffectiveVersion{.emulation = {1, 35}, .min_compatibility = {1, 34}}.Unbuilt()),
            Items{"--emulated-version: version emulation is not built yet"});
  EXPECT_EQ((EffectiveVersion{.min_compatibility = {1, 36}}.Unbuilt()),
            Items{"--min-compatibility-version: other versions than the default are not built yet"});
}

}  // namespace
}  // namespace keelson::app
