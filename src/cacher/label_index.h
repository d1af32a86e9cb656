// The objects that have a label, by its value, for the few label keys that LISTs select by: such a LIST then costs what
// it returns, whatever else is stored. The keys are learned from the LISTs themselves (LabelDemand); the reflector
// builds their indexes in parts and keeps them up to date.
//
//   team ── (a, /pods/n/1) (a, /pods/n/7) (b, /pods/n/2) ...
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "cacher/index_tree.h"
#include "meta/selector.h"

namespace keelson::cacher {

inline constexpr std::size_t kLabelIndexesMax =
    4;  // of one resource; each costs about 34 bytes for an object with the label

// Label keys that LISTs select by. Thread safety: all members, from any thread.
class LabelDemand {
 public:
  static constexpr std::size_t kObjectsMin = 1000;   // a LIST that looks at fewer is cheap enough
  static constexpr std::uint32_t kListsMin = 16;     // LISTs by a key before it gets an index
  static constexpr std::size_t kCandidatesMax = 64;  // keys that are counted; then counting starts anew

  // Notes that a LIST by values of `key` scanned `objects` objects. True when the key is now wanted.
  bool Note(std::string_view key, std::size_t objects);
  // How many keys are wanted, and which; a key stays where it is.
  std::size_t size() const { return size_.load(std::memory_order_acquire); }
  const std::string& key(std::size_t at) const { return keys_[at]; }  // REQUIRES: at < size().

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint32_t, std::less<>> lists_;  // by key, of those that are not wanted yet
  std::array<std::string, kLabelIndexesMax> keys_;
  std::atomic<std::size_t> size_{0};
};

// A copy shares the trees. Thread safety: const members from any thread.
class LabelIndexes {
 public:
  static constexpr std::size_t kStep = 4096;  // objects that one call of Extend() looks at

  // The tree of a key that has one, with all objects in it; nullptr otherwise.
  const IndexTree* Find(std::string_view key) const;

  // Works towards an index for each key that is wanted; `demand` must outlive this and its copies. True while there is
  // more to do. `objects` has every object, as it is now.
  bool Extend(const LabelDemand& demand, const ObjectTree& objects);
  // An object changed, came or went: either may be null.
  void Change(const ObjectPtr& previous, const ObjectPtr& object);
  void Clear() { *this = LabelIndexes(); }

 private:
  struct One {
    std::string_view key;
    IndexTree tree;
  };
  void Put(One& one, const ObjectPtr& object);

  std::array<One, kLabelIndexesMax> all_;
  std::size_t whole_ = 0;  // indexes that have all objects; the one after them is being made
  bool making_ = false;
  std::string reached_;  // of that one: it has the objects up to this key
};

// The equality of a selector that an index can answer with the fewest objects under `prefix`; tree is nullptr where
// there is none. `value` is a view into the selector.
struct LabelChoice {
  const IndexTree* tree = nullptr;
  std::string_view value;
};
LabelChoice ChooseLabelIndex(const LabelIndexes& indexes, const meta::LabelSelector& selector, std::string_view prefix);
// The first key that the selector wants one of some values of; "" for none.
std::string_view EqualityKey(const meta::LabelSelector& selector);

}  // namespace keelson::cacher
