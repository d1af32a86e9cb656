// Bloom filter for label selectors: 64 bits beside each object's reference in the tree rule out most objects that a
// selector cannot match, so that a LIST by label touches the matching objects and a few percent of the others.
// Each label (key and value) sets two bits. A requirement with values needs their bits; any other (absence, existence,
// inequality) rules out nothing. Immutable; pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "meta/selector.h"

namespace keelson::cacher {

std::uint64_t LabelBits(std::string_view key, std::string_view value);
std::uint64_t LabelBits(meta::LabelsView labels);  // of all of them

class LabelFilter {
 public:
  LabelFilter() = default;  // everything may match
  explicit LabelFilter(const meta::LabelSelector& selector);

  bool empty() const { return all_ == 0 && any_.empty(); }
  // False: an object with these bits is certainly not selected.
  bool MayMatch(std::uint64_t bits) const {
    if ((bits & all_) != all_) return false;
    for (const auto& alternatives : any_) {
      if (!AnyOf(alternatives, bits)) return false;
    }
    return true;
  }

 private:
  static bool AnyOf(const std::vector<std::uint64_t>& alternatives, std::uint64_t bits) {
    for (const std::uint64_t wanted : alternatives) {
      if ((bits & wanted) == wanted) return true;
    }
    return false;
  }

  std::uint64_t all_ = 0;
  std::vector<std::vector<std::uint64_t>> any_;  // of each, one is needed
};

}  // namespace keelson::cacher
