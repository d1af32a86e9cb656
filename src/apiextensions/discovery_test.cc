#include "apiextensions/discovery.h"

#include <gtest/gtest.h>

#include <string>

namespace keelson::apiextensions {
namespace {

DefinitionPtr Established(const std::string& group, const std::string& plural) {
  auto definition = std::make_shared<Definition>();
  definition->name = plural + "." + group;
  definition->group = group;
  definition->established = definition->names_accepted = true;
  definition->accepted_names = definition->spec_names = {plural, plural, "Kind", "KindList", {}, {}};
  definition->versions.push_back({.name = "v1", .served = true, .storage = true});
  return definition;
}

TEST(DiscoveryDocuments, GroupsThatComeAndGoUnreadLeaveNothing) {
  DiscoveryDocuments documents(nullptr);
  documents.Update(Established("shown.example.com", "ships"));
  const auto before = documents.Discovery();
  ASSERT_EQ(before->groups.size(), 1U);
  for (const std::string group : {"a.example.com", "t.example.com"}) {
    const DefinitionPtr one = Established(group, "ones"), two = Established(group, "twos");
    documents.Update(one);
    documents.Update(two);
    documents.Remove(*one);
    documents.Remove(*two);
  }
  EXPECT_EQ(documents.Discovery(), before);  // Nothing is to be made again.
}

TEST(DiscoveryDocuments, ShownGroupsThatGoDisappear) {
  DiscoveryDocuments documents(nullptr);
  const DefinitionPtr ships = Established("b.example.com", "ships"), boats = Established("b.example.com", "boats");
  documents.Update(ships);
  documents.Update(boats);
  documents.Update(Established("c.example.com", "ships"));
  ASSERT_EQ(documents.Discovery()->groups.size(), 2U);
  documents.Remove(*ships);
  EXPECT_EQ(documents.Discovery()->groups.size(), 2U);
  documents.Remove(*boats);
  const auto left = documents.Discovery();
  ASSERT_EQ(left->groups.size(), 1U);
  EXPECT_EQ(left->groups[0]->group, "c.example.com");
  documents.Update(ships);
  EXPECT_EQ(documents.Discovery()->groups.size(), 2U);
}

}  // namespace
}  // namespace keelson::apiextensions
