// Label and field selectors: parse with apimachinery's grammar and errors, match against what was taken out of an
// object. Immutable once parsed. Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/outcome.h"

namespace keelson::meta {

using LabelsView = std::span<const std::pair<std::string_view, std::string_view>>;  // sorted by key
using FieldsView = std::span<const std::pair<std::string_view, std::string_view>>;  // selectable field and its value

class LabelSelector {
 public:
  enum class Operator : std::uint8_t {
    kIn,
    kNotIn,
    kEquals,
    kDoubleEquals,
    kNotEquals,
    kExists,
    kDoesNotExist,
    kGreaterThan,
    kLessThan
  };
  struct Requirement {
    std::string key;
    Operator op;
    std::vector<std::string> values;  // sorted
  };

  static Outcome<LabelSelector, std::string> Parse(std::string_view text);  // the error is the message of the 400
  bool Empty() const { return requirements_.empty(); }                      // matches everything
  bool Matches(LabelsView labels) const;
  std::string ToString() const;                                                   // canonical; parses back to the same
  const std::vector<Requirement>& requirements() const { return requirements_; }  // sorted by key
  static LabelSelector Of(std::vector<Requirement> requirements);  // already valid ones, e.g. of a metav1.LabelSelector

 private:
  std::vector<Requirement> requirements_;
};

class FieldSelector {
 public:
  struct Requirement {
    std::string field;
    bool equal;  // false: !=
    std::string value;
  };

  static Outcome<FieldSelector, std::string> Parse(std::string_view text);
  bool Empty() const { return requirements_.empty(); }
  bool Matches(FieldsView fields) const;  // a field that is not there compares as ""
  std::optional<std::string_view> RequiresExactMatch(std::string_view field) const;
  std::string ToString() const;
  const std::vector<Requirement>& requirements() const { return requirements_; }
  std::vector<Requirement>& requirements() { return requirements_; }  // for renaming fields per version

 private:
  std::vector<Requirement> requirements_;
};

}  // namespace keelson::meta
