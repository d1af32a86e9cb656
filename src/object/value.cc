#include "object/value.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace keelson::object {

namespace {

std::size_t Hash(std::string_view key) { return base::SeededHash(key); }

template <class Word>
bool SameEnds(const char* a, const char* b, std::size_t size) {
  Word a_first, a_last, b_first, b_last;
  std::memcpy(&a_first, a, sizeof(Word));
  std::memcpy(&b_first, b, sizeof(Word));
  std::memcpy(&a_last, a + size - sizeof(Word), sizeof(Word));
  std::memcpy(&b_last, b + size - sizeof(Word), sizeof(Word));
  return ((a_first ^ b_first) | (a_last ^ b_last)) == 0;
}

// Keys are short, and look-ups most of what validation does: the library's comparison costs more to call than to run.
bool SameText(const char* a, const char* b, std::size_t size) {
  if (a == b) return true;
  if (size >= 8) {
    if (!SameEnds<std::uint64_t>(a, b, size)) return false;
    return size <= 16 || std::memcmp(a + 8, b + 8, size - 16) == 0;
  }
  if (size >= 4) return SameEnds<std::uint32_t>(a, b, size);
  return size == 0 || (a[0] == b[0] && a[size / 2] == b[size / 2] && a[size - 1] == b[size - 1]);
}

// For a handful, which is what most lists and maps have: without a call.
template <class T>
void CopyFew(const T* from, std::size_t count, T* to) {
  static_assert(sizeof(T) % 16 == 0);
  if (count > 16) {
    std::copy_n(from, count, to);
    return;
  }
  const auto* source = reinterpret_cast<const char*>(from);
  auto* target = reinterpret_cast<char*>(to);
  for (std::size_t left = count * sizeof(T); left != 0; left -= 16, source += 16, target += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
    asm volatile("" : "+r"(left));  // or the compiler makes it the call again
  }
}

}  // namespace

namespace {
[[gnu::always_inline]] inline std::int64_t Walk(const Member* members, std::uint32_t size, std::string_view key) {
  for (std::uint32_t i = 0; i < size; ++i) {
    if (members[i].key.size() == key.size() && SameText(members[i].key.data(), key.data(), key.size())) return i;
  }
  return -1;
}
}  // namespace

std::int64_t Value::MapRep::IndexOf(std::string_view key) const {
  if (table_mask == 0) return Walk(members, size, key);
  for (std::uint32_t slot = Hash(key) & table_mask; table[slot] != 0; slot = (slot + 1) & table_mask) {
    if (members[table[slot] - 1].key == key) return table[slot] - 1;
  }
  return -1;
}

Value* Value::MapRep::Find(std::string_view key) {
  if (table_mask == 0 && __atomic_load_n(&filter, __ATOMIC_RELAXED) == 0 && size > 0) {
    std::uint64_t made = 0;
    for (std::uint32_t i = 0; i < size; ++i) made |= Bit(members[i].key);
    __atomic_store_n(&filter, made, __ATOMIC_RELAXED);
    if ((made & Bit(key)) == 0) return nullptr;
  }
  const std::int64_t index = table_mask == 0 ? Walk(members, size, key) : IndexOf(key);
  return index < 0 ? nullptr : &members[index].value;
}

void Value::MapRep::BuildTable(Arena& arena) {
  std::uint32_t slots = 64;
  while (slots < capacity * 2) slots *= 2;
  table = arena.NewArray<std::uint32_t>(slots);
  std::memset(table, 0, slots * sizeof(std::uint32_t));
  table_mask = slots - 1;
  for (std::uint32_t i = 0; i < size; ++i) AddToTable(i);
}

void Value::MapRep::Reindex() {
  if (table_mask == 0) return;
  std::memset(table, 0, (static_cast<std::size_t>(table_mask) + 1) * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < size; ++i) AddToTable(i);
}

void Value::MapRep::AddToTable(std::uint32_t index) {
  std::uint32_t slot = Hash(members[index].key) & table_mask;
  while (table[slot] != 0) slot = (slot + 1) & table_mask;
  table[slot] = index + 1;
}

std::uint32_t Value::MapRep::SlotOf(std::uint32_t index) const {
  std::uint32_t slot = Hash(members[index].key) & table_mask;
  while (table[slot] != index + 1) slot = (slot + 1) & table_mask;
  return slot;
}

// Constant time: the last member takes the gap, and the slots behind the freed one move up (linear probing without
// tombstones).
void Value::MapRep::EraseIndexed(std::uint32_t index) {
  std::uint32_t hole = SlotOf(index);
  for (std::uint32_t slot = (hole + 1) & table_mask; table[slot] != 0; slot = (slot + 1) & table_mask) {
    const std::uint32_t home = Hash(members[table[slot] - 1].key) & table_mask;
    if (((slot - home) & table_mask) < ((slot - hole) & table_mask)) continue;  // already as near as it may be
    table[hole] = table[slot];
    hole = slot;
  }
  table[hole] = 0;
  const std::uint32_t last = --size;
  if (index == last) return;
  const std::uint32_t slot = SlotOf(last);
  members[index] = members[last];
  table[slot] = index + 1;
}

void Value::MapRep::Add(Arena& arena, std::string_view key, Value value) {
  if (size == capacity) {
    const std::uint32_t next = std::max<std::uint32_t>(4, capacity * 2);
    auto* grown = arena.NewArray<Member>(next);
    if (size > 0) std::copy_n(members, size, grown);
    members = grown;
    capacity = next;
    if (table_mask != 0) table_mask = 0, filter = 0;  // too small now
  }
  members[size] = {key, value};
  ++size;
  if (table_mask != 0) {
    AddToTable(size - 1);
  } else if (size > kLinearMax) {
    BuildTable(arena);
  } else if (filter != 0) {
    filter |= Bit(key);
  }
}

Value Value::List(Arena& arena, std::size_t capacity) {
  Value value;
  value.kind_ = Kind::kList;
  value.list_ = arena.New<ListRep>();
  *value.list_ = {capacity > 0 ? arena.NewArray<Value>(capacity) : nullptr, 0, static_cast<std::uint32_t>(capacity)};
  return value;
}

Value Value::Map(Arena& arena, std::size_t capacity) {
  Value value;
  value.kind_ = Kind::kMap;
  value.map_ = arena.New<MapRep>();
  *value.map_ = {
      capacity > 0 ? arena.NewArray<Member>(capacity) : nullptr, 0, static_cast<std::uint32_t>(capacity), {0}, 0};
  return value;
}

Value Value::ListOf(Arena& arena, std::span<const Value> items) {
  static_assert(sizeof(ListRep) % alignof(Value) == 0 && alignof(ListRep) >= alignof(Value));
  auto* rep = static_cast<ListRep*>(arena.Allocate(sizeof(ListRep) + items.size_bytes(), alignof(ListRep)));
  const auto size = static_cast<std::uint32_t>(items.size());
  *rep = {reinterpret_cast<Value*>(rep + 1), size, size};
  CopyFew(items.data(), size, rep->items);
  Value value;
  value.kind_ = Kind::kList;
  value.list_ = rep;
  return value;
}

Value Value::MapOf(Arena& arena, std::span<const Member> members) {
  static_assert(sizeof(MapRep) % alignof(Member) == 0 && alignof(MapRep) >= alignof(Member));
  auto* rep = static_cast<MapRep*>(arena.Allocate(sizeof(MapRep) + members.size_bytes(), alignof(MapRep)));
  const auto size = static_cast<std::uint32_t>(members.size());
  *rep = {reinterpret_cast<Member*>(rep + 1), size, size, {0}, 0};
  CopyFew(members.data(), size, rep->members);
  if (size > MapRep::kWholeLinearMax) rep->BuildTable(arena);
  Value value;
  value.kind_ = Kind::kMap;
  value.map_ = rep;
  return value;
}

Value Value::operator[](std::size_t index) const {
  if (!is_list() || index >= list_->size) return {};
  return list_->items[index];
}

void Value::Set(Arena& arena, std::string_view key, Value value) {
  KS_CHECK(is_map());
  if (Value* found = Find(key)) {
    value.place_ = found->place_;
    *found = value;
    return;
  }
  map_->Add(arena, key, value);
}

void Value::AppendMember(Arena& arena, std::string_view key, Value value) {
  KS_DCHECK(is_map() && !Has(key));
  map_->Add(arena, key, value);
}

bool Value::Erase(std::string_view key) {
  if (!is_map()) return false;
  const std::int64_t index = map_->IndexOf(key);
  if (index < 0) return false;
  if (map_->table_mask != 0) {
    map_->EraseIndexed(static_cast<std::uint32_t>(index));
    return true;
  }
  std::copy(map_->members + index + 1, map_->members + map_->size, map_->members + index);
  --map_->size;
  return true;
}

Value Value::EnsureMap(Arena& arena, std::string_view key) {
  Value* found = Find(key);
  if (found != nullptr && found->is_map()) return *found;
  const Value made = Map(arena);
  Set(arena, key, made);
  return made;
}

Value Value::EnsureList(Arena& arena, std::string_view key) {
  Value* found = Find(key);
  if (found != nullptr && found->is_list()) return *found;
  const Value made = List(arena);
  Set(arena, key, made);
  return made;
}

void Value::Append(Arena& arena, Value item) { Insert(arena, size(), item); }

void Value::Insert(Arena& arena, std::size_t at, Value item) {
  KS_CHECK(is_list() && at <= list_->size);
  if (list_->size == list_->capacity) {
    const std::uint32_t next = std::max<std::uint32_t>(4, list_->capacity * 2);
    auto* grown = arena.NewArray<Value>(next);
    if (list_->size > 0) std::copy_n(list_->items, list_->size, grown);
    list_->items = grown;
    list_->capacity = next;
  }
  std::copy_backward(list_->items + at, list_->items + list_->size, list_->items + list_->size + 1);
  list_->items[at] = item;
  ++list_->size;
}

void Value::Remove(std::size_t at) {
  KS_CHECK(is_list() && at < list_->size);
  std::copy(list_->items + at + 1, list_->items + list_->size, list_->items + at);
  --list_->size;
}

void Value::Truncate(std::size_t size) {
  KS_CHECK(is_list() && size <= list_->size);
  list_->size = static_cast<std::uint32_t>(size);
}

void Value::Clear() {
  if (is_list()) list_->size = 0;
  if (is_map()) {
    map_->size = 0;
    map_->table_mask = 0;
    map_->filter = 0;
  }
}

void Value::SortMembers() {
  KS_CHECK(is_map());
  if (std::ranges::is_sorted(members(), {}, &Member::key)) return;
  std::ranges::sort(members(), {}, &Member::key);
  map_->Reindex();
}

Value Value::Clone(Arena& arena, bool copy_text) const {
  switch (kind_) {
    case Kind::kList: {
      Value copy = List(arena, list_->size);
      for (std::uint32_t i = 0; i < list_->size; ++i) copy.list_->items[i] = list_->items[i].Clone(arena, copy_text);
      copy.list_->size = list_->size;
      copy.place_ = place_;
      return copy;
    }
    case Kind::kMap: {
      Value copy = Map(arena, map_->size);
      for (const Member& member : members()) {
        copy.map_->Add(arena, copy_text ? arena.Copy(member.key) : member.key, member.value.Clone(arena, copy_text));
      }
      copy.place_ = place_;
      return copy;
    }
    case Kind::kString:
    case Kind::kRaw: {
      Value copy = *this;
      if (copy_text) copy.text_ = arena.Copy({text_, size_}).data();
      return copy;
    }
    default:
      return *this;
  }
}

namespace {

// Two forms of one object mostly have their members in the same order, which needs no look-up.
bool EqualMaps(const Value& a, const Value& b) {
  const auto left = a.members();
  const auto right = b.members();
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Value* other = left[i].key == right[i].key ? &right[i].value : b.Find(left[i].key);
    if (other == nullptr || !(left[i].value == *other)) return false;
  }
  return true;
}

}  // namespace

bool Value::Equal(const Value& a, const Value& b) {
  if (a.kind_ != b.kind_) return a.is_number() && b.is_number() && a.as_double() == b.as_double();
  switch (a.kind_) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return a.bool_ == b.bool_;
    case Kind::kInt:
      return a.int_ == b.int_;
    case Kind::kDouble:
      return a.double_ == b.double_;
    case Kind::kString:
    case Kind::kRaw:
      return a.size_ == b.size_ && (a.size_ == 0 || std::memcmp(a.text_, b.text_, a.size_) == 0);
    case Kind::kList:
      return a.list_ == b.list_ || std::ranges::equal(a.items(), b.items(), Equal);
    case Kind::kMap:
      if (a.map_ == b.map_) return true;
      return EqualMaps(a, b);
  }
  return false;
}

}  // namespace keelson::object
