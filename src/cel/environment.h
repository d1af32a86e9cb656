// An environment: the functions, macros, variables and types that an expression may use.
// Thread safety: immutable; shared by compilations and by the expressions compiled with it.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cel/declarations.h"
#include "cel/libraries.h"
#include "cel/type.h"

namespace keelson::cel {

class Environment;
using EnvironmentPtr = std::shared_ptr<const Environment>;

struct EnvironmentOptions {
  std::vector<Library> libraries;  // in the order in which they declare overloads; kStandard is implied
  std::vector<Variable> variables;
  std::shared_ptr<const TypeProvider> types;  // may be null
  bool literal_validators =
      true;            // durations, timestamps, regular expressions, formats; one type in list and map literals
  bool macros = true;  // has(), all(), map() and the like are expanded; false: calls like any other. Extend() keeps it
  // The environment is made once and lives as long as the process: CompileShared keeps programs of it. Not inherited.
  bool permanent = false;
};

class Environment {
 public:
  static EnvironmentPtr New(EnvironmentOptions options);
  // This environment with more variables, libraries or types. Types of the extension come first.
  EnvironmentPtr Extend(EnvironmentOptions more) const;

  const Function* FindFunction(std::string_view name) const;
  // A type by its name: language, well-known protobuf, library or provider type. Null where there is none.
  const Type* FindType(std::string_view name) const;
  // A type that a struct literal may build or whose fields may be selected: provider types and protobuf messages.
  const Type* FindStructType(std::string_view name) const;
  // An enum constant, or null.
  const std::int64_t* FindConstant(std::string_view name) const;
  // A field of a struct type or of a well-known protobuf message.
  const Type* FindFieldType(std::string_view type, std::string_view field) const;
  bool has(Library library) const { return (libraries_ & (1u << static_cast<unsigned>(library))) != 0; }
  std::span<const Variable> variables() const { return variables_; }
  bool literal_validators() const { return literal_validators_; }
  bool permanent() const { return permanent_; }
  bool macros() const { return macros_; }

 private:
  struct Functions;  // overloads by name, shared by extensions that add no libraries
  Environment() = default;

  std::shared_ptr<const Functions> functions_;
  std::vector<Variable> variables_;
  std::vector<std::shared_ptr<const TypeProvider>> types_;
  std::vector<Library> library_order_;
  std::uint32_t libraries_ = 0;
  bool literal_validators_ = true;
  bool permanent_ = false;
  bool macros_ = true;
};

enum class ExpressionMode : std::uint8_t {
  kNew,     // libraries up to the compatibility version
  kStored,  // everything
};

inline constexpr int kCompatibilityMinor = 35;  // MinCompatibilityVersion of a v1.36 server

// The environment without variables that all uses in Kubernetes extend, for compatibility version 1.`minor`. Made once.
EnvironmentPtr BaseEnvironment(ExpressionMode mode, int minor = kCompatibilityMinor);

}  // namespace keelson::cel
