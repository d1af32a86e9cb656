#include "object/json_reader.h"

#include <algorithm>

#include "object/json_scan.h"

namespace keelson::object {

bool JSONReader::Fail() {
  failed_ = true;
  at_ = text_.size();
  return false;
}

void JSONReader::SkipSpace() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
}

char JSONReader::Peek() {
  SkipSpace();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JSONReader::AtEnd() {
  SkipSpace();
  return at_ >= text_.size();
}

bool JSONReader::EnterObject() {
  if (Peek() != '{') return false;
  ++at_;
  return true;
}

bool JSONReader::EnterList() {
  if (Peek() != '[') return false;
  ++at_;
  return true;
}

bool JSONReader::SkipString() {
  // REQUIRES: text_[at_] is the opening quote.
  std::size_t i = FindStringEnd(text_, at_ + 1);
  while (i < text_.size() && text_[i] == '\\') i = FindStringEnd(text_, i + 2);
  if (i >= text_.size()) return Fail();
  at_ = i + 1;
  return true;
}

bool JSONReader::NextMember(std::string_view& key) {
  char next = Peek();
  if (next == ',') {
    ++at_;
    next = Peek();
  }
  if (next == '}') {
    ++at_;
    return false;
  }
  if (next != '"') return Fail();
  const std::size_t begin = at_ + 1;
  if (!SkipString()) return false;
  key = text_.substr(begin, at_ - 1 - begin);
  if (Peek() != ':') return Fail();
  ++at_;
  return true;
}

bool JSONReader::NextItem() {
  char next = Peek();
  if (next == ',') {
    ++at_;
    next = Peek();
  }
  if (next == ']') {
    ++at_;
    return false;
  }
  return next != '\0' || Fail();
}

std::string_view JSONReader::TakeValue() {
  const char first = Peek();
  const std::size_t begin = at_;
  if (first == '"') {
    if (!SkipString()) return {};
  } else if (first == '{' || first == '[') {
    at_ = FindContainerEnd(text_, at_, kDepthMax);
    if (at_ == std::string_view::npos) Fail();
  } else {
    at_ = std::min(text_.find_first_of(",:}] \n\t\r\"[{", at_), text_.size());
    if (at_ == begin) Fail();  // of the enclosing value: there was no value here
  }
  return ok() ? text_.substr(begin, at_ - begin) : std::string_view();
}

std::optional<std::string_view> FindJSONMember(std::string_view object, std::string_view key) {
  JSONReader reader(object);
  if (!reader.EnterObject()) return std::nullopt;
  std::string_view name;
  while (reader.NextMember(name)) {
    const std::string_view value = reader.TakeValue();
    if (!reader.ok()) return std::nullopt;
    if (name == key) return value;
  }
  return std::nullopt;
}

}  // namespace keelson::object
