// Why the server cannot start: one line for the user.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace keelson::app {

class Error {
 public:
  explicit Error(std::string text) : text_(std::move(text)) {}
  const std::string& message() const { return text_; }

 private:
  std::string text_;
};

}  // namespace keelson::app
