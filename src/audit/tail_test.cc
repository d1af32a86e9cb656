#include "audit/tail.h"

#include <gtest/gtest.h>

namespace keelson::audit {
namespace {

Event NewEvent(std::string uri) {
  Event event;
  event.level = Level::kRequestResponse;
  event.request_uri = std::move(uri);
  event.verb = "create";
  event.user.name = "alice";
  event.object_ref = ObjectReference{.resource = "secrets"};
  return event;
}

TEST(Tail, FollowersGetOldAndNewEvents) {
  const auto tail = std::make_shared<Tail>();
  EXPECT_FALSE(tail->followed());
  int woken = 0;
  const auto follower = tail->Follow([&woken] { ++woken; });
  EXPECT_TRUE(tail->followed());
  for (int i = 0; i < 3; ++i) tail->Add(NewEvent("/" + std::to_string(i)));
  EXPECT_EQ(woken, 3);
  const auto first = follower->After(0, 2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[1]->number, 2u);
  EXPECT_EQ(first[0]->user, "alice");
  EXPECT_EQ(first[0]->verb, "create");
  EXPECT_EQ(first[0]->resource, "secrets");
  EXPECT_EQ(follower->After(2, 10).size(), 1u);
  EXPECT_TRUE(follower->After(3, 10).empty());
}

TEST(Tail, PayloadsAreLeftOutAndTextsAreCut) {
  const auto tail = std::make_shared<Tail>();
  const auto follower = tail->Follow([] {});
  Event event = NewEvent("/" + std::string(100'000, 'x'));
  event.request_object = NewJSONPayload(base::SharedBytes("{\"password\":1}"));
  event.annotations.emplace_back("key", std::string(100'000, 'y'));
  tail->Add(event);
  const auto line = follower->After(0, 1)[0]->line;
  EXPECT_EQ(line.view().find("password"), std::string_view::npos);
  EXPECT_NE(line.view().find("\"level\":\"Metadata\""), std::string_view::npos);
  EXPECT_LT(line.size(), Tail::kURIBytesMax + Tail::kAnnotationBytesMax + 1000);
  EXPECT_TRUE(line.view().ends_with("}\n"));
}

TEST(Tail, NumberAndBytesAreBounded) {
  const auto tail = std::make_shared<Tail>();
  const auto follower = tail->Follow([] {});
  for (std::size_t i = 0; i < Tail::kEventsMax + 10; ++i) tail->Add(NewEvent("/"));
  EXPECT_EQ(follower->After(0, 10'000).size(), Tail::kEventsMax);
  EXPECT_EQ(follower->After(0, 1)[0]->number, 11u);
  Event large = NewEvent("/");
  for (int i = 0; i < 100; ++i) large.annotations.emplace_back(std::to_string(i), std::string(1000, 'y'));
  for (int i = 0; i < 100; ++i) tail->Add(large);
  EXPECT_LT(follower->After(0, 10'000).size(), 100u);
}

TEST(Tail, FollowersAreBoundedAndLeave) {
  const auto tail = std::make_shared<Tail>();
  std::vector<std::unique_ptr<Tail::Follower>> followers;
  for (std::size_t i = 0; i < Tail::kFollowersMax; ++i) followers.push_back(tail->Follow([] {}));
  EXPECT_TRUE(tail->full());
  EXPECT_EQ(tail->Follow([] {}), nullptr);
  followers.clear();
  EXPECT_FALSE(tail->followed());
  EXPECT_NE(tail->Follow([] {}), nullptr);
}

}  // namespace
}  // namespace keelson::audit
