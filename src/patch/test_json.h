// JSON in tests: one line in, one line out. Not part of the product.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/check.h"
#include "object/json_text.h"

namespace keelson::patch {

inline Value J(base::Arena& arena, std::string_view text) {
  const auto value = object::ParseJSON(arena, text);
  KS_CHECK(value.has_value());
  return *value;
}

// A file of the public suites; nothing where they are not there.
inline std::optional<std::string> SuiteFile(const std::string& name) {
  const char* root = std::getenv("KEELSON_SUITES");
  std::ifstream file((root != nullptr ? std::string(root) : std::string("../shared/testdata")) + "/" + name,
                     std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace keelson::patch
