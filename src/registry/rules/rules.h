// Validation helpers that several groups share: short forms of the field errors, comparisons by Go's semantic equality,
// and checks that more than one kind needs. Pure functions over Value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "object/field_path.h"
#include "object/value.h"
#include "registry/fields.h"
#include "validation/errors.h"
#include "validation/primitives.h"

namespace keelson::registry::rules {

using validation::FieldErrors;
using validation::Messages;

// Go's zero: null, "", 0, false, and lists and maps without members.
bool IsZero(const Value& value);
// Equality as upstream's equality.Semantic has it for decoded objects: lists and maps without members equal absent
// ones, maps regardless of order. Decoded objects have no zero scalars where Go has no pointer, so those need no care.
bool SemanticEqual(const Value& a, const Value& b);
// As Default, but an empty text or zero counts as absent: fields that are not pointers upstream.
void DefaultIfZero(base::Arena& arena, Value object, std::string_view key, Value value);

// NotSupported with the values in the order given; true when `text` is one of them.
bool OneOf(std::string_view text, std::initializer_list<std::string_view> supported);
void NotSupportedValue(const FieldPath& path, std::string_view text, std::initializer_list<std::string_view> supported,
                       FieldErrors& errors);
// Invalid "field is immutable" unless semantically equal. A text that is absent shows as "".
void Immutable(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors);
void ImmutableText(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors);
// An error whose value is already rendered: structs of upstream's internal types show Go's field names (see
// go_struct.h).
meta::FieldError InvalidRendered(const FieldPath& path, std::string rendered, std::string_view detail);
meta::FieldError DuplicateRendered(const FieldPath& path, std::string rendered);

// metadata, as kinds repeat it in their own rules.
void ValidateMeta(const Value& object, bool namespaced, validation::NameRule rule, FieldErrors& errors,
                  bool core_finalizers = true);
void ValidateMetaUpdate(const Value& object, const Value& old, FieldErrors& errors, bool core_finalizers = true);
// rest.ResetObjectMetaForStatus: what a status endpoint of the stricter kinds may not touch comes back from the old
// object.
void ResetMetaForStatus(base::Arena& arena, Value object, const Value& old);

// An int-or-string that is a percentage or a number. Malformed texts are errors here and nothing anywhere else.
void ValidatePositiveIntOrPercent(const Value& value, const FieldPath& path, FieldErrors& errors);
void IsNotMoreThan100Percent(const Value& value, const FieldPath& path, FieldErrors& errors);
void ValidateCSIDriverName(std::string_view text, const FieldPath& path, FieldErrors& errors);
// Whether strict rules refuse it: a stored object that has such a selector may keep unusual label values.
bool IsInvalidSelector(const Value& selector);
// "group/version" taken apart; nothing when there are two slashes.
struct GroupVersionText {
  std::string_view group;
  std::string_view version;
};
std::optional<GroupVersionText> ParseGroupVersion(std::string_view text);
// The first so many decimal digits before "%"; nothing when it is not of that form.
std::optional<std::int64_t> ParsePercent(std::string_view text);

}  // namespace keelson::registry::rules
