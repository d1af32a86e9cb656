// Why the server cannot start: one line for the user, and where there is something to do about it, a second one.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace keelson::app {

class Error {
 public:
  explicit Error(std::string text, std::string hint = "") : text_(std::move(text)), hint_(std::move(hint)) {}
  const std::string& message() const { return text_; }
  const std::string& hint() const { return hint_; }  // "" for none

 private:
  std::string text_;
  std::string hint_;
};

}  // namespace keelson::app
