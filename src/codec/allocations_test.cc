// No codec allocates per field: an object of a thousand containers costs a few blocks and buffers, whatever they hold.
#include "codec/allocations_test.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode_test.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define KEELSON_SANITIZED
#endif
#endif

namespace {
thread_local keelson::codec::Allocations now;
}

#ifndef KEELSON_SANITIZED
// The executable's malloc comes before the library's, for operator new too; it does the library's work.
extern "C" void* __libc_malloc(std::size_t bytes);  // NOLINT: the library's name
extern "C" void* malloc(std::size_t bytes) {        // NOLINT
  ++now.count;
  now.bytes += bytes;
  return __libc_malloc(bytes);
}
#endif

namespace keelson::codec {

bool Allocations::Counted() {
#ifdef KEELSON_SANITIZED
  return false;
#else
  return true;
#endif
}
Allocations Allocations::Now() { return now; }

namespace {

using base::Arena;

// A few fields of every sort that objects have, many times.
std::string ManyContainers(int count) {
  std::string text =
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"many","creationTimestamp":"2026-01-02T03:04:05Z",)"
      R"("labels":{"a":"b","c":"d"}},"spec":{"containers":[)";
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text +=
        R"({"name":"c)" + std::to_string(i) +
        R"(","image":"registry.example/a/rather/long/name:v1","command":["a","b"],"ports":[{"containerPort":80,)"
        R"("protocol":"TCP"}],"env":[{"name":"A","value":"<1>"}],"resources":{"limits":{"cpu":"100m","memory":"1Gi"}},)"
        R"("livenessProbe":{"httpGet":{"path":"/","port":"web"},"periodSeconds":10},"securityContext":{"privileged":false}})";
  }
  return text + "]}}";
}

TEST(Allocations, NumberIsIndependentOfFields) {
  if (!Allocations::Counted()) GTEST_SKIP() << "the sanitizer counts for itself";
  constexpr int kContainers = 1000;      // 19,000 fields
  constexpr std::size_t kCountMax = 24;  // blocks and buffers grow by doubling
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const std::string text = ManyContainers(kContainers);
  Arena arena;
  const auto count = [](auto what) {
    const Allocations before = Allocations::Now();
    what();
    return (Allocations::Now() - before).count;
  };
  Value value;
  EXPECT_LE(count([&] { value = DecodeJSON(arena, text, pod)->value; }), kCountMax);
  ASSERT_EQ(value["spec"]["containers"].size(), std::size_t{kContainers});
  std::string json, proto, transcoded;
  EXPECT_LE(count([&] { EncodeJSON(value, pod, json); }), kCountMax);
  EXPECT_LE(count([&] { EncodeProto(value, pod, proto); }), kCountMax);
  EXPECT_LE(count([&] { EXPECT_TRUE(DecodeProto(arena, proto, pod).ok()); }), kCountMax);
  EXPECT_LE(count([&] { EXPECT_TRUE(TranscodeProto(proto, pod, transcoded).ok()); }), kCountMax);
  EXPECT_EQ(transcoded, json);
}

// One of the usual size: a block for the tree, a string for the bytes.
TEST(Allocations, OfOneSmallObject) {
  if (!Allocations::Counted()) GTEST_SKIP() << "the sanitizer counts for itself";
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const std::string text = ManyContainers(2);
  const Allocations before = Allocations::Now();
  Arena arena;
  const auto decoded = DecodeJSON(arena, text, pod);
  std::string proto;
  EncodeProto(decoded->value, pod, proto);
  EXPECT_LE((Allocations::Now() - before).count, 4U);
}

}  // namespace
}  // namespace keelson::codec
