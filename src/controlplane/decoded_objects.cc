#include "controlplane/decoded_objects.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace keelson::controlplane {
namespace {

std::size_t SlotOf(const storage::Object* object) {
  constexpr unsigned kAlignmentBits = 4;
  constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // neighbours in memory get different slots
  const auto address = reinterpret_cast<std::uintptr_t>(object) >> kAlignmentBits;
  return static_cast<std::size_t>((address * kSpread) >> 32) % DecodedObjects::kObjectsMax;
}

}  // namespace

// `keep`: it was looked up before, so that its form is worth keeping. Objects of a list that is read once are not.
std::shared_ptr<const DecodedObjects::Decoded> DecodedObjects::Find(const storage::ObjectPtr& object, bool* keep) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[SlotOf(object.get())];
  if (slot.decoded && slot.decoded->object == object) return slot.decoded;
  *keep = std::exchange(slot.seen, object.get()) == object.get();
  return nullptr;
}

Outcome<Value, std::string> DecodedObjects::Decode(base::Arena& arena, const storage::ResourceCodec& codec,
                                                   const storage::ObjectPtr& object) {
  const std::string_view stored = object->stored().view();
  if (stored.size() > kStoredBytesMax) return codec.Decode(arena, stored);
  bool keep = false;
  std::shared_ptr<const Decoded> known = Find(object, &keep);
  if (!known && !keep) return codec.Decode(arena, stored);
  if (!known) {
    auto made = std::make_shared<Decoded>();
    made->object = object;
    KS_TRY(made->value, codec.Decode(made->arena, stored));
    known = std::move(made);
    std::shared_ptr<const Decoded> replaced = known;  // freed after the lock
    const std::lock_guard lock(mutex_);
    std::swap(slots_[SlotOf(object.get())].decoded, replaced);
  }
  constexpr bool kCopyText = true;  // The kept form may go before the arena does.
  return known->value.Clone(arena, kCopyText);
}

std::size_t DecodedObjects::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(slots_, [](const Slot& slot) { return slot.decoded != nullptr; }));
}

}  // namespace keelson::controlplane
