// Implementations of CEL functions, found by overload id. Signatures are checked against the declaration before a call,
// so an implementation may rely on its argument types unless the function has its type guards off.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cel/evaluation.h"
#include "cel/value.h"

namespace keelson::cel {

using Implementation = Val (*)(Evaluation& evaluation, std::span<const Val> args);

// Unary and binary calls evaluate all arguments before an error among them is looked at; the others stop at the first.
enum class CallForm : std::uint8_t { kUnary, kBinary, kVarArgs };

struct Binding {
  std::string_view id;
  Implementation function;
  CallForm form;
  bool non_strict = false;  // errors are passed in
};

// One implementation for all overloads of a function: chosen by a trait of the first argument, not by signature.
struct Singleton {
  std::string_view function;
  Implementation implementation;
  CallForm form;
  std::uint16_t trait = 0;
};

const Binding* FindBinding(std::string_view overload_id);
const Singleton* FindSingleton(std::string_view function);
// Functions whose arguments are not checked before the call (DisableTypeGuards).
bool HasTypeGuards(std::string_view function);

std::span<const Binding> StandardBindings();
std::span<const Singleton> StandardSingletons();
std::span<const Binding> StringBindings();
std::span<const Binding> ListBindings();
std::span<const Singleton> ListSingletons();
std::span<const Binding> MathBindings();
std::span<const Binding> KubernetesBindings();
std::span<const Binding> NetworkBindings();
std::span<const Binding> AuthorizerBindings();

}  // namespace keelson::cel
