#include "storage/encoded_forms.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace keelson::storage {
namespace {

ObjectPtr NewObject(EncodedForms& forms, int number) {
  return ObjectPtr(new Object("/pods/" + std::to_string(number), 1, SharedBytes("stored"), {}, &forms));
}

TEST(EncodedForms, AccountsAndReleases) {
  EncodedForms forms(1000);
  ObjectPtr object = NewObject(forms, 1);
  EXPECT_TRUE(object->GetForm(0).empty());
  object->SetForm(0, SharedBytes("json"));
  object->SetForm(1, SharedBytes("table"));
  EXPECT_EQ(object->GetForm(0).view(), "json");
  EXPECT_EQ(forms.bytes(), 9u);
  object->SetForm(0, SharedBytes("j"));
  EXPECT_EQ(forms.bytes(), 6u);
  EXPECT_EQ(forms.hits(), 1u);
  EXPECT_EQ(forms.misses(), 1u);
  forms.set_bytes_max(0);
  EXPECT_EQ(forms.bytes(), 0u);
  EXPECT_TRUE(object->GetForm(0).empty());
  forms.set_bytes_max(1000);
  object->SetForm(2, SharedBytes("again"));
  object = nullptr;
  EXPECT_EQ(forms.bytes(), 0u);
}

TEST(EncodedForms, LimitFollowsTheStoredBytes) {
  EncodedForms forms(EncodedForms::Bounds{.bytes_min = 100, .bytes_max = 1000});
  EXPECT_EQ(forms.bytes_max(), 100u);
  std::vector<ObjectPtr> objects;
  const auto add = [&](std::size_t stored) {
    objects.emplace_back(new Object("/pods/x", 1, SharedBytes(std::string(stored, 's')), {}, &forms));
    objects.back()->SetForm(0, SharedBytes(std::string(stored, 'x')));
  };
  add(200);
  EXPECT_EQ(forms.bytes_max(), 400u);
  add(200);
  EXPECT_EQ(forms.bytes(), 400u);
  objects.pop_back();
  EXPECT_EQ(forms.bytes_max(), 400u);
  for (int i = 0; i < 10; ++i) add(200);
  EXPECT_EQ(forms.bytes_max(), 1000u);
  EXPECT_LE(forms.bytes(), 1000u);
  objects.clear();
  EXPECT_EQ(forms.bytes_max(), 100u);
}

TEST(EncodedForms, EvictsUnusedFormsFirst) {
  EncodedForms forms(1000);
  std::vector<ObjectPtr> objects;
  for (int i = 0; i < 100; ++i) {
    objects.push_back(NewObject(forms, i));
    objects.back()->SetForm(0, SharedBytes(std::string(100, 'x')));
    (void)objects[0]->GetForm(0);  // in use all the time
    EXPECT_LE(forms.bytes(), 1000u);
  }
  EXPECT_FALSE(objects[0]->GetForm(0).empty());
  EXPECT_GE(forms.dropped(), 20u);  // the others found no room
  // Larger than everything: not kept at all.
  objects[1]->SetForm(1, SharedBytes(std::string(2000, 'x')));
  EXPECT_TRUE(objects[1]->GetForm(1).empty());
  forms.set_bytes_max(0);
  EXPECT_EQ(forms.bytes(), 0u);
  objects.clear();
}

TEST(EncodedForms, ScanLargerThanTheBudgetStillHits) {
  EncodedForms forms(1000);
  std::vector<ObjectPtr> objects;
  for (int i = 0; i < 12; ++i) objects.push_back(NewObject(forms, i));
  for (int round = 0; round < 20; ++round) {
    int hits = 0;
    for (const ObjectPtr& object : objects) {
      if (!object->GetForm(0).empty()) {
        ++hits;
      } else {
        object->SetForm(0, SharedBytes(std::string(100, 'x')));
      }
    }
    if (round > 1) EXPECT_GE(hits, 6) << round;
  }
  objects.clear();
}

// Four LISTs at once, each at another place, of a fifth more than fits: one must not evict the forms that the others
// need next.
TEST(EncodedForms, ConcurrentScansStillHit) {
  constexpr std::size_t kObjects = 12, kWalkers = 4;
  EncodedForms forms(1000);
  std::vector<ObjectPtr> objects;
  for (std::size_t i = 0; i < kObjects; ++i) objects.push_back(NewObject(forms, static_cast<int>(i)));
  for (int round = 0; round < 20; ++round) {
    std::size_t hits = 0;
    for (std::size_t i = 0; i < kObjects * kWalkers; ++i) {
      const ObjectPtr& object = objects[(i / kWalkers + i % kWalkers * (kObjects / kWalkers)) % kObjects];
      if (!object->GetForm(0).empty()) {
        ++hits;
      } else {
        object->SetForm(0, SharedBytes(std::string(100, 'x')));
      }
    }
    if (round > 1) EXPECT_GE(hits, 9 * kWalkers) << round;
  }
  objects.clear();
}

TEST(EncodedForms, FromManyThreads) {
  EncodedForms forms(5000);
  std::vector<ObjectPtr> objects;
  for (int i = 0; i < 50; ++i) objects.push_back(NewObject(forms, i));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 5000; ++i) {
        const ObjectPtr object = objects[(i * 7 + t) % objects.size()];
        const SharedBytes form = object->GetForm(t % 2);
        if (form.empty()) object->SetForm(t % 2, SharedBytes(std::string(150 + t, 'x')));
        if (i % 100 == 0) forms.set_bytes_max(t % 2 == 0 ? 2500 : 5000);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(forms.bytes(), 5000u);
  objects.clear();
  EXPECT_EQ(forms.bytes(), 0u);
}

}  // namespace
}  // namespace keelson::storage
