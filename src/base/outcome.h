// A value or an error, never both: std::expected, made [[nodiscard]], with .ok().
// Expected outcomes (not found, conflict, peer gone) travel this way; we throw nothing.
#pragma once

#include <expected>
#include <string_view>
#include <utility>

namespace keelson {

template <class T, class E>
class [[nodiscard]] Outcome : public std::expected<T, E> {
 public:
  using Base = std::expected<T, E>;
  using Base::Base;
  Outcome()
    requires std::is_default_constructible_v<T> || std::is_void_v<T>
  = default;
  Outcome(E error) : Base(std::unexpect, std::move(error)) {}  // NOLINT: an error converts, as a value does

  bool ok() const { return this->has_value(); }
};

// Makes dropping an error a visible act, with its reason.
template <class T, class E>
void IgnoreError(const Outcome<T, E>&, std::string_view /*why*/) {}

}  // namespace keelson

#define KS_CONCAT_INNER(a, b) a##b
#define KS_CONCAT(a, b) KS_CONCAT_INNER(a, b)

// KS_TRY(auto value, Expression()): declares `value`, or returns the error upward. KS_CO_TRY is the same in a
// coroutine.
#define KS_TRY(declaration, ...) KS_TRY_IMPL(KS_CONCAT(ks_try_, __LINE__), return, declaration, __VA_ARGS__)
#define KS_CO_TRY(declaration, ...) KS_TRY_IMPL(KS_CONCAT(ks_try_, __LINE__), co_return, declaration, __VA_ARGS__)
#define KS_TRY_IMPL(name, return_keyword, declaration, ...) \
  auto name = __VA_ARGS__;                                  \
  if (!name.ok()) return_keyword std::move(name).error();   \
  declaration = *std::move(name)

// The same for Outcome<void, E>.
#define KS_RETURN_IF_ERROR(...) KS_RETURN_IF_ERROR_IMPL(KS_CONCAT(ks_try_, __LINE__), return, __VA_ARGS__)
#define KS_CO_RETURN_IF_ERROR(...) KS_RETURN_IF_ERROR_IMPL(KS_CONCAT(ks_try_, __LINE__), co_return, __VA_ARGS__)
#define KS_RETURN_IF_ERROR_IMPL(name, return_keyword, ...) \
  if (auto name = __VA_ARGS__; !name.ok()) return_keyword std::move(name).error()
