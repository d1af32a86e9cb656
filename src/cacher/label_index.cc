#include "cacher/label_index.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "kv/kv.h"

namespace keelson::cacher {
namespace {

using Operator = meta::LabelSelector::Operator;

std::optional<std::string_view> LabelOf(const ObjectPtr& object, std::string_view key) {
  const meta::LabelsView labels = object->attributes().labels;
  const auto found = std::ranges::lower_bound(labels, key, {}, [](const auto& label) { return label.first; });
  if (found == labels.end() || found->first != key) return std::nullopt;
  return found->second;
}

bool IsEquality(Operator op) { return op == Operator::kIn || op == Operator::kEquals || op == Operator::kDoubleEquals; }

std::size_t CountOf(const IndexTree& tree, std::string_view value, std::string_view prefix) {
  const std::string end = kv::PrefixEnd(std::string(prefix));
  return tree.Rank({value, end}) - tree.Rank({value, prefix});
}

}  // namespace

bool LabelDemand::Note(std::string_view key, std::size_t objects) {
  if (objects < kObjectsMin || size() == kLabelIndexesMax) return false;
  const std::lock_guard lock(mutex_);
  const std::size_t size = size_.load(std::memory_order_relaxed);
  if (size == kLabelIndexesMax || std::ranges::find(keys_.begin(), keys_.begin() + size, key) != keys_.begin() + size)
    return false;
  if (lists_.size() == kCandidatesMax && !lists_.contains(key)) lists_.clear();
  const auto count = lists_.try_emplace(std::string(key)).first;
  if (++count->second < kListsMin) return false;
  lists_.erase(count);
  keys_[size] = key;
  size_.store(size + 1, std::memory_order_release);
  return true;
}

const IndexTree* LabelIndexes::Find(std::string_view key) const {
  for (std::size_t i = 0; i < whole_; ++i) {
    if (all_[i].key == key) return &all_[i].tree;
  }
  return nullptr;
}

void LabelIndexes::Put(One& one, const ObjectPtr& object) {
  if (const auto value = LabelOf(object, one.key)) one.tree.Put({*value, object});
}

bool LabelIndexes::Extend(const LabelDemand& demand, const ObjectTree& objects) {
  if (whole_ == demand.size()) return false;
  One& one = all_[whole_];
  if (!making_) {
    one.key = demand.key(whole_);
    reached_.clear();
    making_ = true;
  }
  const std::size_t first = reached_.empty() ? 0 : objects.Rank(reached_ + '\0');
  const std::size_t count = std::min(objects.size() - first, kStep);
  auto at = objects.Seek(reached_.empty() ? std::string() : reached_ + '\0');
  const ObjectPtr* last = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) at.Next();
    last = &at->object;
    Put(one, *last);
  }
  if (last != nullptr) reached_ = (*last)->key();
  if (first + count < objects.size()) return true;
  making_ = false;
  ++whole_;
  return whole_ < demand.size();
}

void LabelIndexes::Change(const ObjectPtr& previous, const ObjectPtr& object) {
  const std::size_t count = whole_ + (making_ ? 1 : 0);
  for (std::size_t i = 0; i < count; ++i) {
    One& one = all_[i];
    // The rest of the objects are found, as they are then, when the index gets there.
    if (i == whole_ && (previous ? previous : object)->key() > reached_) continue;
    if (previous) {
      if (const auto value = LabelOf(previous, one.key)) one.tree.Erase({*value, previous->key()});
    }
    if (object) Put(one, object);
  }
}

LabelChoice ChooseLabelIndex(const LabelIndexes& indexes, const meta::LabelSelector& selector,
                             std::string_view prefix) {
  LabelChoice best;
  std::size_t fewest = 0;
  for (const auto& requirement : selector.requirements()) {
    if (!IsEquality(requirement.op) || requirement.values.size() != 1) continue;
    const IndexTree* const tree = indexes.Find(requirement.key);
    if (tree == nullptr) continue;
    const std::size_t count = CountOf(*tree, requirement.values[0], prefix);
    if (best.tree != nullptr && count >= fewest) continue;
    best = {tree, requirement.values[0]};
    fewest = count;
  }
  return best;
}

std::string_view EqualityKey(const meta::LabelSelector& selector) {
  for (const auto& requirement : selector.requirements()) {
    if (IsEquality(requirement.op) && requirement.values.size() == 1) return requirement.key;
  }
  return {};
}

}  // namespace keelson::cacher
