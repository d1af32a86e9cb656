// Small readers and checks that strategies share: what a validation rule says in one line should take one line of code.
// Everything is pure and appends to the errors it is given, in the order of the calls.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/field_path.h"
#include "object/value.h"
#include "registry/strategy.h"
#include "validation/errors.h"
#include "validation/primitives.h"

namespace keelson::registry {

using validation::Duplicate;
using validation::Forbidden;
using validation::Invalid;
using validation::Messages;
using validation::NotFound;
using validation::NotSupported;
using validation::Required;

using Names = std::span<const std::string_view>;
using NameSet = std::set<std::string, std::less<>>;

inline std::string_view Text(Value object, std::string_view key) { return object[key].as_string(); }
inline std::int64_t Int(Value object, std::string_view key) { return object[key].as_int(); }
inline bool Bool(Value object, std::string_view key) { return object[key].as_bool(); }
inline bool IsSet(Value object, std::string_view key) { return !object[key].is_null(); }
bool Contains(Names names, std::string_view name);

// A member that is a map's keys in byte order, as errors over Go maps are reported here.
std::vector<object::Member> SortedMembers(Value map);

// One error per message, with the text as the value.
void AddInvalid(const FieldPath& path, std::string_view text, const Messages& messages, FieldErrors& errors);
// Required when the text member is empty; false then.
bool RequireText(Value object, std::string_view key, const FieldPath& path, FieldErrors& errors);
void RequireTexts(Value object, std::initializer_list<std::string_view> keys, const FieldPath& path,
                  FieldErrors& errors);
// NotSupported unless it is one of the names (in the order of the message).
bool CheckOneOf(Value value, Names supported, const FieldPath& path, FieldErrors& errors);
// Required when empty, else CheckOneOf.
void RequireOneOf(Value value, Names supported, const FieldPath& path, FieldErrors& errors);
// The same of a text, with the names at the place of the call.
bool CheckOneOf(std::string_view text, std::initializer_list<std::string_view> supported, const FieldPath& path,
                FieldErrors& errors);
void RequireOneOf(std::string_view text, std::initializer_list<std::string_view> supported, const FieldPath& path,
                  FieldErrors& errors);
void CheckDNSLabel(std::string_view text, const FieldPath& path, FieldErrors& errors);
void CheckDNSSubdomain(std::string_view text, const FieldPath& path, FieldErrors& errors);
void CheckQualifiedName(std::string_view text, const FieldPath& path, FieldErrors& errors);
void CheckPortNumOrName(Value port, const FieldPath& path, FieldErrors& errors);
void CheckNonnegative(Value object, std::string_view key, const FieldPath& parent, FieldErrors& errors);
// "must be between <min> and <max>, inclusive".
std::string RangeMessage(std::int64_t min, std::int64_t max);

// Sets a member where it is null or absent.
void Default(base::Arena& arena, Value object, std::string_view key, Value value);
// Sets a text member where it is absent or "".
void DefaultText(base::Arena& arena, Value object, std::string_view key, std::string_view text);
// Copies, or takes away, one member.
void CopyMember(base::Arena& arena, Value to, Value from, std::string_view key);

bool FeatureEnabled(const Call& call, std::string_view gate);
void Warning(const Call& call, const FieldPath& path, std::string_view text);  // "<path>: <text>"

// A map of labels against a map that must be contained in it (labels.Set(...).AsSelector()).
bool SetMatches(Value selector, Value labels);
// metav1.LabelSelector against labels. False for one that does not parse.
bool LabelSelectorMatches(Value selector, Value labels);
bool LabelSelectorParses(Value selector);
bool LabelSelectorEmpty(Value selector);
// The text form, "a=b,c in (d,e)", sorted as Go's Selector.String() does; for table cells.
std::string LabelSelectorText(Value selector);
std::string LabelsText(Value labels);  // "a=b,c=d" or <none>

}  // namespace keelson::registry
