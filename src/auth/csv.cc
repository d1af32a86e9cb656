#include "auth/csv.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kBareQuote = "bare \" in non-quoted-field";
constexpr std::string_view kQuote = "extraneous or missing \" in quoted-field";

bool IsLineEnd(std::string_view text) { return text.empty() || text == "\n"; }

}  // namespace

std::string CSVReader::ReadLine() {
  const std::size_t end = rest_.find('\n');
  std::string line(rest_.substr(0, end == std::string_view::npos ? end : end + 1));
  rest_.remove_prefix(line.size());
  if (line.empty()) return line;
  ++line_;
  if (line.ends_with("\r\n")) {
    line.replace(line.size() - 2, 2, "\n");
  } else if (rest_.empty() && line.ends_with('\r')) {
    line.pop_back();
  }
  return line;
}

std::string CSVReader::Problem(std::size_t column, std::string_view what) const {
  std::string text = record_line_ == line_ ? std::string() : "record on line " + std::to_string(record_line_) + "; ";
  return text + "parse error on line " + std::to_string(line_) + ", column " + std::to_string(column) + ": " +
         std::string(what);
}

Outcome<std::optional<std::vector<std::string>>, std::string> CSVReader::Next() {
  std::string line;
  do {
    if (rest_.empty()) return std::optional<std::vector<std::string>>();
    line = ReadLine();
  } while (IsLineEnd(line));
  record_line_ = line_;
  std::vector<std::string> fields;
  std::size_t at = 0;  // Go counts columns in bytes, from one
  for (;;) {
    if (at >= line.size() || line[at] != '"') {
      const std::size_t comma = line.find(',', at);
      std::string field = line.substr(at, comma == std::string::npos ? comma : comma - at);
      if (comma == std::string::npos && field.ends_with('\n')) field.pop_back();
      if (const auto quote = field.find('"'); quote != std::string::npos) return Problem(at + quote + 1, kBareQuote);
      fields.push_back(std::move(field));
      if (comma == std::string::npos) return std::optional(std::move(fields));
      at = comma + 1;
      continue;
    }
    std::string field;
    ++at;
    for (bool open = true; open;) {
      const std::size_t quote = line.find('"', at);
      if (quote == std::string::npos) {  // the field goes on in the next line
        field.append(line, at);
        at = line.size();
        if (rest_.empty()) return Problem(at + 1, kQuote);
        line = ReadLine();
        at = 0;
        continue;
      }
      field.append(line, at, quote - at);
      at = quote + 1;
      if (at < line.size() && line[at] == '"') {
        field += '"';
        ++at;
        continue;
      }
      open = false;
    }
    fields.push_back(std::move(field));
    if (IsLineEnd(std::string_view(line).substr(at))) return std::optional(std::move(fields));
    if (line[at] != ',') return Problem(at, kQuote);
    ++at;
  }
}

}  // namespace keelson::auth
