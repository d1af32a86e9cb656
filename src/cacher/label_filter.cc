#include "cacher/label_filter.h"

#include <functional>

namespace keelson::cacher {

std::uint64_t LabelBits(std::string_view key, std::string_view value) {
  const std::hash<std::string_view> hash;
  const std::uint64_t mixed = (hash(key) * 0x9E3779B97F4A7C15ull) ^ hash(value);
  return (1ull << (mixed & 63)) | (1ull << ((mixed >> 6) & 63));
}

std::uint64_t LabelBits(meta::LabelsView labels) {
  std::uint64_t bits = 0;
  for (const auto& [key, value] : labels) bits |= LabelBits(key, value);
  return bits;
}

LabelFilter::LabelFilter(const meta::LabelSelector& selector) {
  using Operator = meta::LabelSelector::Operator;
  for (const auto& requirement : selector.requirements()) {
    if (requirement.op != Operator::kIn && requirement.op != Operator::kEquals &&
        requirement.op != Operator::kDoubleEquals) {
      continue;
    }
    if (requirement.values.size() == 1) {
      all_ |= LabelBits(requirement.key, requirement.values[0]);
      continue;
    }
    auto& alternatives = any_.emplace_back();
    for (const std::string& value : requirement.values) alternatives.push_back(LabelBits(requirement.key, value));
  }
}

}  // namespace keelson::cacher
