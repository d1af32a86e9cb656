#include "object/json_reader.h"

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
  SkipSpace();
  const std::size_t begin = at_;
  int depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      if (!SkipString()) return {};
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMax) {
        Fail();
        return {};
      }
      ++at_;
      continue;
    } else if (c == '}' || c == ']') {
      if (depth == 0) break;  // of the enclosing value: there was no value here
      --depth;
      ++at_;
    } else if (c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      if (depth == 0) break;
      ++at_;
      continue;
    } else {
      while (at_ < text_.size() && std::string_view(",:}] \n\t\r\"[{").find(text_[at_]) == std::string_view::npos)
        ++at_;
    }
    if (depth == 0) return text_.substr(begin, at_ - begin);
  }
  Fail();
  return {};
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
