#include "patch/known_fields.h"

#include "base/hash.h"

namespace keelson::patch {

std::shared_ptr<const KnownFields> KnownFieldsCache::Find(std::string_view text) const {
  if (text.size() > kTextBytesMax) return nullptr;
  const std::uint64_t hash = base::SeededHash(text);
  const std::size_t place = hash % kSlots;
  {
    const std::lock_guard lock(mutex_);
    if (!slots_) slots_ = std::make_unique<Slots>();
    Slot& slot = (*slots_)[place];
    if (slot.known && slot.known->text == text) return slot.known;
    if (slot.seen != hash) {
      slot.seen = hash;
      return nullptr;
    }
  }
  auto known = std::make_shared<KnownFields>();
  known->text = text;
  const auto set = FieldSet::Parse(known->arena, known->text);
  if (!set) return nullptr;
  known->set = ReconcileWithSchema(known->arena, *set, type_);
  known->canonical = known->set.ToJSON() == known->text;
  const std::lock_guard lock(mutex_);
  (*slots_)[place].known = known;
  return known;
}

}  // namespace keelson::patch
