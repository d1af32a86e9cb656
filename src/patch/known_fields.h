// FieldsV1 texts that were read before, with their sets. Objects of one workload have the same managedFields: a text
// that was seen twice is parsed and reconciled with the schema once, and found again by its bytes.
// Thread safety: all members, from any thread. Ownership: a set lives as long as the KnownFields that is handed out.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "patch/field_set.h"
#include "patch/typed_value.h"

namespace keelson::patch {

struct KnownFields {
  std::string text;
  base::Arena arena;
  FieldSet set;            // reconciled with the schema
  bool canonical = false;  // the set is written as `text`
};

class KnownFieldsCache {
 public:
  static constexpr std::size_t kSlots = 64;               // texts; each has one slot
  static constexpr std::size_t kTextBytesMax = 8 * 1024;  // longer ones are not kept

  explicit KnownFieldsCache(TypeRef type) : type_(type) {}

  // Null for a text that was not seen lately, or is not FieldsV1.
  std::shared_ptr<const KnownFields> Find(std::string_view text) const;

 private:
  struct Slot {
    std::uint64_t seen = 0;  // the hash of the last looked-up text
    std::shared_ptr<const KnownFields> known;
  };
  using Slots = std::array<Slot, kSlots>;

  TypeRef type_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Slots> slots_;  // made on first use: most endpoints never see an update
};

}  // namespace keelson::patch
