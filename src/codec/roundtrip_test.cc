// Kubernetes' own serialization fixtures: every kind as JSON, YAML and protobuf, every field filled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codec/json.h"
#include "codec/protobuf.h"

namespace keelson::codec {
namespace {

using base::Arena;

std::filesystem::path Suite(const char* name) {
  const char* root = std::getenv("KEELSON_SUITES");
  return std::filesystem::path(root != nullptr ? root : "../shared/testdata") / name;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Fixture {
  std::string name;
  const schema::Struct* type = nullptr;
  std::string json, yaml, pb;
};

// core.v1.Pod.json: group (core for none), version, kind.
std::vector<Fixture> Fixtures() {
  std::vector<Fixture> fixtures;
  const auto root = Suite("roundtrip");
  if (!std::filesystem::exists(root)) return fixtures;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() != ".json") continue;
    Fixture fixture{.name = entry.path().stem().string()};
    const auto kind_dot = fixture.name.rfind('.');
    const auto version_dot = fixture.name.rfind('.', kind_dot - 1);
    std::string group = fixture.name.substr(0, version_dot);
    if (group == "core") group.clear();
    fixture.type = schema::FindKind(group, fixture.name.substr(version_dot + 1, kind_dot - version_dot - 1), fixture.name.substr(kind_dot + 1));
    fixture.json = ReadFile(entry.path());
    fixture.yaml = ReadFile(std::filesystem::path(entry.path()).replace_extension(".yaml"));
    fixture.pb = ReadFile(std::filesystem::path(entry.path()).replace_extension(".pb"));
    fixtures.push_back(std::move(fixture));
  }
  std::ranges::sort(fixtures, {}, &Fixture::name);
  return fixtures;
}

class Roundtrip : public ::testing::Test {
 protected:
  void SetUp() override {
    fixtures_ = Fixtures();
    if (fixtures_.empty()) GTEST_SKIP() << "no roundtrip fixtures at " << Suite("roundtrip");
    EXPECT_EQ(fixtures_.size(), 185u);
  }
  std::vector<Fixture> fixtures_;
};

TEST_F(Roundtrip, JSONDecodesAndEncodesToTheSameBytes) {
  for (const Fixture& fixture : fixtures_) {
    SCOPED_TRACE(fixture.name);
    if (fixture.type == nullptr) {
      ADD_FAILURE() << "unknown kind";
      continue;
    }
    Arena arena;
    const auto decoded = DecodeJSON(arena, fixture.json, *fixture.type, {.strict = true});
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_TRUE(decoded->strict_errors.empty()) << decoded->strict_errors[0];
    std::string compact, pretty;
    EncodeJSON(decoded->value, *fixture.type, compact);
    IndentJSON(compact, pretty);
    EXPECT_EQ(pretty, fixture.json);
  }
}

TEST_F(Roundtrip, ProtobufDecodesAndEncodesToTheSameBytes) {
  for (const Fixture& fixture : fixtures_) {
    SCOPED_TRACE(fixture.name);
    if (fixture.type == nullptr) {
      ADD_FAILURE() << "unknown kind";
      continue;
    }
    Arena arena;
    const auto decoded = DecodeProto(arena, fixture.pb, *fixture.type);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    std::string out;
    EncodeProto(decoded->value, *fixture.type, out);
    EXPECT_EQ(out, fixture.pb);
    // Raw extensions are kept as they came, so the comparison needs them without the fixture's indentation.
    const auto indented = DecodeJSON(arena, fixture.json, *fixture.type);
    ASSERT_TRUE(indented.ok());
    std::string compact;
    EncodeJSON(indented->value, *fixture.type, compact);
    const auto json = DecodeJSON(arena, compact, *fixture.type);
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(json->value, decoded->value);
    out.clear();
    EncodeProto(json->value, *fixture.type, out);
    EXPECT_EQ(out, fixture.pb);
  }
}

}  // namespace
}  // namespace keelson::codec
