// A JSON-shaped tree in a request's arena, for the write path: decode, default, admit, validate, patch, encode.
// A Value is a handle of sixteen bytes. Scalars are values; a list or a map is shared by its copies, so a change made
// through one handle is seen through the others: Clone() first where that is not wanted. Thread safety: none. Lifetime:
// no longer than the arena (and than any text that was put in without copying).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"

namespace keelson::object {

using base::Arena;

struct Member;

class Value {
 public:
  enum class Kind : std::uint8_t { kNull, kBool, kInt, kDouble, kString, kRaw, kList, kMap };

  constexpr Value() = default;
  constexpr Value(bool value) : kind_(Kind::kBool), bool_(value) {}        // NOLINT: literals read well in tables
  constexpr Value(std::int64_t value) : kind_(Kind::kInt), int_(value) {}  // NOLINT
  constexpr Value(int value) : kind_(Kind::kInt), int_(value) {}           // NOLINT
  constexpr Value(double value) : kind_(Kind::kDouble), double_(value) {}  // NOLINT
  // The text is not copied: it must outlive the arena's use (a literal, a table's string, arena text). See String().
  constexpr Value(std::string_view text)  // NOLINT
      : kind_(Kind::kString), size_(static_cast<std::uint32_t>(text.size())), text_(text.data()) {}
  constexpr Value(const char* text) : Value(std::string_view(text)) {}  // NOLINT
  Value(std::string&&) = delete;                                        // would dangle

  static Value String(Arena& arena, std::string_view text) { return Value(arena.Copy(text)); }
  // Unparsed JSON text (RawExtension, FieldsV1, JSON).
  static Value Raw(std::string_view json) {
    Value value(json);
    value.kind_ = Kind::kRaw;
    return value;
  }
  static Value List(Arena& arena, std::size_t capacity = 0);
  static Value Map(Arena& arena, std::size_t capacity = 0);
  // Lists and maps whose content is known: one exact allocation, for decoders. REQUIRES: the keys of `members` are
  // distinct.
  static Value ListOf(Arena& arena, std::span<const Value> items);
  static Value MapOf(Arena& arena, std::span<const Member> members);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_int() const { return kind_ == Kind::kInt; }
  bool is_double() const { return kind_ == Kind::kDouble; }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_raw() const { return kind_ == Kind::kRaw; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_map() const { return kind_ == Kind::kMap; }

  // The scalar, or the fallback where this is something else.
  bool as_bool(bool fallback = false) const { return is_bool() ? bool_ : fallback; }
  std::int64_t as_int(std::int64_t fallback = 0) const { return is_int() ? int_ : fallback; }
  double as_double(double fallback = 0) const {
    return is_double() ? double_ : is_int() ? static_cast<double>(int_) : fallback;
  }
  std::string_view as_string() const { return is_string() ? std::string_view(text_, size_) : std::string_view(); }
  std::string_view as_raw() const { return is_raw() ? std::string_view(text_, size_) : std::string_view(); }

  // Lists and maps. Reading what is not there gives null, an empty span or zero, so that reads chain:
  // pod["spec"]["nodeName"].
  std::size_t size() const {  // items or members; 0 for anything else
    return is_list() ? list_->size : is_map() ? map_->size : 0;
  }
  bool empty() const { return size() == 0; }
  std::span<Value> items() const;     // empty if this is not a list
  std::span<Member> members() const;  // in insertion order; empty if this is not a map
  // Inlined, so that nothing is left of a literal key but a bit to look for.
  [[gnu::always_inline]] Value operator[](std::string_view key) const {
    const Value* found = Find(key);
    return found == nullptr ? Value() : *found;
  }
  [[gnu::always_inline]] Value operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  Value operator[](std::size_t index) const;
  // The place of a member, for telling null from absent and for changing it; nullptr when absent. Valid until the map
  // changes.
  [[gnu::always_inline]] Value* Find(std::string_view key) const {
    if (!is_map() || !map_->MayHave(key)) return nullptr;
    return map_->Find(key);
  }
  [[gnu::always_inline]] bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // Follows keys: Get("metadata", "labels").
  template <class... Keys>
  Value Get(Keys... keys) const {
    Value at = *this;
    ((at = at[std::string_view(keys)]), ...);
    return at;
  }

  // REQUIRES: is_map(). The key is not copied; see Arena::Copy.
  void Set(Arena& arena, std::string_view key, Value value);
  // The same for a key that is known not to be there yet. REQUIRES: is_map(), !Has(key).
  void AppendMember(Arena& arena, std::string_view key, Value value);
  // False when there was none. Keeps the order of the rest, but in an indexed map the last member takes the gap.
  bool Erase(std::string_view key);
  // The map under `key`, made if it is absent or null. REQUIRES: is_map().
  Value EnsureMap(Arena& arena, std::string_view key);
  Value EnsureList(Arena& arena, std::string_view key);
  // REQUIRES: is_list().
  void Append(Arena& arena, Value item);
  void Insert(Arena& arena, std::size_t at, Value item);
  void Remove(std::size_t at);
  void Truncate(std::size_t size);  // REQUIRES: not above size().
  void Clear();                     // list or map
  void SortMembers();               // by key; lookups stay right. REQUIRES: is_map().
  // The same for two handles exactly when a change through one is seen through the other; nullptr for scalars.
  const void* identity() const {
    return is_list() ? static_cast<const void*>(list_) : is_map() ? static_cast<const void*>(map_) : nullptr;
  }

  // As a member of a map that a schema describes: the index of its key in the schema's tables (WireField::place).
  // Decoders note it so that encoders need no look-up; it is a hint that its reader checks, and 0 if unknown.
  std::uint16_t place() const { return place_; }
  void set_place(std::uint16_t place) { place_ = place; }

  // A deep copy of the structure; the texts stay where they are unless `copy_text`.
  Value Clone(Arena& arena, bool copy_text = false) const;

  // Semantic equality as Kubernetes' equality.Semantic has it for JSON-shaped data: maps regardless of order; null
  // equals absent only at the top. Integers and doubles of the same value are equal.
  friend bool operator==(const Value& a, const Value& b) { return Equal(a, b); }

 private:
  struct ListRep {
    Value* items;
    std::uint32_t size;
    std::uint32_t capacity;
  };
  // Up to kLinearMax members a lookup walks them, unless a filter with a bit for each key rules the key out (most
  // looked-up keys are absent); beyond that an open-addressing table of indices keeps it constant, so that a
  // body with 100,000 keys costs no more per key than a small one.
  struct MapRep {
    static constexpr std::uint32_t kLinearMax = 24;
    static constexpr std::uint32_t kWholeLinearMax = 48;  // of one built at once: look-ups in those are rare

    Member* members;
    std::uint32_t size;
    std::uint32_t capacity;
    union {
      std::uint64_t filter;  // of a small map, made at the first look-up; 0 before. Superfluous bits do no harm.
      std::uint32_t* table;  // index + 1, 0 is free
    };
    std::uint32_t table_mask;  // 0 while small

    // One of 64 bits. Constant where the key is.
    [[gnu::always_inline]] static constexpr std::uint64_t Bit(std::string_view key) {
      const std::size_t size = key.size();
      if (size == 0) return 1;
      const auto at = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(key[i])); };
      return std::uint64_t{1} << ((size * 7 + at(0) * 13 + at(size / 2) * 11 + at(size - 1)) & 63);
    }
    // Readers of one tree on several threads make the same filter, so how they meet does not matter.
    [[gnu::always_inline]] bool MayHave(std::string_view key) const {
      if (table_mask != 0) return true;
      const std::uint64_t known = __atomic_load_n(&filter, __ATOMIC_RELAXED);
      return known == 0 || (known & Bit(key)) != 0;
    }
    Value* Find(std::string_view key);
    std::int64_t IndexOf(std::string_view key) const;
    void BuildTable(Arena& arena);
    void Reindex();
    void AddToTable(std::uint32_t index);
    std::uint32_t SlotOf(std::uint32_t index) const;  // REQUIRES: indexed
    void EraseIndexed(std::uint32_t index);
    void Add(Arena& arena, std::string_view key, Value value);
  };
  static bool Equal(const Value& a, const Value& b);

  Kind kind_ = Kind::kNull;
  std::uint16_t place_ = 0;
  std::uint32_t size_ = 0;  // of the text
  union {
    bool bool_;
    std::int64_t int_ = 0;
    double double_;
    const char* text_;
    ListRep* list_;
    MapRep* map_;
  };
};
static_assert(sizeof(Value) == 16);

struct Member {
  std::string_view key;
  Value value;
};

inline std::span<Value> Value::items() const {
  if (!is_list()) return {};
  return {list_->items, list_->size};
}

inline std::span<Member> Value::members() const {
  if (!is_map()) return {};
  return {map_->members, map_->size};
}

}  // namespace keelson::object

namespace keelson {
using object::Value;
}
