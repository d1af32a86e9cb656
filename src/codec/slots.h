// The members of a Value by their place in a table, for the encoders: looked up once each, written in the table's
// order. Space is taken in stack fashion and not cleared; bits mark the members present. Not for other folders.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "object/value.h"
#include "schema/schema.h"

namespace keelson::codec {

// The order of a map's keys, mostly told by their first bytes.
inline bool KeyLess(std::string_view a, std::string_view b) {
  if (a.size() >= 8 && b.size() >= 8) {
    std::uint64_t x = 0, y = 0;
    std::memcpy(&x, a.data(), 8);
    std::memcpy(&y, b.data(), 8);
    if (x != y) return __builtin_bswap64(x) < __builtin_bswap64(y);
  }
  return a < b;
}
inline bool InKeyOrder(std::span<const object::Member> members) {
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (!KeyLess(members[i - 1].key, members[i].key)) return false;
  }
  return true;
}

class Slots {
 public:
  // Room for `count` more; slots are used as at(base + i). Release(base) gives them back.
  std::size_t Take(std::size_t count) {
    const std::size_t base = used_;
    if (used_ + count > capacity_) Grow(count);
    used_ += count;
    return base;
  }
  void Release(std::size_t base) { used_ = base; }
  const object::Value*& at(std::size_t index) { return data_[index]; }

  // Index of a member in json_fields. Decoders note it; for members added by other code it is looked up.
  static std::size_t Position(const schema::Struct& type, const object::Member& member) {
    const std::size_t place = member.value.place() & 0xff;
    if (place < type.json_fields.size() && type.json_fields[place]->name.data() == member.key.data()) [[likely]]
      return place;
    return type.FindPosition(member.key);
  }

 private:
  [[gnu::noinline]] void Grow(std::size_t count) {
    const std::size_t next = std::max(capacity_ * 2, used_ + count);
    auto grown = std::make_unique_for_overwrite<const object::Value*[]>(next);
    std::copy_n(data_, used_, grown.get());
    heap_ = std::move(grown);
    data_ = heap_.get();
    capacity_ = next;
  }

  static constexpr std::size_t kFirst = 384;
  const object::Value* first_[kFirst];
  const object::Value** data_ = first_;
  std::size_t used_ = 0;
  std::size_t capacity_ = kFirst;
  std::unique_ptr<const object::Value*[]> heap_;
};

}  // namespace keelson::codec
