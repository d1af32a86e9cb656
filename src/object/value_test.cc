#include "object/value.h"

#include <gtest/gtest.h>

#include <ctime>
#include <map>

#include "base/colliding_keys_test.h"
#include "base/testing/seeded_random.h"

namespace keelson::object {
namespace {

TEST(Value, ReadsChainThroughAbsentMembers) {
  Arena arena;
  Value pod = Value::Map(arena);
  pod.EnsureMap(arena, "spec").Set(arena, "nodeName", "n1");
  EXPECT_EQ(pod["spec"]["nodeName"].as_string(), "n1");
  EXPECT_TRUE(pod["status"]["phase"].is_null());
  EXPECT_EQ(pod.Get("spec", "nodeName").as_string(), "n1");
  EXPECT_TRUE(pod["spec"]["nodeName"]["x"][std::size_t{3}].is_null());
}

TEST(Value, CopiesShareAndClonesDoNot) {
  Arena arena;
  Value a = Value::Map(arena);
  a.Set(arena, "list", Value::List(arena));
  Value shared = a;
  Value clone = a.Clone(arena);
  a["list"].Append(arena, 1);
  EXPECT_EQ(shared["list"].size(), 1u);
  EXPECT_EQ(clone["list"].size(), 0u);
}

TEST(Value, LargeMapsStayIndexed) {
  Arena arena;
  Value map = Value::Map(arena);
  for (int i = 0; i < 100000; ++i) map.Set(arena, arena.Copy("key-" + std::to_string(i)), i);
  EXPECT_EQ(map.size(), 100000u);
  for (int i = 0; i < 100000; i += 777) EXPECT_EQ(map["key-" + std::to_string(i)].as_int(), i);
  EXPECT_FALSE(map.Has("key-100000"));
  map.Set(arena, "key-5", -5);
  EXPECT_EQ(map.size(), 100000u);
  EXPECT_TRUE(map.Erase("key-0"));
  EXPECT_FALSE(map.Has("key-0"));
  EXPECT_EQ(map["key-99999"].as_int(), 99999);
  EXPECT_EQ(map.members()[0].key, "key-99999");  // the last one took the gap
}

double CPUSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(Value, KeysThatCollideInTheLibrarysHashStayCheap) {
  Arena arena;
  const auto keys = base::CollidingKeys(16'384);  // a quarter of a second before; minutes with what a body can hold
  const double started = CPUSeconds();
  Value map = Value::Map(arena);
  for (const std::string& key : keys) map.Set(arena, key, 1);
  for (const std::string& key : keys) ASSERT_TRUE(map.Has(key));
  EXPECT_LT(CPUSeconds() - started, 0.2);
}

TEST(Value, ErasingAllMembersOfALargeMapIsLinear) {
  Arena arena;
  std::vector<std::string> keys;
  for (int i = 0; i < 200'000; ++i) keys.push_back("key-" + std::to_string(i));
  Value map = Value::Map(arena);
  for (const std::string& key : keys) map.Set(arena, key, 1);
  const double started = CPUSeconds();
  for (const std::string& key : keys) ASSERT_TRUE(map.Erase(key));
  EXPECT_TRUE(map.empty());
  EXPECT_LT(CPUSeconds() - started, 2);
}

TEST(Value, IndexedMapEqualsAModelUnderAnyChanges) {
  Arena arena;
  auto random = base::Seeded(7);
  Value map = Value::Map(arena);
  std::map<std::string, int> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::string key = "k" + std::to_string(random->Below(200));
    if (random->Below(2) == 0) {
      map.Set(arena, arena.Copy(key), step);
      model[key] = step;
    } else {
      EXPECT_EQ(map.Erase(key), model.erase(key) == 1);
    }
    ASSERT_EQ(map.size(), model.size());
    if (step % 100 != 0) continue;
    for (int i = 0; i < 200; ++i) {
      const std::string one = "k" + std::to_string(i);
      const auto wanted = model.find(one);
      ASSERT_EQ(map.Has(one), wanted != model.end());
      if (wanted != model.end()) ASSERT_EQ(map[one].as_int(), wanted->second);
    }
  }
}

TEST(Value, EqualityIgnoresOrderOfMembers) {
  Arena arena;
  Value a = Value::Map(arena);
  a.Set(arena, "x", 1);
  a.Set(arena, "y", "t");
  Value b = Value::Map(arena);
  b.Set(arena, "y", "t");
  b.Set(arena, "x", 1.0);
  EXPECT_EQ(a, b);
  b.Set(arena, "x", Value());
  EXPECT_FALSE(a == b);
}

TEST(Value, ListsInsertAndRemove) {
  Arena arena;
  Value list = Value::List(arena);
  for (int i = 0; i < 10; ++i) list.Append(arena, i);
  list.Insert(arena, 0, -1);
  list.Remove(5);
  EXPECT_EQ(list.size(), 10u);
  EXPECT_EQ(list[std::size_t{0}].as_int(), -1);
  EXPECT_EQ(list[std::size_t{5}].as_int(), 5);
}

// Every length and every place of the one byte that differs.
TEST(Value, FindsKeysOfAllLengths) {
  for (std::size_t size = 0; size <= 40; ++size) {
    Arena arena;
    Value map = Value::Map(arena);
    const std::string key(size, 'k');
    for (std::size_t i = 0; i < size && i < 20; ++i) {
      std::string other = key;
      other[size - 1 - i] = 'x';
      map.Set(arena, arena.Copy(other), Value(static_cast<std::int64_t>(i)));
    }
    EXPECT_FALSE(map.Has(key)) << size;
    for (std::size_t i = 0; i < size && i < 20; ++i) {
      std::string other = key;
      other[size - 1 - i] = 'x';
      EXPECT_EQ(map[other].as_int(-1), static_cast<std::int64_t>(i)) << size;
    }
    map.Set(arena, arena.Copy(key), Value(true));
    EXPECT_TRUE(map[key].as_bool()) << size;
  }
}

// The key filter follows insertions and removals, across the size at which a map gets a hash table.
TEST(Value, FindsKeysWhileTheyComeAndGo) {
  Arena arena;
  Value map = Value::Map(arena);
  const auto key = [&](int i) {
    return arena.Copy(std::string(static_cast<std::size_t>(i) % 7, 'a') + std::to_string(i));
  };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 40; ++i) {
      EXPECT_FALSE(map.Has(key(i))) << i;
      map.Set(arena, key(i), i);
      for (int k = 0; k <= i; ++k) EXPECT_EQ(map[key(k)].as_int(-1), k);
      EXPECT_FALSE(map.Has("absent"));
      EXPECT_FALSE(map.Has(""));
    }
    for (int i = 0; i < 40; i += 2) EXPECT_TRUE(map.Erase(key(i)));
    for (int i = 0; i < 40; ++i) EXPECT_EQ(map.Has(key(i)), i % 2 == 1);
    if (round == 0) {
      map.Clear();
    } else {
      for (int i = 1; i < 40; i += 2) EXPECT_TRUE(map.Erase(key(i)));
    }
    EXPECT_TRUE(map.empty());
  }
}

TEST(Value, ClonesAndReplacedMembersKeepTheirPlace) {
  Arena arena;
  Value map = Value::Map(arena);
  for (Value value : {Value(1), Value("text"), Value::Raw("{}"), Value::List(arena), Value::Map(arena)}) {
    value.set_place(7);
    map.AppendMember(arena, arena.Copy(std::to_string(map.size())), value);
  }
  for (const bool copy_text : {false, true}) {
    const Value clone = map.Clone(arena, copy_text);
    EXPECT_EQ(clone, map);
    for (const Member& member : clone.members()) EXPECT_EQ(member.value.place(), 7);
  }
  map.Set(arena, "0", "other");
  EXPECT_EQ(map["0"].place(), 7);
}

}  // namespace
}  // namespace keelson::object
