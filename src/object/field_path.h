// The path of a field, for messages (upstream's field.Path): spec.containers[0].ports[1].name, metadata.labels[app].
// A path is a chain of parents on the caller's stack: a child must not outlive its parent (the compiler warns of a
// variable whose parent is a temporary); ToString() makes the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace keelson::object {

class FieldPath {
 public:
  FieldPath() = default;  // no path: renders as "<nil>" in errors, "" here
  explicit FieldPath(std::string_view name) : name_(name) {}
  FieldPath Child(std::string_view name) const [[clang::lifetimebound]] { return FieldPath(this, name, -1, false); }
  FieldPath Index(std::int64_t index) const [[clang::lifetimebound]] { return FieldPath(this, {}, index, false); }
  FieldPath Key(std::string_view key) const [[clang::lifetimebound]] { return FieldPath(this, key, -1, true); }
  bool empty() const { return parent_ == nullptr && name_.empty(); }
  std::string ToString() const;

 private:
  FieldPath(const FieldPath* parent, std::string_view name, std::int64_t index, bool key)
      : parent_(parent), name_(name), index_(index), key_(key) {}
  void AppendTo(std::string& out) const;

  const FieldPath* parent_ = nullptr;
  std::string_view name_;
  std::int64_t index_ = -1;
  bool key_ = false;
};

}  // namespace keelson::object

namespace keelson {
using object::FieldPath;
}
