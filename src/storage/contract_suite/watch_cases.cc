// The contract of Watch.
#include "storage/contract_suite/contract.h"

namespace keelson::storage {
namespace {

std::string At(const ObjectPtr& object) { return "@" + std::to_string(object->resource_version()); }
std::string RV(const ObjectPtr& object) { return std::to_string(object->resource_version()); }

TEST_P(Contract, WatchFromRevision) {
  const ObjectPtr a = MustCreate({.name = "a"});
  const ObjectPtr b = MustCreate({.name = "b"});
  auto watch = MustWatch("/pods", {.resource_version = RV(a)});
  EXPECT_EQ(watch->NextText(), "ADDED default/b" + At(b));
  const ObjectPtr changed = MustUpdate({.name = "a", .data = "2"});
  EXPECT_EQ(watch->NextText(), "MODIFIED default/a" + At(changed));
  const ObjectPtr deleted = MustDelete({.name = "a"});
  const auto event = watch->Next();
  ASSERT_TRUE(event);
  EXPECT_EQ(ToText(*event), "DELETED default/a" + At(deleted));
  EXPECT_EQ(event->object->stored(), deleted->stored());
}

TEST_P(Contract, WatchSeesObjectsEnterAndLeaveTheSelection) {
  const ObjectPtr start = MustCreate({.name = "z"});
  auto watch = MustWatch("/pods", {.resource_version = RV(start), .predicate = Select("app=web", "")});
  MustCreate({.name = "a", .app = "db"});
  const ObjectPtr enters = MustUpdate({.name = "a", .app = "web"});
  EXPECT_EQ(watch->NextText(), "ADDED default/a" + At(enters));
  const ObjectPtr stays = MustUpdate({.name = "a", .app = "web", .data = "2"});
  EXPECT_EQ(watch->NextText(), "MODIFIED default/a" + At(stays));
  const ObjectPtr leaves = MustUpdate({.name = "a", .app = "db", .data = "3"});
  const auto event = watch->Next();
  ASSERT_TRUE(event);
  EXPECT_EQ(ToText(*event), "DELETED default/a" + At(leaves));
  EXPECT_EQ(event->object->attributes().labels[0].second, "web");  // the old object
  EXPECT_NE(event->object->stored().view().find("data=2\n"), std::string_view::npos);
  MustDelete({.name = "a"});
  const ObjectPtr b = MustCreate({.name = "b", .app = "web"});
  EXPECT_EQ(watch->NextText(), "ADDED default/b" + At(b));
}

TEST_P(Contract, WatchOfNamespaceAndOfOneObject) {
  const ObjectPtr start = MustCreate({.name = "z", .name_space = "x"});
  auto space = MustWatch("/pods/default", {.resource_version = RV(start), .scope_namespace = "default"});
  auto one = MustWatch("/pods/default/b", {.resource_version = RV(start),
                                           .predicate = Select("", "metadata.name=b"),
                                           .recursive = false,
                                           .scope_namespace = "default",
                                           .scope_name = "b"});
  MustCreate({.name = "a", .name_space = "default-2"});
  const ObjectPtr a = MustCreate({.name = "a"});
  const ObjectPtr b = MustCreate({.name = "b"});
  MustCreate({.name = "b", .name_space = "other"});
  const ObjectPtr changed = MustUpdate({.name = "b", .data = "2"});
  EXPECT_EQ(space->NextText(), "ADDED default/a" + At(a));
  EXPECT_EQ(space->NextText(), "ADDED default/b" + At(b));
  EXPECT_EQ(space->NextText(), "MODIFIED default/b" + At(changed));
  EXPECT_EQ(one->NextText(), "ADDED default/b" + At(b));
  EXPECT_EQ(one->NextText(), "MODIFIED default/b" + At(changed));
}

TEST_P(Contract, WatchBeginsWithTheState) {
  const ObjectPtr b = MustCreate({.name = "b"});
  const ObjectPtr a = MustCreate({.name = "a", .app = "web"});
  auto watch = MustWatch(
      "/pods", {.resource_version = RV(a), .predicate = {.allow_watch_bookmarks = true}, .send_initial_events = true});
  EXPECT_EQ(watch->NextText(), "ADDED default/a" + At(a));
  EXPECT_EQ(watch->NextText(), "ADDED default/b" + At(b));
  const auto end = watch->Next();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->initial_events_end);
  EXPECT_GE(end->resource_version, a->resource_version());
  const ObjectPtr c = MustCreate({.name = "c"});
  EXPECT_EQ(watch->NextText(), "ADDED default/c" + At(c));

  auto selected =
      MustWatch("/pods", {.resource_version = RV(c), .predicate = Select("app=web", ""), .send_initial_events = true});
  EXPECT_EQ(selected->NextText(), "ADDED default/a" + At(a));
  const ObjectPtr d = MustCreate({.name = "d", .app = "web"});
  EXPECT_EQ(selected->NextText(), "ADDED default/d" + At(d));
}

TEST_P(Contract, WatchOfTheLatestState) {
  const ObjectPtr a = MustCreate({.name = "a"});
  // "" with initial events is consistent: what was written before is there.
  auto watch = MustWatch("/pods", {.predicate = {.allow_watch_bookmarks = true}, .send_initial_events = true});
  EXPECT_EQ(watch->NextText(), "ADDED default/a" + At(a));
  EXPECT_TRUE(watch->Next()->initial_events_end);
  // "" without: only what comes.
  auto later = MustWatch("/pods", {.send_initial_events = false});
  const ObjectPtr b = MustCreate({.name = "b"});
  EXPECT_EQ(later->NextText(), "ADDED default/b" + At(b));
  EXPECT_EQ(watch->NextText(), "ADDED default/b" + At(b));
}

TEST_P(Contract, WatchFromTheFutureIsSilentUntilThen) {
  const ObjectPtr a = MustCreate({.name = "a"});
  auto watch = MustWatch("/pods", {.resource_version = std::to_string(a->resource_version() + 2)});
  MustCreate({.name = "b"});
  MustCreate({.name = "c"});
  const ObjectPtr d = MustCreate({.name = "d"});
  EXPECT_EQ(watch->NextText(), "ADDED default/d" + At(d));
}

}  // namespace
}  // namespace keelson::storage
