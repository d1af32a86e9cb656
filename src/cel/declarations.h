// Function and variable declarations of an environment. The run-time binds an implementation to each overload id.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cel/type.h"

namespace keelson::cel {

// One signature of a function. Ids are cel-go's ("add_int64", "string_char_at_int").
struct Overload {
  std::string_view id;
  std::string_view function;
  bool member = false;                // the first argument is the receiver
  std::uint8_t type_param_count = 0;  // type parameters have Type::var 1..type_param_count
  std::span<const Type* const> args;
  const Type* result = nullptr;
};

struct Function {
  std::string_view name;
  std::span<const Overload* const> overloads;  // in declaration order
};

struct Variable {
  std::string name;
  const Type* type = nullptr;  // must outlive the environment
};

}  // namespace keelson::cel
