#include "storage/json_splice.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "object/json_scan.h"

namespace keelson::storage {
namespace {

constexpr std::string_view kKey = "resourceVersion";

// Steps over JSON text that was found valid before. Nesting is counted, not recursed into.
class Skipper {
 public:
  explicit Skipper(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  std::size_t at() const { return at_; }
  bool Take(char c) {
    Space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // The text between the quotes, escapes as they are.
  bool String(std::string_view& out) {
    if (!Take('"')) return false;
    const std::size_t begin = at_;
    at_ = object::FindStringEnd(text_, begin);
    while (at_ < text_.size() && text_[at_] == '\\') at_ = object::FindStringEnd(text_, at_ + 2);
    if (at_ >= text_.size()) return false;
    out = text_.substr(begin, at_ - begin);
    ++at_;
    return true;
  }
  bool Value() {
    Space();
    if (at_ >= text_.size()) return false;
    const char first = text_[at_];
    if (first == '"') {
      std::string_view ignored;
      return String(ignored);
    }
    if (first == '{' || first == '[') {
      at_ = object::FindContainerEnd(text_, at_, std::numeric_limits<int>::max());
      return at_ != std::string_view::npos;
    }
    at_ = std::min(text_.find_first_of(",]} \n\t\r", at_), text_.size());
    return true;
  }
  void Space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

 private:
  std::string_view text_;
  std::size_t at_;
};

bool StandsBefore(std::string_view key, MetadataOrder order) {
  if (order == MetadataOrder::kSorted) return key < kKey;
  static constexpr std::string_view kBefore[] = {"name", "generateName", "namespace", "selfLink", "uid"};
  return std::find(std::begin(kBefore), std::end(kBefore), key) != std::end(kBefore);
}

base::SharedBytes Splice(std::string_view text, std::size_t from, std::size_t to, std::string_view with) {
  char* data = nullptr;
  base::SharedBytes out = base::SharedBytes::Uninitialized(text.size() - (to - from) + with.size(), &data);
  data = std::copy_n(text.data(), from, data);
  data = std::copy_n(with.data(), with.size(), data);
  std::copy_n(text.data() + to, text.size() - to, data);
  return out;
}

}  // namespace

std::optional<base::SharedBytes> SetJSONResourceVersion(std::string_view stored, std::string_view text,
                                                        MetadataOrder order) {
  Skipper top(stored, 0);
  if (!top.Take('{')) return std::nullopt;
  std::string_view key;
  for (;;) {
    if (!top.String(key) || !top.Take(':')) return std::nullopt;
    if (key == "metadata") break;
    if (!top.Value() || !top.Take(',')) return std::nullopt;
  }
  if (!top.Take('{')) return std::nullopt;

  std::size_t member = top.at();  // where the current member begins
  std::size_t place = top.at();   // where a new one goes
  bool any_before = false;        // ... behind another, so with a comma before it
  bool any_behind = false;
  bool passed = false;
  std::optional<std::size_t> previous_end;
  Skipper inside(stored, member);
  if (!inside.Take('}')) {
    do {
      inside.Space();
      member = inside.at();
      if (!inside.String(key) || !inside.Take(':')) return std::nullopt;
      if (!inside.Value()) return std::nullopt;
      const std::size_t end = inside.at();
      if (key == kKey) {
        if (!text.empty()) return Splice(stored, member, end, "\"resourceVersion\":\"" + std::string(text) + "\"");
        // Goes with the comma behind it, or with the one before it when it is the last.
        if (inside.Take(',')) return Splice(stored, member, inside.at(), "");
        return Splice(stored, previous_end.value_or(member), end, "");
      }
      if (!passed && StandsBefore(key, order)) {
        any_before = true;
        place = end;
      } else {
        passed = true;
        any_behind = true;
      }
      previous_end = end;
    } while (inside.Take(','));
    if (!inside.Take('}')) return std::nullopt;
  }
  if (text.empty()) return base::SharedBytes(stored);
  const std::string member_text = "\"resourceVersion\":\"" + std::string(text) + "\"";
  return Splice(stored, place, place, any_before ? "," + member_text : any_behind ? member_text + "," : member_text);
}

}  // namespace keelson::storage
