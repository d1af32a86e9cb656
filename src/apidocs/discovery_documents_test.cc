#include "apidocs/discovery_documents.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "object/json_text.h"

namespace keelson::apidocs {
namespace {

using base::Arena;

std::optional<Value> Reference(Arena& arena, const std::string& name) {
  const char* root = std::getenv("KEELSON_REFERENCE");
  std::ifstream file((root != nullptr ? std::string(root) : std::string("../shared/reference")) + "/" + name,
                     std::ios::binary);
  if (!file) return std::nullopt;
  return object::ParseJSON(arena, std::string(std::istreambuf_iterator<char>(file), {}));
}

// On by default: GA versions.
bool Enabled(const schema::Package& package) {
  return package.version.find("alpha") == package.version.npos && package.version.find("beta") == package.version.npos;
}

// Equal, with a word on where not.
void ExpectSame(const Value& got, const Value& want, const std::string& path) {
  if (got == want) return;
  if (got.is_map() && want.is_map()) {
    for (const object::Member& member : want.members())
      ExpectSame(got[member.key], member.value, path + "." + std::string(member.key));
    for (const object::Member& member : got.members())
      EXPECT_TRUE(want.Has(member.key)) << path << "." << member.key << " is too much";
    return;
  }
  if (got.is_list() && want.is_list() && got.size() == want.size()) {
    for (std::size_t i = 0; i < got.size(); ++i) ExpectSame(got[i], want[i], path + "[" + std::to_string(i) + "]");
    return;
  }
  ADD_FAILURE() << path << ": " << object::ToJSON(got).substr(0, 300) << " instead of "
                << object::ToJSON(want).substr(0, 300);
}

class Discovery : public testing::Test {
 protected:
  Arena arena_;
  std::vector<DiscoveryGroup> groups_ = DiscoveryGroups(Enabled);
  std::span<const DiscoveryGroup> named() { return std::span(groups_).subspan(1); }
};

TEST_F(Discovery, LegacyDocumentsAreTheReference) {
  const auto api = Reference(arena_, "discovery/api.json");
  if (!api) GTEST_SKIP() << "no reference here";
  const std::string_view address = (*api)["serverAddressByClientCIDRs"][std::size_t{0}]["serverAddress"].as_string();
  ExpectSame(APIVersionsDocument(arena_, groups_, address), *api, "api");
  const Value apis = *Reference(arena_, "discovery/apis.json");
  ExpectSame(APIGroupListDocument(arena_, groups_), apis, "apis");
  const Value resources = *Reference(arena_, "discovery/resources.json");
  std::size_t checked = 0;
  for (const DiscoveryGroup& group : groups_) {
    for (const schema::Package* package : group.versions) {
      const std::string path = package->group.empty()
                                   ? "/api/" + std::string(package->version)
                                   : "/apis/" + std::string(package->group) + "/" + std::string(package->version);
      ASSERT_TRUE(resources.Has(path)) << path;
      ExpectSame(APIResourceListDocument(arena_, *package), resources[std::string_view(path)], path);
      ++checked;
    }
  }
  EXPECT_EQ(checked, resources.size());
}

TEST_F(Discovery, AggregatedDocumentsAreTheReference) {
  const auto api = Reference(arena_, "discovery/api-aggregated-v2.json");
  if (!api) GTEST_SKIP() << "no reference here";
  ExpectSame(AggregatedDiscoveryDocument(arena_, std::span(groups_).first(1)), *api, "api");
  ExpectSame(AggregatedDiscoveryDocument(arena_, named()), *Reference(arena_, "discovery/apis-aggregated-v2.json"),
             "apis");
}

TEST_F(Discovery, ETag) {
  const auto tag_of = [this](std::span<const DiscoveryGroup> groups) {
    std::string json;
    object::AppendJSON(json, AggregatedDiscoveryDocument(arena_, groups));
    return ETagOf(json);
  };
  const std::string tag = tag_of(named());
  EXPECT_EQ(tag.size(), 130U);
  EXPECT_EQ(tag, tag_of(named()));
  EXPECT_NE(tag, tag_of(std::span(groups_).first(1)));
}

TEST_F(Discovery, OnlyWhatIsServed) {
  const auto no_exec = [](const schema::Resource& resource, std::string_view sub) {
    return resource.plural != "pods" || sub != "exec";
  };
  const std::string text = object::ToJSON(APIResourceListDocument(arena_, *groups_[0].versions[0], no_exec));
  EXPECT_EQ(text.find("pods/exec"), std::string::npos);
  EXPECT_NE(text.find("pods/attach"), std::string::npos);
}

TEST_F(Discovery, GroupDocument) {
  EXPECT_EQ(
      object::ToJSON(APIGroupDocument(arena_, groups_[2])),
      R"({"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}})");
}

TEST(Versions, Order) {
  constexpr const char* kOrder[] = {"v10",     "v2",        "v1",        "v11beta2", "v10beta3",
                                    "v3beta1", "v12alpha1", "v11alpha2", "foo1",     "foo10"};
  for (std::size_t i = 0; i + 1 < std::size(kOrder); ++i) {
    EXPECT_TRUE(ComesBeforeAsVersion(kOrder[i], kOrder[i + 1])) << kOrder[i];
    EXPECT_FALSE(ComesBeforeAsVersion(kOrder[i + 1], kOrder[i])) << kOrder[i];
  }
}

}  // namespace
}  // namespace keelson::apidocs
