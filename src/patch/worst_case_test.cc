// Patches that are meant to hurt, up to what a body of three megabytes holds: CPU grows no faster than the input, and
// nothing takes long.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

#include "base/colliding_keys_test.h"
#include "base/scaling_test.h"
#include "object/json_text.h"
#include "patch/field_manager.h"
#include "patch/json_patch.h"
#include "patch/merge_patch.h"
#include "patch/strategic_merge.h"
#include "patch/test_json.h"
#include "schema/schema.h"

namespace keelson::patch {
namespace {

using base::Arena;

constexpr double kCPUSecondsMax = 3;  // generous: sanitizers, slow machines. Without them none takes 0.5 s.

// "<open>item(0),item(1),...<close>"
std::string Many(std::size_t count, std::string_view open, std::string_view close,
                 const std::function<std::string(std::size_t)>& item) {
  std::string out(open);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    out += item(i);
  }
  return out + std::string(close);
}
std::string Number(std::size_t i) { return std::to_string(i); }

enum class How : std::uint8_t { kMerge, kJSON, kStrategic };

struct Case {
  const char* name;
  How how;
  std::size_t large;  // elements of about three megabytes
  std::function<std::string(std::size_t)> document;
  std::function<std::string(std::size_t)> patch;
};

std::string Data(std::size_t count, std::string_view value) {
  return Many(count, R"({"data":{)", "}}",
              [&](std::size_t i) { return "\"k" + Number(i) + "\":" + std::string(value); });
}
std::string Finalizers(std::size_t count) {
  return Many(count, R"({"metadata":{"finalizers":[)", "]}}", [](std::size_t i) { return "\"f" + Number(i) + "\""; });
}
std::string Owners(std::size_t count, std::string_view more) {
  return Many(count, R"({"metadata":{"ownerReferences":[)", "]}}",
              [&](std::size_t i) { return "{\"uid\":\"u" + Number(i) + "\"" + std::string(more) + "}"; });
}
std::string Operations(std::size_t count, const std::function<std::string(std::size_t)>& item) {
  return Many(std::min<std::size_t>(count, kJSONPatchOperationsMax), "[", "]", item);
}

std::vector<Case> Cases() {
  const auto empty = [](std::size_t) { return std::string("{}"); };
  return {
      {"merge: null members of as many", How::kMerge, 100'000, [](std::size_t n) { return Data(n, "\"v\""); },
       [](std::size_t n) { return Data(n, "null"); }},
      {"merge: new members", How::kMerge, 150'000, empty, [](std::size_t n) { return Data(n, "\"v\""); }},
      {"strategic: null members of as many", How::kStrategic, 100'000, [](std::size_t n) { return Data(n, "\"v\""); },
       [](std::size_t n) { return Data(n, "null"); }},
      {"strategic: retained keys", How::kStrategic, 100'000, [](std::size_t n) { return Data(n, "\"v\""); },
       [](std::size_t n) {
         return Many(n, R"({"data":{"$retainKeys":[)", "]}}",
                     [](std::size_t i) { return "\"k" + Number(2 * i) + "\""; });
       }},
      {"strategic: deletions from a list of maps", How::kStrategic, 40'000, [](std::size_t n) { return Owners(n, ""); },
       [](std::size_t n) { return Owners(n, R"(,"$patch":"delete")"); }},
      {"strategic: deletions from a list of texts", How::kStrategic, 150'000, Finalizers,
       [](std::size_t n) {
         return Many(n, R"({"metadata":{"$deleteFromPrimitiveList/finalizers":[)", "]}}",
                     [](std::size_t i) { return "\"f" + Number(i) + "\""; });
       }},
      {"strategic: an order of texts", How::kStrategic, 150'000, Finalizers,
       [](std::size_t n) {
         return Many(n, R"({"metadata":{"$setElementOrder/finalizers":[)", "]}}",
                     [n](std::size_t i) { return "\"f" + Number(n - 1 - i) + "\""; });
       }},
      {"strategic: an order of maps", How::kStrategic, 60'000, [](std::size_t n) { return Owners(n, ""); },
       [](std::size_t n) {
         return Many(n, R"({"metadata":{"$setElementOrder/ownerReferences":[)", "]}}",
                     [n](std::size_t i) { return "{\"uid\":\"u" + Number(n - 1 - i) + "\"}"; });
       }},
      {"strategic: merged list of maps", How::kStrategic, 60'000, [](std::size_t n) { return Owners(n, ""); },
       [](std::size_t n) { return Owners(n, R"(,"kind":"x")"); }},
      {"JSON: removed members", How::kJSON, 10'000, [](std::size_t n) { return Data(10 * n, "\"v\""); },
       [](std::size_t n) {
         return Operations(n, [](std::size_t i) { return R"({"op":"remove","path":"/data/k)" + Number(i) + "\"}"; });
       }},
      {"JSON: items removed from the front", How::kJSON, 10'000, [](std::size_t n) { return Finalizers(n); },
       [](std::size_t n) {
         return Operations(
             n, [](std::size_t) { return std::string(R"({"op":"remove","path":"/metadata/finalizers/0"})"); });
       }},
      {"JSON: tests", How::kJSON, 10'000, [](std::size_t n) { return Data(10 * n, "\"v\""); },
       [](std::size_t n) {
         return Operations(
             n, [](std::size_t i) { return R"({"op":"test","path":"/data/k)" + Number(i) + R"(","value":"v"})"; });
       }},
      {"JSON: moves", How::kJSON, 10'000, [](std::size_t n) { return Data(10 * n, "\"v\""); },
       [](std::size_t n) {
         return Operations(n, [](std::size_t i) {
           return R"({"op":"move","from":"/data/k)" + Number(i) + R"(","path":"/data/m)" + Number(i) + "\"}";
         });
       }},
  };
}

// False: the patch was refused, which costs nothing worth measuring.
bool Apply(How how, const std::string& document_text, const std::string& patch_text) {
  Arena arena;
  const Value document = J(arena, document_text);
  const Value patch = J(arena, patch_text);
  switch (how) {
    case How::kMerge:
      return ApplyMergePatch(arena, document, patch, true).ok();
    case How::kJSON:
      return ApplyJSONPatch(arena, document, patch).ok();
    case How::kStrategic:
      return ApplyStrategicMergePatch(arena, document, patch, *schema::FindKind("", "v1", "ConfigMap")).ok();
  }
  return false;
}

TEST(WorstCase, PatchesAreLinear) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const std::size_t small = c.large / 5;
    const std::string documents[] = {c.document(small), c.document(c.large)};
    const std::string patches[] = {c.patch(small), c.patch(c.large)};
    const auto scaling = base::Measure(
        [&](std::size_t n) {
          const std::size_t at = n == small ? 0 : 1;
          EXPECT_TRUE(Apply(c.how, documents[at], patches[at]));
        },
        small, c.large);
    EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope;
    EXPECT_LT(scaling.large, kCPUSecondsMax);
    std::printf("%-45s %.3f s for %zu, slope %.2f\n", c.name, scaling.large, c.large, scaling.slope);
  }
}

TEST(WorstCase, ApplyIsLinear) {
  const FieldManager manager({.type = schema::FindKind("", "v1", "ConfigMap"), .kind = {"", "v1", "ConfigMap"}});
  const auto config = [](std::string_view metadata, std::string_view data) {
    return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n")" + std::string(metadata) + R"(},"data":{)" +
           std::string(data) + "}}";
  };
  struct Applied {
    const char* name;
    std::size_t large;
    std::function<std::string(std::size_t)> body;
  };
  const Applied kCases[] = {
      {"members", 100'000,
       [&](std::size_t n) {
         return config("", Many(n, "", "", [](std::size_t i) { return "\"k" + Number(i) + "\":\"v\""; }));
       }},
      {"a list of maps", 30'000,
       [&](std::size_t n) {
         return config(Many(n, R"(,"ownerReferences":[)", "]",
                            [](std::size_t i) {
                              return R"({"apiVersion":"v1","kind":"x","name":"x","uid":"u)" + Number(i) + "\"}";
                            }),
                       R"("k":"v")");
       }},
      {"a set", 100'000,
       [&](std::size_t n) {
         return config(Many(n, R"(,"finalizers":[)", "]", [](std::size_t i) { return "\"f" + Number(i) + "\""; }),
                       R"("k":"v")");
       }},
  };
  for (const Applied& c : kCases) {
    SCOPED_TRACE(c.name);
    const std::size_t small = c.large / 5;
    // One request of each kind, on what the first one made.
    Arena arena;
    struct Prepared {
      Value body, first;
    };
    const auto prepare = [&](std::size_t n) {
      const Value body = J(arena, c.body(n));
      const auto first = manager.Apply(arena, Value(), body, "a", false, "2026-11-16T03:04:05Z");
      EXPECT_TRUE(first.ok()) << first.error().message();
      return Prepared{.body = body, .first = first.ok() ? *first : Value()};
    };
    const Prepared prepared[] = {prepare(small), prepare(c.large)};
    const std::pair<const char*, std::function<void(Arena&, const Prepared&)>> kRequests[] = {
        {"new",
         [&](Arena& own, const Prepared& p) {
           EXPECT_TRUE(manager.Apply(own, Value(), p.body, "a", false, "2026-11-16T03:04:05Z").ok());
         }},
        {"by another",
         [&](Arena& own, const Prepared& p) {
           EXPECT_TRUE(manager.Apply(own, p.first, p.body, "b", false, "2026-11-16T03:04:06Z").ok());
         }},
        {"update",
         [&](Arena& own, const Prepared& p) {
           manager.Update(own, p.first, p.first.Clone(own), "c", "2026-11-16T03:04:07Z");
         }},
    };
    for (const auto& [request, run] : kRequests) {
      const auto scaling = base::Measure(
          [&](std::size_t n) {
            Arena own;
            run(own, prepared[n == small ? 0 : 1]);
          },
          small, c.large);
      EXPECT_FALSE(base::IsSuperLinear(scaling)) << request << ": slope " << scaling.slope;
      EXPECT_LT(scaling.large, kCPUSecondsMax);
      std::printf("apply: %-20s %-15s %.3f s for %zu, slope %.2f\n", c.name, request, scaling.large, c.large,
                  scaling.slope);
    }
  }
}

TEST(WorstCase, JSONPatchThatShiftsALongListForeverIsRefused) {
  const std::string document = Many(700'000, R"({"list":[)", "]}", [](std::size_t) { return std::string("1"); });
  const std::string patch =
      Operations(10'000, [](std::size_t) { return std::string(R"({"op":"remove","path":"/list/0"})"); });
  Arena arena;
  const Value parsed = J(arena, document);
  const Value operations = J(arena, patch);
  const double seconds = base::CPUOf(
      [&] {
        const auto patched = ApplyJSONPatch(arena, parsed, operations);
        ASSERT_FALSE(patched.ok());
        EXPECT_EQ(patched.error().code(), 413);
      },
      1);
  EXPECT_LT(seconds, kCPUSecondsMax);
}

TEST(WorstCase, StrategicPatchThatMergesOneElementAgainAndAgainIsRefused) {
  const std::string document = Many(20'000, R"({"spec":{"containers":[{"name":"c","env":[)", "]}]}}",
                                    [](std::size_t i) { return "{\"name\":\"e" + Number(i) + "\"}"; });
  const std::string patch = Many(40'000, R"({"spec":{"containers":[)", "]}}",
                                 [](std::size_t) { return std::string(R"({"name":"c","env":[{"name":"x"}]})"); });
  Arena arena;
  const Value parsed = J(arena, document);
  const Value changes = J(arena, patch);
  const double seconds = base::CPUOf(
      [&] {
        const auto patched = ApplyStrategicMergePatch(arena, parsed, changes, *schema::FindKind("", "v1", "Pod"));
        ASSERT_FALSE(patched.ok());
        EXPECT_EQ(patched.error().code(), 413);
      },
      1);
  EXPECT_LT(seconds, kCPUSecondsMax);
}

TEST(WorstCase, CollidingKeysInAMergeList) {
  const auto keys = base::CollidingKeys(8192);
  const auto list = [&](std::size_t n) {
    return Many(n, R"({"metadata":{"finalizers":[)", "]}}", [&](std::size_t i) { return "\"" + keys[i] + "\""; });
  };
  const double seconds = base::CPUOf([&] { EXPECT_TRUE(Apply(How::kStrategic, list(8192), list(8192))); }, 1);
  EXPECT_LT(seconds, 0.7);
}

// The long name is part of each error's path: tens of gigabytes without a bound.
TEST(WorstCase, ErrorsBelowALongNameAreBounded) {
  const FieldManager manager({.type = schema::FindKind("", "v1", "Pod"), .kind = {"", "v1", "Pod"}});
  const std::string body =
      Many(20'000,
           R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":")" +
               std::string(500'000, 'k') + R"(","args":[)",
           "]}]}}", [](std::size_t) { return std::string("1"); });
  Arena arena;
  const auto applied = manager.Apply(arena, Value(), J(arena, body), "a", false, "2026-11-16T03:04:05Z");
  ASSERT_FALSE(applied.ok());
  EXPECT_LT(applied.error().message().size(), std::size_t{4} << 20);
  EXPECT_TRUE(applied.error().message().ends_with(" more errors")) << applied.error().message().substr(0, 100);
}

}  // namespace
}  // namespace keelson::patch
