#include "apidocs/openapi_descriptions.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "apidocs/openapi_descriptions_text.h"
#include "base/strings.h"
#include "schema/schema.h"

namespace keelson::apidocs {
namespace {

// Packages that kubectl explain can reach: those with resources, and the types that all of them share.
bool IsExplained(const schema::Package& package) { return !package.resources.empty() || package.name == "meta/v1"; }

// "1395 of 1395 types and fields of core/v1 have a text", for each package.
TEST(OpenAPIDescriptions, EveryFieldHasAText) {
  for (const schema::Package* package : schema::Packages()) {
    if (!IsExplained(*package)) continue;
    std::size_t all = 0;
    std::vector<std::string> missing;
    for (const schema::Struct& type : package->types) {
      ++all;
      if (FindDescription(package->name, type.name, "").empty()) missing.emplace_back(type.name);
      for (const schema::Field* field : type.json_fields) {
        ++all;
        if (FindDescription(package->name, type.name, field->name).empty())
          missing.push_back(std::string(type.name) + "." + std::string(field->name));
      }
    }
    printf("%zu of %zu types and fields of %s have a text\n", all - missing.size(), all,
           std::string(package->name).c_str());
    EXPECT_TRUE(missing.empty()) << package->name << ", first: " << missing.front();
  }
}

struct DescribedName {
  std::string_view package;  // core, core/v1 or *
  std::string_view type;     // Pod, or *List
  std::string_view field;    // "" for the type itself
  std::string_view text;     // "" for a type without one
};

// Every line of the files, in their order.
std::vector<DescribedName> AllDescriptions() {
  std::vector<DescribedName> all;
  for (const std::string_view line : base::Split(kDescriptionsText, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": ");
    const std::string_view name = base::Trim(line.substr(0, colon));
    const std::string_view text = colon == line.npos ? std::string_view() : line.substr(colon + 2);
    const auto words = base::Split(name, ' ');
    if (line[0] == ' ') {
      all.push_back({all.back().package, all.back().type, name, text});
    } else {
      all.push_back({words[0], words[1], "", text});
    }
  }
  return all;
}

bool Exists(const DescribedName& name) {
  if (name.package == "*" || name.package == "version") return true;
  static const std::set<std::string_view> kWithoutTable = {"Duration", "FieldsV1", "IntOrString",  "JSON", "MicroTime",
                                                           "Patch",    "Quantity", "RawExtension", "Time"};
  if (name.package == "meta" && kWithoutTable.contains(name.type)) return name.field.empty();
  for (const schema::Package* package : schema::Packages()) {
    const std::string_view group = package->name.substr(0, package->name.find('/'));
    if (name.package != group && name.package != package->name) continue;
    const schema::Struct* type = schema::FindType(package->name, name.type);
    if (type != nullptr && (name.field.empty() || type->FindField(name.field) != nullptr)) return true;
  }
  return false;
}

TEST(OpenAPIDescriptions, EveryTextHasAField) {
  std::set<std::string> seen;
  for (const DescribedName& name : AllDescriptions()) {
    const std::string key = std::string(name.package) + " " + std::string(name.type) + "." + std::string(name.field);
    EXPECT_TRUE(Exists(name)) << key;
    EXPECT_TRUE(seen.insert(key).second) << key << " occurs twice";
    EXPECT_FALSE(!name.field.empty() && name.text.empty()) << key << " has no text";
  }
}

// Texts are sentences: they begin with a capital letter or a value, and end with a full stop.
TEST(OpenAPIDescriptions, TextsAreSentences) {
  for (const DescribedName& name : AllDescriptions()) {
    if (name.text.empty()) continue;
    EXPECT_TRUE(name.text.ends_with('.')) << name.type << "." << name.field << ": " << name.text;
    EXPECT_LE(name.text.size(), 260U) << name.type << "." << name.field;
  }
}

TEST(OpenAPIDescriptions, WhereATextIsLookedUp) {
  const std::string_view of_container = FindDescription("core/v1", "Container", "image");
  EXPECT_FALSE(of_container.empty());
  EXPECT_EQ(FindDescription("core/v1", "EphemeralContainer", "image"), of_container);  // like
  EXPECT_NE(FindDescription("core/v1", "EphemeralContainer", "ports"),
            FindDescription("core/v1", "Container", "ports"));
  EXPECT_EQ(FindDescription("core/v1", "Volume", "hostPath"), FindDescription("core/v1", "VolumeSource", "hostPath"));
  EXPECT_EQ(FindDescription("core/v1", "PodList", "items"), "The objects of the list.");  // * *List
  EXPECT_NE(FindDescription("core/v1", "PodList", "metadata"), FindDescription("core/v1", "Pod", "metadata"));
  EXPECT_FALSE(FindDescription("example/v1", "Any", "apiVersion").empty());  // * *
  EXPECT_TRUE(FindDescription("core/v1", "Container", "nope").empty());
  EXPECT_TRUE(FindDescription("core/v1", "Nope", "image").empty());
}

}  // namespace
}  // namespace keelson::apidocs
