// CEL expressions of an AuthenticationConfiguration: claim mappings over `claims`, rules over `claims` or `user`.
// Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "object/value.h"

namespace keelson::cel {
class TimeZones;  // cel/temporal.h
}
namespace keelson::auth {

enum class ExpressionKind : std::uint8_t { kMapping, kClaimRule, kUserRule };

// A result as far as claim mappings and rules look at it.
struct ExpressionResult {
  enum class Type : std::uint8_t { kNull, kBool, kString, kStrings, kOther };
  Type type = Type::kOther;  // kStrings: a list of strings that comes from the token; lists made by CEL are kOther
  bool boolean = false;
  std::string text;
  std::vector<std::string> texts;
};

class Expression {
 public:
  // The error is the detail of upstream's field error: `compilation failed: ...`, `must evaluate to bool`.
  // `time_zones` must outlive the expression; null: no named zone is known.
  static Outcome<Expression, std::string> Compile(ExpressionKind kind, const std::string& text,
                                                  const cel::TimeZones* time_zones = nullptr);
  const std::string& text() const { return text_; }
  // Whether it reads claims.<name>, also as claims.?<name>.
  bool UsesClaim(std::string_view name) const;
  // `input`: the claims, or the user as a map. The error is upstream's: `expression '...' resulted in error: ...`.
  Outcome<ExpressionResult, std::string> Evaluate(const Value& input) const;

  struct Program;

 private:
  Expression(std::string text, std::shared_ptr<const Program> program)
      : text_(std::move(text)), program_(std::move(program)) {}
  std::string text_;
  std::shared_ptr<const Program> program_;
};

}  // namespace keelson::auth
