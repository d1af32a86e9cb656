// Validation of one value against a schema, as kube-openapi's validate package does it: which validators apply to a
// value, how many of them passed (that decides which alternative of anyOf and oneOf is reported), the texts.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "base/strings.h"
#include "object/go_text.h"
#include "object/json_text.h"
#include "validation/structural/custom_resource.h"

namespace keelson::validation::structural {
namespace {

using object::Member;
using schema::structural::ListType;
using schema::structural::NodeType;

// Path of a value. Its text is made only for an error.
struct Place {
  const Place* parent = nullptr;
  std::string_view name;
  std::int64_t index = -1;
  bool additional = false;  // a member by additionalProperties: has a leading dot also at the root

  std::string ToString() const {
    if (parent == nullptr) return std::string(name);
    std::string text = parent->ToString();
    if (index >= 0) return text + "[" + std::to_string(index) + "]";
    if (!text.empty() || additional) text += '.';
    return text.append(name);
  }
};

struct Issue {
  FieldError error;
  std::string text;  // upstream drops errors of the same text
};

// The old value that a value replaces, if it can be correlated (by property, map key or list map key).
struct Correlated {
  Value old;
  Node schema;

  using ByKey = base::StringMap<Value>;
  mutable std::shared_ptr<const ByKey> items;  // of a list map, made on first use
};

// Nothing for an item that lacks a key: it has no counterpart.
std::optional<std::string> KeyOf(const Value& item, Node list) {
  std::string key;
  for (std::size_t i = 0; i < list.list_map_key_count(); ++i) {
    const Value* found = item.Find(list.list_map_key(i));
    if (found == nullptr) return std::nullopt;
    object::AppendJSON(key, *found);
    key += '\n';
  }
  return key;
}

std::optional<Correlated> ChildOf(const Correlated* parent, const Value& value, std::string_view key) {
  if (parent == nullptr || !parent->schema) return std::nullopt;
  const Value* old = parent->old.Find(key);
  if (old == nullptr || !value.Has(key)) return std::nullopt;
  const Node schema = parent->schema.Member(key);
  if (!schema) return std::nullopt;
  return Correlated{*old, schema, nullptr};
}

std::optional<Correlated> ItemOf(const Correlated* parent, const Value& item) {
  if (parent == nullptr || !parent->schema || !parent->old.is_list()) return std::nullopt;
  if (parent->schema.list_type() != ListType::kMap || !parent->schema.items() || !item.is_map()) return std::nullopt;
  if (!parent->items) {
    auto items = std::make_shared<Correlated::ByKey>();
    for (const Value& old : parent->old.items()) {
      const auto key = old.is_map() ? KeyOf(old, parent->schema) : std::nullopt;
      if (key) items->insert_or_assign(*key, old);
    }
    parent->items = std::move(items);
  }
  const auto key = KeyOf(item, parent->schema);
  if (!key) return std::nullopt;
  const auto found = parent->items->find(*key);
  if (found == parent->items->end()) return std::nullopt;
  return Correlated{found->second, parent->schema.items(), nullptr};
}

// Whether value and old object are equal, by their list types. Adds the number of values compared to `steps`.
bool Unchanged(const Value& value, const Correlated& before, std::size_t& steps) {
  const Value& old = before.old;
  steps += 1 + value.size();
  if (value.is_null() || old.is_null()) return value.is_null() && old.is_null();
  if (value.is_list() != old.is_list() || value.is_map() != old.is_map()) return false;
  if (value.is_map()) {
    if (value.size() != old.size()) return false;
    return std::ranges::all_of(value.members(), [&](const Member& member) {
      const auto child = ChildOf(&before, value, member.key);
      return child && Unchanged(member.value, *child, steps);
    });
  }
  if (value.is_list() && before.schema && before.schema.list_type() == ListType::kMap) {
    if (value.size() != old.size()) return false;
    return std::ranges::all_of(value.items(), [&](const Value& item) {
      const auto child = ItemOf(&before, item);
      return child && Unchanged(item, *child, steps);
    });
  }
  return value.kind() == old.kind() && value == old;
}

// swag.IsFloat64AJSONInteger.
bool IsJSONInteger(double f) {
  constexpr double kMax = 9007199254740991.0;
  constexpr double kEpsilon = 1e-9;
  if (std::isnan(f) || std::isinf(f) || f < -kMax || f > kMax) return false;
  if (f == std::trunc(f)) return true;
  if (f < 0) return false;  // compared with a huge unsigned number upstream
  const double g = std::trunc(f);
  if (f == 0 || g == 0) return false;
  return std::abs(f - g) / (std::abs(f) + std::abs(g)) < kEpsilon;
}

// The entries of one enum: texts by hash, integers in order (clients can choose integers that collide), the others parsed once.
struct EnumIndex {
  base::StringViewSet texts;
  std::set<std::int64_t> integers;
  struct Entry {
    Value value;
    std::size_t steps;  // of a comparison
  };
  std::vector<Entry> values;  // all entries but texts, integers too
};

struct NodeHash {
  std::size_t operator()(const Node& node) const { return std::hash<const void*>()(node.schema()) * 31 + node.index(); }
};

constexpr std::size_t kCheckSteps = 4;
constexpr std::size_t kErrorSteps = 250;  // an error costs these, and a step for two bytes of its texts
constexpr std::size_t kTextBytes = 8;     // bytes of a text that are checked in one step
constexpr std::size_t kEnumEntrySteps = 16;
constexpr std::size_t kIndexedEnumMin = 8;  // smaller enums of texts are searched, not hashed

class ValueValidator {
 public:
  enum class IntOrString : std::uint8_t { kChecked, kAny };
  // `steps`: what was spent before, of kValidationStepsMax.
  ValueValidator(base::Arena& arena, const FieldPath& base, IntOrString int_or_string, std::size_t& steps)
      : arena_(arena), base_(base), any_int_or_string_(int_or_string == IntOrString::kAny), steps_(steps) {}

  // The errors are appended to `out`; the number of checks that passed.
  int Walk(const Value& value, Node schema, const Correlated* before, const Place& place, std::vector<Issue>& out) {
    const std::size_t errors = out.size();
    const int matches = Check(value, schema, before, place, out);
    if (out.size() > errors && before != nullptr && !Spent() && Unchanged(value, *before, steps_)) out.resize(errors);
    return matches;
  }

  bool Spent() const { return steps_ > kValidationStepsMax; }

 private:
  struct Types {
    std::string_view names[2];
    std::size_t count = 0;
    bool Has(std::string_view name) const { return (count > 0 && names[0] == name) || (count > 1 && names[1] == name); }
    std::string Joined() const {
      return count == 2 ? std::string(names[0]) + "," + std::string(names[1]) : std::string(count == 1 ? names[0] : "");
    }
  };

  Types TypesOf(Node schema) const {
    Types types;
    if (schema.int_or_string() && !any_int_or_string_) return {{"integer", "string"}, 2};
    if (schema.type() != NodeType::kNone) return {{schema::structural::NodeTypeName(schema.type()), ""}, 1};
    return types;
  }
  static std::string_view FormatOf(Node schema, const Types& types) {
    const std::string_view format = schema.format();
    if (format.empty()) return format;
    return IsKnownFormat(types.count == 1 ? types.names[0] : "", format) ? format : std::string_view();
  }
  static std::string_view TypeOf(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kBool:
        return "boolean";
      case Value::Kind::kString:
        return "string";
      case Value::Kind::kInt:
        return "integer";
      case Value::Kind::kDouble:
        return "number";
      case Value::Kind::kList:
        return "array";
      default:
        return "object";
    }
  }

  // An error at a place. `make` gets the path of the error.
  template <class Make>
  void Add(std::vector<Issue>& out, const std::string& name, std::string text, Make make) const {
    std::string_view trimmed = name;
    if (trimmed.starts_with('.')) trimmed.remove_prefix(1);
    FieldError error = trimmed.empty() ? make(base_) : make(base_.empty() ? FieldPath(trimmed) : base_.Child(trimmed));
    steps_ += kErrorSteps + (text.size() + error.field.size() + error.value.size() + error.detail.size()) / 2;
    out.push_back({std::move(error), std::move(text)});
  }
  void AddInvalid(std::vector<Issue>& out, const Place& place, const Value& value, std::string_view rest) const {
    const std::string name = place.ToString();
    const std::string text = name + " in body " + std::string(rest);
    Add(out, name, text, [&](const FieldPath& path) { return Invalid(path, value, text); });
  }
  // An error without a field path.
  void AddPlain(std::vector<Issue>& out, std::string text) const {
    FieldError error = Invalid(base_, "", text);
    steps_ += kErrorSteps + text.size();
    out.push_back({std::move(error), std::move(text)});
  }
  void AddWrongType(std::vector<Issue>& out, const Place& place, std::string_view wanted, std::string_view got) const {
    const std::string name = place.ToString();
    const std::string text = name + " in body must be of type " + std::string(wanted) + ": " + base::GoQuote(got);
    Add(out, name, text, [&](const FieldPath& path) { return TypeInvalid(path, Value(got), text); });
  }

  int Check(const Value& value, Node schema, const Correlated* before, const Place& place, std::vector<Issue>& out) {
    if (!schema || Spent()) return 0;
    steps_ += kCheckSteps;
    const Types types = TypesOf(schema);
    if (value.is_null()) {
      int matches = 0;
      if (types.count > 0 && !schema.nullable()) {
        AddWrongType(out, place, types.Joined(), "null");
      } else {
        matches = 1;
      }
      CheckEnum(value, schema, place, out);
      return matches;
    }
    const std::string_view format = FormatOf(schema, types);
    int matches = 1;
    if (types.count > 0 || !format.empty()) matches += 1 + CheckType(value, types, format, place, out);
    matches += 2 + CheckJunctors(value, schema, place, out);
    if (value.is_string()) {
      CheckString(value.as_string(), schema, place, out);
      ++matches;
      if (!format.empty()) {
        steps_ += value.as_string().size() / kTextBytes;
        if (!MatchesFormat(format, value.as_string())) AddWrongType(out, place, format, value.as_string());
        ++matches;
      }
    }
    if (value.is_number()) {
      CheckNumber(value, schema, types, format, place, out);
      matches += 2;
    }
    if (value.is_list()) matches += 2 + CheckList(value, schema, before, place, out);
    CheckEnum(value, schema, place, out);
    ++matches;
    if (value.is_map()) matches += 1 + CheckObject(value, schema, before, place, out);
    return matches;
  }

  int CheckType(const Value& value, const Types& types, std::string_view format, const Place& place,
                std::vector<Issue>& out) const {
    const std::string_view type = TypeOf(value);
    const std::string_view value_format = value.is_int() ? "int64" : value.is_double() ? "float64" : "";
    const bool float_int = value.is_double() && IsJSONInteger(value.as_double()) && types.Has("integer");
    const bool int_float = value.is_int() && types.Has("number");
    const bool textual = value.is_string() || value.is_list();
    const bool fits = types.Has(type) || float_int || int_float;
    if (!textual && !format.empty() && !fits && value_format != format) {
      AddWrongType(out, place, format, value_format);
      return 0;
    }
    if (!types.Has("number") && !types.Has("integer") && !format.empty() && textual) return 1;
    if (!fits) {
      AddWrongType(out, place, types.Joined(), type);
      return 0;
    }
    return 1;
  }

  void CheckString(std::string_view text, Node schema, const Place& place, std::vector<Issue>& out) const {
    const auto max = schema.max_length(), min = schema.min_length();
    if (max || min) {
      steps_ += text.size() / kTextBytes;
      const auto runes = static_cast<std::int64_t>(
          std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
      if (max && runes > *max) {
        const std::string name = place.ToString();
        Add(out, name, name + " in body should be at most " + std::to_string(*max) + " chars long",
            [&](const FieldPath& path) { return TooLong(path, *max); });
        return;
      }
      if (min && runes < *min) {
        AddInvalid(out, place, Value(text), "should be at least " + std::to_string(*min) + " chars long");
        return;
      }
    }
    if (const std::string_view pattern = schema.pattern(); !pattern.empty()) {
      const base::GoRegex* const compiled = schema.compiled_pattern();
      steps_ += text.size() / kTextBytes;
      if (!compiled->ok()) {
        AddInvalid(out, place, Value(text),
                   "should match '" + std::string(pattern) + ", but pattern is invalid: " + compiled->error() + "'");
      } else if (!compiled->Matches(text)) {
        AddInvalid(out, place, Value(text), "should match '" + std::string(pattern) + "'");
      }
    }
  }

  // False, with an error, for a number that does not fit the type and format.
  bool InRange(const Value& number, const Types& types, std::string_view format, std::string_view prefix,
               const Place& place, std::vector<Issue>& out) const {
    if (types.count != 1) return true;
    const std::string_view type = types.names[0];
    bool fits = true;
    if (type == "integer") {
      const double whole = number.as_double();
      fits = number.is_int() || (whole == std::trunc(whole) && whole > -0x1p63 && whole < 0x1p63);
      if (fits && format == "int32") {
        const double limit = number.is_int() ? static_cast<double>(number.as_int()) : whole;
        fits = limit >= std::numeric_limits<std::int32_t>::min() && limit <= std::numeric_limits<std::int32_t>::max();
      }
    } else if (type == "number") {
      if (format == "float") {
        // Half of the last place beyond the greatest float rounds to it.
        fits = std::abs(number.as_double()) < static_cast<double>(std::numeric_limits<float>::max()) + 0x1p103;
      }
    } else {
      return true;
    }
    if (fits) return true;
    const std::string with = format.empty() ? "(default format)" : "with format " + std::string(format);
    AddPlain(out, std::string(prefix) + " value must be of type " + std::string(type) + " " + with + " in " +
                      place.ToString());
    return false;
  }

  static Value Truncated(const Value& value, double bound) {  // the bound in the value's Go type
    if (!value.is_int()) return Value(bound);
    if (bound >= 0x1p63) return Value(std::numeric_limits<std::int64_t>::min());  // as amd64 converts
    if (bound < -0x1p63 || std::isnan(bound)) return Value(std::numeric_limits<std::int64_t>::min());
    return Value(static_cast<std::int64_t>(bound));
  }
  static int Compare(const Value& a, const Value& b) {
    if (a.is_int() && b.is_int()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
    return a.as_double() < b.as_double() ? -1 : a.as_double() > b.as_double() ? 1 : 0;
  }

  void CheckMultiple(const Value& value, const Value& factor, const Place& place, std::vector<Issue>& out) const {
    if (Compare(factor, Value(0)) <= 0) {
      const std::string name = place.ToString();
      const std::string text =
          "factor MultipleOf declared for " + name + " must be positive: " + object::GoSprint(factor);
      Add(out, name, text, [&](const FieldPath& path) { return Invalid(path, factor, text); });
      return;
    }
    bool multiple = false;
    if (value.is_int() && factor.is_int()) {
      multiple = value.as_int() % factor.as_int() == 0;
    } else {
      const double by = factor.as_double();
      multiple = IsJSONInteger(by < 1 ? 1 / by * value.as_double() : value.as_double() / by);
    }
    if (!multiple) AddInvalid(out, place, value, "should be a multiple of " + object::GoSprint(factor));
  }

  void CheckNumber(const Value& value, Node schema, const Types& types, std::string_view format, const Place& place,
                   std::vector<Issue>& out) const {
    InRange(value, types, format, "Checked", place, out);
    // A bound that does not fit the type is compared as a general number.
    const auto bound = [&](double given, std::string_view prefix) {
      const bool native = InRange(Value(given), types, format, prefix, place, out);
      return native ? Truncated(value, given) : Value(given);
    };
    if (const auto factor = schema.multiple_of()) {
      const Value by = bound(*factor, "MultipleOf");
      CheckMultiple(by.is_int() ? value : Value(value.as_double()), by, place, out);
    }
    const auto compare = [&](double given, std::string_view prefix, bool exclusive, int sign, std::string_view words,
                             std::string_view or_equal) {
      const Value limit = bound(given, prefix);
      const Value number = limit.is_int() ? value : Value(value.as_double());
      const int order = Compare(number, limit) * sign;
      if (order < 0 || (order == 0 && !exclusive)) return;
      AddInvalid(
          out, place, number,
          "should be " + std::string(words) + std::string(exclusive ? "" : or_equal) + " " + object::GoSprint(limit));
    };
    if (const auto minimum = schema.minimum())
      compare(*minimum, "Minimum boundary", schema.exclusive_minimum(), -1, "greater than", " or equal to");
    if (const auto maximum = schema.maximum())
      compare(*maximum, "Maximum boundary", schema.exclusive_maximum(), 1, "less than", " or equal to");
  }

  const EnumIndex& IndexOf(Node schema) {
    const auto [found, added] = enums_.try_emplace(schema);
    EnumIndex& index = found->second;
    if (!added) return index;
    const std::size_t count = schema.enum_count();
    steps_ += count * kEnumEntrySteps;
    for (std::size_t i = 0; i < count; ++i) {
      if (schema.enum_is_string(i)) {
        index.texts.insert(schema.enum_text(i));
      } else if (const auto entry = object::ParseJSON(arena_, schema.enum_text(i)); entry && !entry->is_null()) {
        if (entry->is_int()) index.integers.insert(entry->as_int());
        index.values.push_back({*entry, 1 + schema.enum_text(i).size() / 8});
      }
    }
    return index;
  }

  // Equal after conversion of the value to the Go type of the enum's entry.
  static bool IsEnumEntry(const Value& value, const Value& entry) {
    if (entry.is_int() && value.is_double()) return std::trunc(value.as_double()) == entry.as_double();
    return entry.is_bool() == value.is_bool() && entry == value;
  }

  bool IsInEnum(const Value& value, Node schema) {
    if (value.is_null()) return false;
    if (value.is_string() && schema.enum_count() < kIndexedEnumMin) {
      for (std::size_t i = 0; i < schema.enum_count(); ++i) {
        if (schema.enum_is_string(i) && schema.enum_text(i) == value.as_string()) return true;
      }
      return false;
    }
    const EnumIndex& index = IndexOf(schema);
    if (value.is_string()) return index.texts.contains(value.as_string());
    if (value.is_int() && index.integers.contains(value.as_int())) return true;
    return std::ranges::any_of(index.values, [&](const EnumIndex::Entry& entry) {
      steps_ += entry.steps;
      return IsEnumEntry(value, entry.value);
    });
  }

  void CheckEnum(const Value& value, Node schema, const Place& place, std::vector<Issue>& out) {
    const std::size_t count = schema.enum_count();
    if (count == 0 || IsInEnum(value, schema)) return;
    steps_ += count * kCheckSteps;  // all of them are in the text
    std::vector<std::string_view> supported;
    for (std::size_t i = 0; i < count; ++i) supported.push_back(schema.enum_text(i));
    const std::string name = place.ToString();
    Add(out, name, name + " in body should be one of",
        [&](const FieldPath& path) { return NotSupported(path, value, supported); });
  }

  int CheckList(const Value& list, Node schema, const Correlated* before, const Place& place, std::vector<Issue>& out) {
    int matches = 0;
    if (const Node items = schema.items()) {
      std::int64_t index = 0;
      for (const Value& item : list.items()) {
        const auto old = ItemOf(before, item);
        matches += Walk(item, items, old ? &*old : nullptr, Place{&place, {}, index++, false}, out);
      }
    }
    const auto size = static_cast<std::int64_t>(list.size());
    if (const auto min = schema.min_items(); min && size < *min)
      AddInvalid(out, place, Value(size), "should have at least " + std::to_string(*min) + " items");
    if (const auto max = schema.max_items(); max && size > *max) {
      const std::string name = place.ToString();
      Add(out, name, name + " in body should have at most " + std::to_string(*max) + " items",
          [&](const FieldPath& path) { return TooMany(path, size, *max); });
    }
    if (schema.unique_items()) {
      std::set<std::string> seen;
      const bool unique = std::ranges::all_of(
          list.items(), [&](const Value& item) { return seen.insert(object::ToJSON(item)).second; });
      if (!unique) AddInvalid(out, place, Value(""), "shouldn't contain duplicates");
    }
    return matches;
  }

  int CheckObject(const Value& map, Node schema, const Correlated* before, const Place& place,
                  std::vector<Issue>& out) {
    int matches = 0;
    const auto size = static_cast<std::int64_t>(map.size());
    if (const auto min = schema.min_properties(); min && size < *min)
      AddInvalid(out, place, Value(size), "should have at least " + std::to_string(*min) + " properties");
    if (const auto max = schema.max_properties(); max && size > *max) {
      const std::string name = place.ToString();
      Add(out, name, name + " in body should have at most " + std::to_string(*max) + " properties",
          [&](const FieldPath& path) { return TooMany(path, size, *max); });
    }
    if (schema.has_additional_properties()) {
      const Node additional = schema.additional_properties();
      for (const Member& member : map.members()) {
        if (schema.Property(member.key)) continue;
        if (!schema.additional_properties_allowed()) {
          const std::string name = place.ToString();
          const std::string text = name + "." + std::string(member.key) + " in body is a forbidden property";
          Add(out, name, text, [&](const FieldPath& path) { return Invalid(path, member.key, text); });
        } else if (additional) {
          const auto old = ChildOf(before, map, member.key);
          matches += Walk(member.value, additional, old ? &*old : nullptr, Place{&place, member.key, -1, true}, out);
        }
      }
    }
    // Properties in their order, which is that of their names.
    const auto check = [&](std::string_view name, const Value& found, Node property) {
      // The root's type meta is the request's on both sides: there is nothing to ratchet.
      const bool type_meta = place.parent == nullptr && place.name.empty() && (name == "kind" || name == "apiVersion");
      const auto old = type_meta ? std::nullopt : ChildOf(before, map, name);
      matches += Walk(found, property, old ? &*old : nullptr, Place{&place, name, -1, false}, out);
    };
    if (schema.property_count() > map.size()) {
      std::vector<const Member*> members;
      for (const Member& member : map.members()) members.push_back(&member);
      std::ranges::sort(members, {}, &Member::key);
      for (const Member* member : members) {
        if (const Node property = schema.Property(member->key)) check(member->key, member->value, property);
      }
    } else {
      for (std::size_t i = 0; i < schema.property_count(); ++i) {
        const Value* const found = map.Find(schema.property_name(i));
        if (found != nullptr) check(schema.property_name(i), *found, schema.property(i));
      }
    }
    steps_ += schema.required_count();
    for (std::size_t i = 0; i < schema.required_count() && !Spent(); ++i) {
      if (map.Has(schema.required(i))) continue;
      const std::string name = place.ToString() + "." + std::string(schema.required(i));
      Add(out, name, name + " in body is required", [](const FieldPath& path) { return Required(path); });
    }
    return matches;
  }

  // Parts of alternatives are not ratcheted, only the whole value.
  int CheckJunctors(const Value& value, Node schema, const Place& place, std::vector<Issue>& out) {
    int matches = 0;
    if (schema.any_of_count() > 0) matches += CheckAnyOf(value, schema, place, out);
    if (schema.one_of_count() > 0) matches += CheckOneOf(value, schema, place, out);
    if (schema.all_of_count() > 0) {
      std::size_t validated = 0;
      for (std::size_t i = 0; i < schema.all_of_count(); ++i) {
        const std::size_t errors = out.size();
        matches += Check(value, schema.all_of(i), nullptr, place, out);
        if (out.size() == errors) ++validated;
      }
      if (validated != schema.all_of_count()) {
        AddPlain(out, base::GoQuote(place.ToString()) + " must validate all the schemas (allOf)" +
                          (validated == 0 ? ". None validated" : ""));
      }
    }
    if (const Node negated = schema.not_schema()) {
      std::vector<Issue> inner;
      Check(value, negated, nullptr, place, inner);
      if (inner.empty()) AddPlain(out, base::GoQuote(place.ToString()) + " must not validate the schema (not)");
    }
    return matches;
  }

  int CheckAnyOf(const Value& value, Node schema, const Place& place, std::vector<Issue>& out) {
    std::vector<Issue> best;
    int best_matches = -1;
    for (std::size_t i = 0; i < schema.any_of_count(); ++i) {
      std::vector<Issue> inner;
      const int matches = Check(value, schema.any_of(i), nullptr, place, inner);
      if (inner.empty()) return matches;
      if (matches > best_matches) {
        best_matches = matches;
        best = std::move(inner);
      }
    }
    AddPlain(out, base::GoQuote(place.ToString()) + " must validate at least one schema (anyOf)");
    std::ranges::move(best, std::back_inserter(out));
    return best_matches;
  }

  int CheckOneOf(const Value& value, Node schema, const Place& place, std::vector<Issue>& out) {
    std::vector<Issue> best;
    int best_matches = -1;
    int first_success = 0;
    int validated = 0;
    for (std::size_t i = 0; i < schema.one_of_count(); ++i) {
      std::vector<Issue> inner;
      const int matches = Check(value, schema.one_of(i), nullptr, place, inner);
      if (inner.empty()) {
        if (validated++ == 0) first_success = matches;
        best.clear();
        best_matches = -1;
      } else if (validated == 0 && matches > best_matches) {
        best_matches = matches;
        best = std::move(inner);
      }
    }
    if (validated == 1) return first_success;
    AddPlain(out,
             base::GoQuote(place.ToString()) + " must validate one and only one schema (oneOf). " +
                 (validated == 0 ? "Found none valid" : "Found " + std::to_string(validated) + " valid alternatives"));
    std::ranges::move(best, std::back_inserter(out));
    return std::max(best_matches, 0);
  }

  base::Arena& arena_;
  const FieldPath& base_;
  const bool any_int_or_string_;
  std::size_t& steps_;
  std::unordered_map<Node, EnumIndex, NodeHash> enums_;
};

void Report(std::vector<Issue> issues, const FieldPath& path, std::size_t steps, FieldErrors& errors) {
  std::set<std::string> reported;
  for (Issue& issue : issues) {
    if (reported.insert(std::move(issue.text)).second) errors.push_back(std::move(issue.error));
  }
  if (steps > kValidationStepsMax)
    errors.push_back(Forbidden(path, "must not take more than " + std::to_string(kValidationStepsMax) +
                                         " steps to validate against the schema"));
}

bool OnlyMetadataDiffers(const Value& value, const Value& old) {
  const auto without_metadata = [](const Value& object) { return object.size() - (object.Has("metadata") ? 1 : 0); };
  if (!value.is_map() || !old.is_map() || without_metadata(value) != without_metadata(old)) return false;
  return std::ranges::all_of(value.members(), [&](const Member& member) {
    if (member.key == "metadata") return true;
    const Value* const before = old.Find(member.key);
    return before != nullptr && *before == member.value;
  });
}

}  // namespace

void ValidateDefaultValue(base::Arena& arena, const Value& value, Node schema, const FieldPath& path,
                          std::size_t& steps, FieldErrors& errors) {
  std::vector<Issue> issues;
  ValueValidator(arena, path, ValueValidator::IntOrString::kAny, steps).Walk(value, schema, nullptr, Place(), issues);
  Report(std::move(issues), path, steps, errors);
}

void ValidateValue(base::Arena& arena, const Value& value, const Value* old, Node schema, const FieldPath& path,
                   FieldErrors& errors) {
  if (!schema) return;
  std::size_t steps = 0;
  std::vector<Issue> issues;
  const Correlated before{old != nullptr ? *old : Value(), schema, nullptr};
  ValueValidator(arena, path, ValueValidator::IntOrString::kChecked, steps)
      .Walk(value, schema, old != nullptr ? &before : nullptr, Place(), issues);
  // Ratcheting of the bound: a stored object stays deletable, whatever its validation costs.
  if (steps > kValidationStepsMax && old != nullptr && OnlyMetadataDiffers(value, *old)) return;
  Report(std::move(issues), path, steps, errors);
}

}  // namespace keelson::validation::structural
