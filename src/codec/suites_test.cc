// Public suites: JSONTestSuite and yaml-test-suite. Cases of the latter that are out of scope are listed here and in
// docs/yaml.md.
#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "codec/fixtures_test.h"
#include "codec/json.h"
#include "codec/yaml.h"

namespace keelson::codec {
namespace {

using base::Arena;

TEST(Suites, JSONTestSuite) {
  const auto root = Suite("json");
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no JSONTestSuite at " << root;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(name);
    ++count;
    const std::string text = ReadFile(entry.path());
    Arena arena;
    const auto decoded = DecodeJSON(arena, text);
    EXPECT_EQ(decoded.ok(),
              JSONSyntaxError(text).empty() && decoded.ok());  // the reader and the scanner agree on what is wrong
    if (name.starts_with("y_")) EXPECT_TRUE(decoded.ok()) << decoded.error().message;
    if (name.starts_with("n_")) {
      ASSERT_FALSE(decoded.ok());
      EXPECT_EQ(decoded.error().kind, DecodeError::Kind::kSyntax);
      EXPECT_FALSE(decoded.error().message.empty());
    }
    const auto typed = DecodeJSON(arena, text, *schema::FindKind("", "v1", "Pod"), {.strict = true});
    if (name.starts_with("n_")) EXPECT_FALSE(typed.ok());
    if (!decoded.ok()) continue;
    // Round trip: read, written and read again is the same.
    std::string once, twice;
    EncodeJSON(decoded->value, once);
    const auto again = DecodeJSON(arena, once);
    ASSERT_TRUE(again.ok()) << once;
    EncodeJSON(again->value, twice);
    EXPECT_EQ(twice, once);
  }
  EXPECT_GT(count, 300u);
}

// The suite shows invisible characters by visible ones.
std::string Visible(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
      {"\xE2\x90\xA3", " "},  {"\xC2\xBB", "\t"},     {"\xE2\x80\x94\xC2\xBB", "\t"},  {"\xE2\x86\xB5", ""},
      {"\xE2\x88\x8E\n", ""}, {"\xE2\x86\x90", "\r"}, {"\xE2\x87\x94", "\xEF\xBB\xBF"}};
  // A tab may be drawn with dashes before its mark.
  for (std::string::size_type at; (at = text.find("\xE2\x80\x94\xE2\x80\x94")) != std::string::npos;)
    text.replace(at, 3, "");
  text = base::ReplaceAll(text, "\xE2\x80\x94\xC2\xBB", "\t");
  for (const auto& [mark, real] : kMarks) text = base::ReplaceAll(text, mark, real);
  return text;
}

#include "codec/yaml_scope_test.inc"

TEST(Suites, YAMLTestSuite) {
  const auto root = Suite("yaml") / "src";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no yaml-test-suite at " << root;
  std::map<std::string, std::string_view> excused;
  for (const auto& [id, why] : kOutOfScope) excused[id] = why;
  std::size_t run = 0, skipped = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    Arena arena;
    const auto file = DecodeYAML(arena, ReadFile(entry.path()));
    ASSERT_TRUE(file.ok()) << entry.path() << file.error().message;
    std::string yaml;
    for (std::size_t i = 0; i < file->value.size(); ++i) {
      const Value test = file->value[i];
      const std::string id = entry.path().stem().string() + "/" + std::to_string(i);
      SCOPED_TRACE(id);
      if (test.Has("skip")) continue;
      yaml = Visible(std::string(test["yaml"].as_string()));
      const bool fail = test["fail"].as_bool();
      const Value want_text = test["json"];
      const auto got = DecodeYAML(arena, yaml);
      if (!fail && !want_text.is_string()) continue;  // no JSON results: only that it does not crash
      bool right = false;
      if (fail) {
        right = !got.ok();
      } else {
        const auto want = DecodeJSON(arena, want_text.as_string());
        if (!want.ok()) continue;  // several documents
        right = got.ok() && got->value == want->value;
      }
      if (excused.contains(id)) {
        EXPECT_FALSE(right) << "is listed as out of scope but works";
        ++skipped;
        continue;
      }
      ++run;
      EXPECT_TRUE(right) << yaml << "\nerror: " << (got.ok() ? "none" : got.error().message);
    }
  }
  EXPECT_GT(run, 200u);
  EXPECT_EQ(skipped, std::size(kOutOfScope));
}

}  // namespace
}  // namespace keelson::codec
