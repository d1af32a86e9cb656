// A pull reader over JSON text that skips unrequested parts: no tree, no copies, one pass. For stored bytes of
// which a part is wanted, and for rewriting JSON to JSON. After a syntax error every call gives nothing and ok() is
// false. Thread safety: none. The text must outlive the reader and the views it gives.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace keelson::object {

class JSONReader {
 public:
  static constexpr int kDepthMax = 1000;  // of values that are skipped

  explicit JSONReader(std::string_view text) : text_(text) {}

  bool ok() const { return !failed_; }
  // The first character of the next value ('{', '[', '"', 't', 'f', 'n', '-', a digit), or 0 at the end or on error.
  char Peek();
  // Enters the object (or list) that comes next; false, and nothing is consumed, when something else does.
  bool EnterObject();
  bool EnterList();
  // Moves to the next member of the entered object: `key` is the text between the quotes, escapes as they are, and the
  // value comes next. False at the closing brace, which is consumed. REQUIRES: the member's value before was consumed.
  bool NextMember(std::string_view& key);
  // The same for items of a list.
  bool NextItem();
  // Consumes the next value and gives its text.
  std::string_view TakeValue();
  // True when only white space is left.
  bool AtEnd();

 private:
  void SkipSpace();
  bool SkipString();
  bool Fail();
  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

// The text of one member of an object; nullopt if it is absent or the text is not an object.
std::optional<std::string_view> FindJSONMember(std::string_view object, std::string_view key);

}  // namespace keelson::object
