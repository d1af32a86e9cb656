#include "object/field_path.h"

namespace keelson::object {

void FieldPath::AppendTo(std::string& out) const {
  if (parent_ != nullptr) parent_->AppendTo(out);
  if (index_ >= 0) {
    out += '[';
    out += std::to_string(index_);
    out += ']';
  } else if (key_) {
    out += '[';
    out += name_;
    out += ']';
  } else if (!name_.empty()) {
    if (!out.empty()) out += '.';
    out += name_;
  }
}

std::string FieldPath::ToString() const {
  std::string out;
  AppendTo(out);
  return out;
}

}  // namespace keelson::object
