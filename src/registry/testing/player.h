// Writes played through the write pipeline of the Store (registry/write_pipeline.h), without storage, admission and
// HTTP. For tests, on one thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/random.h"
#include "registry/write_pipeline.h"
#include "schema/schema.h"

namespace keelson::registry::testing {

// The parts of a path: /api/v1/namespaces/n/pods[/name[/sub]], /apis/g/v/...; null resource if the tables have none.
struct Target {
  const schema::Resource* resource = nullptr;
  std::string name_space;
  std::string name;
  std::string subresource;
};
Target ParsePath(std::string_view path);

// The day of the recordings: some cells show ages.
inline constexpr std::string_view kPlayedAt = "2026-11-16T03:04:05Z";
inline constexpr std::string_view kPlayedUID = "11111111-2222-4333-8444-555555555555";
class PlayedClock final : public base::Clock {
 public:
  SystemTime Now() const override { return SystemTime(std::chrono::seconds(1794798245)); }  // kPlayedAt
  SteadyTime Monotonic() const override { return {}; }
};

// Every UID is kPlayedUID.
class PlayedRandom final : public base::Random {
 public:
  void Fill(std::span<std::uint8_t> bytes) override;
};

class Player {
 public:
  // Replaces allocators and admission before validation; errors end the request. `old` is null on create.
  using BeforeValidation = std::function<FieldErrors(const Call& call, Value object, Value old)>;

  using FeatureEnabled = bool (*)(std::string_view gate);  // null: all gates are off

  explicit Player(BeforeValidation before_validation = nullptr, FeatureEnabled feature_enabled = nullptr)
      : before_validation_(std::move(before_validation)), feature_enabled_(feature_enabled) {}

  struct Outcome {
    bool ran = false;  // false: the body is none of the kind, or the kind or its subresource has no strategy
    std::vector<std::string> errors;  // field: message
    std::vector<std::string> warnings;
    Value object;  // in the hub's version, as it would be read back
  };

  // The JSON of an object of the target's kind; null where it is none.
  Value Decode(const Target& target, std::string_view json);
  // Between the target's version and the one in which strategies see the kind.
  Value ToHub(const Target& target, const Value& object);
  Value FromHub(const Target& target, const Value& object);
  // `object` is one that Decode made, `old` is in the hub's version. Neither is changed.
  Outcome Create(const Target& target, const Value& object);
  Outcome Update(const Target& target, const Value& object, const Value& old);
  // The cells of the row of an object in the hub's version; null if the kind has the default columns.
  Value Row(const Target& target, const Value& object);

  base::Arena& arena() { return arena_; }

 private:
  Outcome Write(const Target& target, const Value& given, const Value& old);
  Value Complete(const Target& target, const Strategy& strategy, const Value& given);
  Value ReadBack(const Target& target, const Strategy& strategy, const Value& object);
  meta::Result<void> Allocate(const StoredKind& kind, const Call& call, Value object, const Value& old);
  meta::Result<void> RunCreate(const StoredKind& kind, const Call& call, const Target& target, Value object);
  meta::Result<void> RunUpdate(const StoredKind& kind, const Call& call, const Endpoint& endpoint, Value object,
                               const Value& old);

  BeforeValidation before_validation_;
  FeatureEnabled feature_enabled_;
  base::Arena arena_;
  PlayedClock clock_;
  PlayedRandom random_;
};

}  // namespace keelson::registry::testing
