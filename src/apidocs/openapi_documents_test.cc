#include "apidocs/openapi_documents.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::apidocs {
namespace {

using base::Arena;

constexpr int kDifferencesShown = 40;

std::optional<Value> Reference(Arena& arena, const std::string& name) {
  const char* root = std::getenv("KEELSON_REFERENCE");
  std::ifstream file((root != nullptr ? std::string(root) : std::string("../shared/reference")) + "/openapi/" + name,
                     std::ios::binary);
  if (!file) return std::nullopt;
  return object::ParseJSON(arena, std::string(std::istreambuf_iterator<char>(file), {}));
}

bool Enabled(const schema::Package& package) {
  return package.version.find("alpha") == package.version.npos && package.version.find("beta") == package.version.npos;
}

// Structure only: descriptions are ours, and the names of shared parameters come from them.
class Comparison {
 public:
  explicit Comparison(std::string what) : what_(std::move(what)) {}
  ~Comparison() { EXPECT_EQ(different_, 0) << what_; }

  void Shared(const Value& got, const Value& want) {
    got_shared_ = got;
    want_shared_ = want;
  }

  void Compare(Value got, Value want, const std::string& path) {
    got = Resolved(got, got_shared_);
    want = Resolved(want, want_shared_);
    if (got.is_map() && want.is_map()) {
      for (const object::Member& member : want.members()) {
        if (IsDescription(member)) continue;
        if (!got.Has(member.key)) {
          Differ(path + "." + std::string(member.key), "missing");
        } else {
          Compare(got[member.key], member.value, path + "." + std::string(member.key));
        }
      }
      for (const object::Member& member : got.members()) {
        if (!IsDescription(member) && !want.Has(member.key)) Differ(path + "." + std::string(member.key), "too much");
      }
    } else if (got.is_list() && want.is_list() && got.size() == want.size()) {
      for (std::size_t i = 0; i < got.size(); ++i) Compare(got[i], want[i], path + "[" + std::to_string(i) + "]");
    } else if (!(got == want)) {
      Differ(path, object::ToJSON(got).substr(0, 200) + " instead of " + object::ToJSON(want).substr(0, 200));
    }
  }

 private:
  static bool IsDescription(const object::Member& member) {
    return member.key == "description" && member.value.is_string();
  }
  static Value Resolved(const Value& value, const Value& shared) {
    const std::string_view reference = value["$ref"].as_string();
    return reference.starts_with("#/parameters/") ? shared[reference.substr(13)] : value;
  }
  void Differ(const std::string& path, const std::string& how) {
    if (++different_ <= kDifferencesShown) ADD_FAILURE() << what_ << path << ": " << how;
  }

  std::string what_;
  Value got_shared_;
  Value want_shared_;
  int different_ = 0;
};

class OpenAPI : public testing::Test {
 protected:
  std::vector<DiscoveryGroup> groups_ = DiscoveryGroups(Enabled);
};

TEST_F(OpenAPI, V3IsTheReference) {
  std::size_t compared = 0;
  for (const std::string& key : OpenAPIv3Keys(groups_)) {
    SCOPED_TRACE(key);
    Arena arena;
    const std::string file =
        key == ".well-known/openid-configuration" ? "well-known_openid-configuration" : base::ReplaceAll(key, "/", "_");
    const auto want = Reference(arena, file + ".json");
    if (!want) {
      if (!Reference(arena, "api.json")) GTEST_SKIP() << "no reference here";
      ADD_FAILURE() << "no reference for " << key;
      continue;
    }
    const auto got = object::ParseJSON(arena, OpenAPIv3Document(key, groups_));
    ASSERT_TRUE(got.has_value());
    Comparison comparison(key);
    comparison.Compare(*got, *want, "");
    ++compared;
  }
  EXPECT_EQ(compared, 47U);
}

TEST_F(OpenAPI, V2IsTheReference) {
  Arena arena;
  const auto want = Reference(arena, "v2.json");
  if (!want) GTEST_SKIP() << "no reference here";
  const auto got = object::ParseJSON(arena, OpenAPIv2Document(groups_));
  ASSERT_TRUE(got.has_value());
  Comparison comparison("v2");
  comparison.Shared((*got)["parameters"], (*want)["parameters"]);
  for (const char* part : {"swagger", "info", "paths", "definitions", "securityDefinitions", "security"}) {
    comparison.Compare((*got)[part], (*want)[part], std::string(".") + part);
  }
}

TEST_F(OpenAPI, Root) {
  EXPECT_EQ(
      OpenAPIv3Root({{"api/v1", "\"AB\""}, {"api", "\"CD\""}}),
      R"({"paths":{"api":{"serverRelativeURL":"/openapi/v3/api?hash=CD"},"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=AB"}}})");
  EXPECT_EQ(OpenAPIv3Document("nope", groups_), "");
}

// kubectl explain pod.spec.containers is of use.
TEST_F(OpenAPI, FieldsHaveDescriptions) {
  Arena arena;
  const auto document = object::ParseJSON(arena, OpenAPIv3Document("api/v1", groups_));
  const Value schemas = document->Get("components", "schemas");
  const Value container = schemas["io.k8s.api.core.v1.Container"];
  EXPECT_EQ(container["description"].as_string(), "One program with its image, environment, mounts and resources.");
  std::size_t described = 0;
  for (const object::Member& property : container["properties"].members())
    described += property.value["description"].as_string().empty() ? 0 : 1;
  EXPECT_EQ(described, container["properties"].size());
  EXPECT_FALSE(schemas.Get("io.k8s.api.core.v1.Pod", "properties", "kind", "description").as_string().empty());
  EXPECT_FALSE(schemas.Get("io.k8s.api.core.v1.Volume", "properties", "emptyDir", "description").as_string().empty());
}

TEST_F(OpenAPI, OutputIsDeterministic) {
  EXPECT_EQ(ETagOf(OpenAPIv2Document(groups_)), ETagOf(OpenAPIv2Document(groups_)));
}

}  // namespace
}  // namespace keelson::apidocs
