#include "registry/rules/rules.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace keelson::registry::rules {

using validation::Invalid;
using validation::NotSupported;
using validation::Required;

bool IsZero(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return true;
    case Value::Kind::kBool:
      return !value.as_bool();
    case Value::Kind::kInt:
      return value.as_int() == 0;
    case Value::Kind::kDouble:
      return value.as_double() == 0;
    case Value::Kind::kString:
      return value.as_string().empty();
    case Value::Kind::kRaw:
      return value.as_raw().empty() || value.as_raw() == "null";
    case Value::Kind::kList:
      return value.empty();
    case Value::Kind::kMap:
      // A struct whose members are all zero is a zero struct; a map of texts with one empty text is not, but such a
      // comparison does not occur.
      return std::ranges::all_of(value.members(), [](const object::Member& member) { return IsZero(member.value); });
  }
  return false;
}

bool SemanticEqual(const Value& a, const Value& b) { return validation::SemanticEqual(a, b); }

void DefaultIfZero(base::Arena& arena, Value object, std::string_view key, Value value) {
  if (object.is_map() && IsZero(object[key])) object.Set(arena, key, value);
}

bool OneOf(std::string_view text, std::initializer_list<std::string_view> supported) {
  return std::find(supported.begin(), supported.end(), text) != supported.end();
}

void NotSupportedValue(const FieldPath& path, std::string_view text, std::initializer_list<std::string_view> supported,
                       FieldErrors& errors) {
  errors.push_back(
      NotSupported(path, Value(text), std::span<const std::string_view>(supported.begin(), supported.size())));
}

void Immutable(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors) {
  if (SemanticEqual(now, old)) return;
  if (!now.is_map()) return errors.push_back(Invalid(path, now, "field is immutable"));
  base::Arena arena;  // Go's maps are shown sorted.
  Value sorted = now.Clone(arena);
  sorted.SortMembers();
  errors.push_back(Invalid(path, sorted, "field is immutable"));
}

void ImmutableText(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors) {
  if (now.as_string() != old.as_string()) errors.push_back(Invalid(path, now.as_string(), "field is immutable"));
}

meta::FieldError InvalidRendered(const FieldPath& path, std::string rendered, std::string_view detail) {
  return {.type = meta::FieldError::Type::kInvalid,
          .field = path.ToString(),
          .value = std::move(rendered),
          .detail = std::string(detail)};
}

meta::FieldError DuplicateRendered(const FieldPath& path, std::string rendered) {
  return {
      .type = meta::FieldError::Type::kDuplicate, .field = path.ToString(), .value = std::move(rendered), .detail = {}};
}

void ValidateMeta(const Value& object, bool namespaced, validation::NameRule rule, FieldErrors& errors,
                  bool core_finalizers) {
  validation::ValidateObjectMeta(object["metadata"], namespaced, rule, FieldPath("metadata"), errors, core_finalizers);
}

void ValidateMetaUpdate(const Value& object, const Value& old, FieldErrors& errors, bool core_finalizers) {
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors,
                                       core_finalizers);
}

void ResetMetaForStatus(base::Arena& arena, Value object, const Value& old) {
  Value now = object.EnsureMap(arena, "metadata");
  const Value before = old["metadata"];
  for (const std::string_view key :
       {"deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"}) {
    CopyMember(arena, now, before, key);
  }
}

std::optional<std::int64_t> ParsePercent(std::string_view text) {
  if (text.size() < 2 || text.back() != '%') return std::nullopt;
  text.remove_suffix(1);
  if (!std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return base::ParseInt64(text);
}

void ValidatePositiveIntOrPercent(const Value& value, const FieldPath& path, FieldErrors& errors) {
  if (value.is_string()) {
    for (const std::string& message : validation::IsValidPercent(value.as_string()))
      errors.push_back(Invalid(path, value, message));
  } else if (value.is_int()) {
    validation::ValidateNonnegative(value.as_int(), path, errors);
  }
}

void IsNotMoreThan100Percent(const Value& value, const FieldPath& path, FieldErrors& errors) {
  const auto percent = ParsePercent(value.as_string());
  if (percent.has_value() && *percent > 100) errors.push_back(Invalid(path, value, "must not be greater than 100%"));
}

void ValidateCSIDriverName(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  constexpr std::int64_t kDriverNameBytesMax = 63;
  if (text.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (static_cast<std::int64_t>(text.size()) > kDriverNameBytesMax)
    errors.push_back(validation::TooLong(path, kDriverNameBytesMax));
  for (const std::string& message : validation::IsDNS1123Subdomain(base::ToLower(text)))
    errors.push_back(Invalid(path, text, message));
}

bool IsInvalidSelector(const Value& selector) {
  FieldErrors errors;
  validation::ValidateLabelSelector(selector, FieldPath("selector"), errors);
  return !errors.empty();
}

std::optional<GroupVersionText> ParseGroupVersion(std::string_view text) {
  if (text.empty() || text == "/") return GroupVersionText{};
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return GroupVersionText{{}, text};
  if (text.find('/', slash + 1) != std::string_view::npos) return std::nullopt;
  return GroupVersionText{text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace keelson::registry::rules
