#include "validation/structural_cel/correlation.h"

#include <algorithm>

#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::validation::structural {

using schema::structural::ListType;
using schema::structural::NodeType;

KeyedItems::KeyedItems(Node list, const Value& items) : list_(list) {
  if (list.type() != NodeType::kArray || list.list_type() != ListType::kMap || list.list_map_key_count() == 0) return;
  for (const Value& item : items.items()) {
    if (auto key = KeyOf(item)) items_.try_emplace(*std::move(key), &item);
  }
}

std::optional<std::string> KeyedItems::KeyOf(const Value& item) const {
  if (!item.is_map()) return std::nullopt;
  std::string key;
  for (std::size_t i = 0; i < list_.list_map_key_count(); ++i) {
    const Value* part = item.Find(list_.list_map_key(i));
    if (part == nullptr || !(part->is_bool() || part->is_number() || part->is_string())) return std::nullopt;
    key += '\0';
    key += part->is_double() ? 'd' : 'v';
    object::AppendJSON(key, *part);
  }
  return key;
}

const Value* KeyedItems::Find(const Value& item) const {
  if (items_.empty()) return nullptr;
  const auto key = KeyOf(item);
  if (!key) return nullptr;
  const auto found = items_.find(*key);
  return found == items_.end() ? nullptr : found->second;
}

bool ReflectEqual(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_list()) return std::ranges::equal(a.items(), b.items(), ReflectEqual);
  if (!a.is_map()) return a == b;
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a.members(), [&](const object::Member& member) {
    const Value* other = b.Find(member.key);
    return other != nullptr && ReflectEqual(member.value, *other);
  });
}

const KeyedItems& Correlation::old_items() const {
  if (old_items_ == nullptr) old_items_ = std::make_shared<KeyedItems>(schema_, *old_);
  return *old_items_;
}

std::optional<Correlation> Correlation::Key(std::string_view name) const {
  if (!schema_) return std::nullopt;
  const Value* now = now_->Find(name);
  const Value* old = old_->Find(name);
  if (now == nullptr || old == nullptr) return std::nullopt;
  const Node below = schema_.Member(name);
  if (!below) return std::nullopt;
  return Correlation(*now, *old, below);
}

std::optional<Correlation> Correlation::Index(std::size_t index) const {
  if (!schema_ || !schema_.items() || !old_->is_list() || index >= now_->items().size()) return std::nullopt;
  const Value& item = now_->items()[index];
  const Value* old = old_items().Find(item);
  if (old == nullptr) return std::nullopt;
  return Correlation(item, *old, schema_.items());
}

bool Correlation::Compare() const {
  if (now_->is_null() || old_->is_null()) return now_->is_null() && old_->is_null();
  if (now_->is_list() != old_->is_list() || now_->is_map() != old_->is_map()) return false;
  if (now_->is_list()) {
    if (now_->size() != old_->size()) return false;
    if (schema_.list_type() != ListType::kMap) return ReflectEqual(*now_, *old_);
    for (std::size_t i = 0; i < now_->size(); ++i) {
      const auto item = Index(i);
      if (!item || !item->DeepEqual()) return false;
    }
    return true;
  }
  if (!now_->is_map()) return ReflectEqual(*now_, *old_);
  if (now_->size() != old_->size()) return false;
  return std::ranges::all_of(now_->members(), [this](const object::Member& member) {
    const auto child = Key(member.key);
    return child && child->DeepEqual();
  });
}

bool Correlation::DeepEqual() const {
  if (!equal_) equal_ = Compare();
  return *equal_;
}

}  // namespace keelson::validation::structural
