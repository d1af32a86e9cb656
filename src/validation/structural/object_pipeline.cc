#include "validation/structural/object_pipeline.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "codec/json.h"
#include "object/go_text.h"
#include "object/json_text.h"
#include "schema/schema.h"
#include "schema/types.h"

namespace keelson::validation::structural {
namespace {

using base::Arena;
using object::Member;

bool IsMetaField(std::string_view key) { return key == "apiVersion" || key == "kind" || key == "metadata"; }

// The members for which `keep` is true stay. One pass, because removing them one by one is quadratic.
template <class Keep>
void Filter(Arena& arena, Value map, Keep keep) {
  std::vector<Member> kept;
  const std::size_t before = map.size();
  for (const Member& member : map.members()) {
    if (keep(member)) kept.push_back(member);
  }
  if (kept.size() == before) return;
  map.Clear();
  for (const Member& member : kept) map.AppendMember(arena, member.key, member.value);
}

// The path to the place of a walk, for the list of unknown fields.
class PathText {
 public:
  explicit PathText(std::vector<std::string>* unknown) : unknown_(unknown) {}

  bool at_root() const { return text_.empty(); }
  std::size_t size() const { return text_.size(); }
  void Cut(std::size_t size) { text_.resize(size); }
  void AppendKey(std::string_view key) {
    if (unknown_ == nullptr) return;
    if (!text_.empty()) text_ += '.';
    text_ += key;
  }
  void AppendIndex(std::size_t index) {
    if (unknown_ == nullptr) return;
    text_ += '[' + std::to_string(index) + ']';
  }
  void Record(std::string_view key) {
    if (unknown_ == nullptr || bytes_ > kUnknownFieldsBytesMax) return;
    const std::size_t size = text_.size();
    AppendKey(key);
    bytes_ += text_.size();
    unknown_->push_back(text_);
    Cut(size);
  }

 private:
  std::vector<std::string>* unknown_;
  std::string text_;
  std::size_t bytes_ = 0;
};

class Pruner {
 public:
  Pruner(Arena& arena, std::vector<std::string>* unknown) : arena_(arena), path_(unknown) {}

  void Walk(Value value, Node schema, bool embedded) {
    if (schema.preserve_unknown_fields()) return Skip(value, schema, embedded);
    const std::size_t here = path_.size();
    if (value.is_map()) {
      Filter(arena_, value, [&](const Member& member) {
        if (embedded && IsMetaField(member.key)) return true;
        const Node property = schema.Property(member.key);
        if (!property && !schema.has_additional_properties()) {
          if (!IsMetaField(member.key) || !path_.at_root() || !schema) path_.Record(member.key);
          return false;
        }
        path_.AppendKey(member.key);
        const Node child = property ? property : schema.additional_properties();
        Walk(member.value, child, child.embedded_resource());
        path_.Cut(here);
        return true;
      });
    } else if (value.is_list()) {
      const Node items = schema.items();
      for (std::size_t i = 0; i < value.size(); ++i) {
        path_.AppendIndex(i);
        Walk(value[i], items, items.embedded_resource());
        path_.Cut(here);
      }
    }
  }

 private:
  // Unknown fields stay, but what is specified is pruned inside.
  void Skip(Value value, Node schema, bool embedded) {
    if (!schema) return;
    const std::size_t here = path_.size();
    if (value.is_map()) {
      for (const Member& member : value.members()) {
        if (embedded && IsMetaField(member.key)) continue;
        const Node property = schema.Property(member.key);
        if (!property && !schema.has_additional_properties()) continue;
        path_.AppendKey(member.key);
        const Node child = property ? property : schema.additional_properties();
        Walk(member.value, child, child.embedded_resource());
        path_.Cut(here);
      }
    } else if (value.is_list()) {
      const Node items = schema.items();
      for (std::size_t i = 0; i < value.size(); ++i) {
        path_.AppendIndex(i);
        Skip(value[i], items, items.embedded_resource());
        path_.Cut(here);
      }
    }
  }

  Arena& arena_;
  PathText path_;
};

bool IsDroppableNull(const Value& value, Node schema) {
  return value.is_null() && schema && !schema.nullable() && !schema.default_json();
}

bool IsNonNullableNull(const Value& value, Node schema) { return value.is_null() && schema && !schema.nullable(); }

// unknown field "a.b" -> a.b
std::string_view QuotedPart(std::string_view error) {
  constexpr std::string_view kPrefix = "unknown field \"";
  if (!error.starts_with(kPrefix) || !error.ends_with('"')) return {};
  return error.substr(kPrefix.size(), error.size() - kPrefix.size() - 1);
}

class Coercer {
 public:
  Coercer(Arena& arena, bool drop_invalid, std::vector<std::string>* unknown)
      : arena_(arena), drop_invalid_(drop_invalid), unknown_(unknown) {}

  std::optional<FieldError> Walk(Value value, Node schema, bool embedded, const FieldPath& path) {
    if (!embedded && !schema.has_embedded_below()) return std::nullopt;
    if (value.is_map()) {
      if (embedded) {
        if (auto error = Resource(value, path)) return error;
      }
      for (const Member& member : value.members()) {
        const Node property = schema.Property(member.key);
        const Node child = property ? property : schema.additional_properties();
        if (!child) continue;
        const FieldPath at = property ? path.Child(member.key) : path.Key(member.key);
        if (auto error = Walk(member.value, child, child.embedded_resource(), at)) return error;
      }
    } else if (value.is_list() && schema.items()) {
      const Node items = schema.items();
      for (std::size_t i = 0; i < value.size(); ++i) {
        const FieldPath at = path.Index(static_cast<std::int64_t>(i));
        if (auto error = Walk(value[i], items, items.embedded_resource(), at)) return error;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<FieldError> Resource(Value map, const FieldPath& path) {
    for (const std::string_view key : {"apiVersion", "kind"}) {
      const Value* found = map.Find(key);
      if (found == nullptr || found->is_string()) continue;
      if (!drop_invalid_) return Invalid(path.Child(key), *found, "must be a string");
      map.Erase(key);
    }
    const Value* metadata = map.Find("metadata");
    if (metadata == nullptr) return std::nullopt;
    std::vector<std::string> unknown;
    auto coerced = CoerceObjectMeta(arena_, *metadata, drop_invalid_, unknown_ != nullptr ? &unknown : nullptr);
    const FieldPath at = path.Child("metadata");
    for (const std::string& name : unknown) unknown_->push_back(at.ToString() + "." + name);
    if (coerced.ok()) {
      map.Set(arena_, "metadata", *coerced);
    } else if (!drop_invalid_) {
      Value shown = metadata->Clone(arena_);
      if (shown.is_map()) shown.SortMembers();  // as Go writes maps
      return Invalid(at, shown, coerced.error());
    }
    return std::nullopt;
  }

  Arena& arena_;
  bool drop_invalid_;
  std::vector<std::string>* unknown_;
};

// The checks below say whether a value would come back from Go's ObjectMeta as it is. They may say no for one that
// would: it is then decoded and encoded again.
bool IsText(const Value& value) { return value.is_string() && !value.as_string().empty(); }  // "" is left out

// As metav1.Time writes it. Days after the 28th are left to the decoder.
bool IsTime(const Value& value) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  const std::string_view text = value.as_string();
  if (!value.is_string() || text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return false;
  }
  const auto two = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  return two(5) >= 1 && two(5) <= 12 && two(8) >= 1 && two(8) <= 28 && two(11) < 24 && two(14) < 60 && two(17) < 60 &&
         !text.starts_with("0001");
}

bool IsTextMap(const Value& value) {
  return value.is_map() && !value.empty() &&
         std::ranges::all_of(value.members(), [](const Member& member) { return member.value.is_string(); });
}

bool IsListOf(const Value& value, bool (*is_item)(const Value&)) {
  return value.is_list() && !value.empty() && std::ranges::all_of(value.items(), is_item);
}

bool IsOwnerReference(const Value& value) {
  if (!value.is_map()) return false;
  int texts = 0;
  for (const auto& [key, member] : value.members()) {
    if (key == "apiVersion" || key == "kind" || key == "name" || key == "uid") {
      if (!member.is_string()) return false;
      ++texts;
    } else if (!(key == "controller" || key == "blockOwnerDeletion") || !member.is_bool()) {
      return false;
    }
  }
  return texts == 4;  // written even if they are empty
}

bool IsManagedFieldsEntry(const Value& value) {
  return value.is_map() && std::ranges::all_of(value.members(), [](const Member& member) {
           // Raw: as the field manager writes it.
           if (member.key == "fieldsV1") return member.value.is_map() || member.value.as_raw().starts_with('{');
           if (member.key == "time") return IsTime(member.value);
           constexpr std::string_view kTexts[] = {"manager", "operation", "apiVersion", "fieldsType", "subresource"};
           return std::ranges::find(kTexts, member.key) != std::end(kTexts) && IsText(member.value);
         });
}

// One JSON object with the members that decode alone.
std::string DecodableMembers(const Value& metadata) {
  std::string kept = "{";
  for (const Member& member : metadata.members()) {
    std::string one;
    object::AppendJSONString(one, member.key);
    one += ':';
    object::AppendJSON(one, member.value);
    Arena scratch;
    if (!codec::DecodeJSON(scratch, "{" + one + "}", schema::types::meta_v1::kObjectMeta).ok()) continue;
    if (kept.size() > 1) kept += ',';
    kept += one;
  }
  return kept + "}";
}

std::string AccessorError(std::string_view field, const Value& value) {
  return "." + std::string(field) + " accessor error: " + object::GoSprint(value) + " is of the type " +
         std::string(object::GoTypeName(value)) + ", expected string";
}

}  // namespace

bool IsTypedObjectMeta(const Value& metadata) {
  return metadata.is_map() && std::ranges::all_of(metadata.members(), [](const Member& member) {
           const std::string_view key = member.key;
           const Value& value = member.value;
           if (key == "labels" || key == "annotations") return IsTextMap(value);
           if (key == "creationTimestamp" || key == "deletionTimestamp") return IsTime(value);
           if (key == "generation") return value.is_int() && value.as_int() != 0;
           if (key == "deletionGracePeriodSeconds") return value.is_int();
           if (key == "ownerReferences") return IsListOf(value, IsOwnerReference);
           if (key == "managedFields") return IsListOf(value, IsManagedFieldsEntry);
           if (key == "finalizers") return IsListOf(value, [](const Value& item) { return item.is_string(); });
           constexpr std::string_view kTexts[] = {"name", "generateName", "namespace", "uid", "resourceVersion"};
           return std::ranges::find(kTexts, key) != std::end(kTexts) && IsText(value);
         });
}

void Prune(Arena& arena, Value object, Node schema, bool resource_root, std::vector<std::string>* unknown) {
  std::vector<std::string> found;
  Pruner(arena, unknown != nullptr ? &found : nullptr)
      .Walk(object, schema, resource_root || schema.embedded_resource());
  if (unknown == nullptr) return;
  std::ranges::sort(found);
  std::ranges::move(found, std::back_inserter(*unknown));
}

void DropNulls(Arena& arena, Value object, Node schema) {
  if (!schema) return;  // Nothing below has a schema either.
  if (object.is_map()) {
    Filter(arena, object, [&](const Member& member) {
      const Node child = schema.Member(member.key);
      if (IsDroppableNull(member.value, child)) return false;
      DropNulls(arena, member.value, child);
      return true;
    });
  } else if (object.is_list()) {
    for (const Value& item : object.items()) DropNulls(arena, item, schema.items());
  }
}

namespace {

// The properties of a node that have a default of their own. Those of wide nodes are listed once: items of a list share
// one schema, whose other properties they must not pay for.
class DefaultProperties {
 public:
  // `see` gets the name and the node, and returns false to end.
  template <class See>
  void ForEach(Node schema, See see) {
    if (schema.property_count() <= kWalkedMax) {
      for (std::size_t i = 0; i < schema.property_count(); ++i) {
        const Node property = schema.property(i);
        if (property.default_json() && !see(schema.property_name(i), property)) return;
      }
      return;
    }
    const auto [found, added] = listed_.try_emplace({schema.schema(), schema.index()});
    for (std::size_t i = 0; added && i < schema.property_count(); ++i) {
      const Node property = schema.property(i);
      if (property.default_json()) found->second.emplace_back(schema.property_name(i), property);
    }
    for (const auto& [name, property] : found->second) {
      if (!see(name, property)) return;
    }
  }

 private:
  static constexpr std::size_t kWalkedMax = 32;
  std::map<std::pair<const schema::structural::Schema*, std::uint32_t>, std::vector<std::pair<std::string_view, Node>>>
      listed_;
};

class Defaulter {
 public:
  explicit Defaulter(Arena& arena) : arena_(arena) {}

  bool Walk(Value object, Node schema) {
    if (!schema.has_defaults_below() || exceeded()) return false;
    bool changed = false;
    if (object.is_map()) {
      properties_.ForEach(schema, [&](std::string_view name, Node property) {
        const Value* present = object.Find(name);
        if (present != nullptr && !IsNonNullableNull(*present, property)) return true;
        object.Set(arena_, arena_.Copy(name), Made(property));
        changed = true;
        return !exceeded();
      });
      for (Member& member : object.members()) {
        const Node property = schema.Property(member.key);
        const Node child = property ? property : schema.additional_properties();
        changed = Fill(member.value, child, property ? Null::kKept : Null::kReplaced) || changed;
      }
    } else if (object.is_list()) {
      const Node items = schema.items();
      for (Value& item : object.items()) changed = Fill(item, items, Null::kReplaced) || changed;
    }
    return changed;
  }

  bool exceeded() const { return bytes_ > kDefaultsBytesMax; }

 private:
  enum class Null : std::uint8_t { kKept, kReplaced };
  static constexpr std::size_t kMemberBytes = 16;  // about what a name takes

  bool Fill(Value& value, Node schema, Null null) {
    const bool replaced = null == Null::kReplaced && IsNonNullableNull(value, schema) && schema.default_json();
    if (replaced) value = Made(schema);
    return Walk(value, schema) || replaced;
  }

  Value Made(Node schema) {
    bytes_ += kMemberBytes + schema.default_json()->size();
    return exceeded() ? Value() : schema.DefaultValue(arena_);
  }

  Arena& arena_;
  std::size_t bytes_ = 0;
  DefaultProperties properties_;
};

}  // namespace

bool Default(Arena& arena, Value object, Node schema) { return Defaulter(arena).Walk(object, schema); }

std::optional<FieldError> CoerceEmbedded(Arena& arena, Value object, Node schema, bool resource_root, bool drop_invalid,
                                         const FieldPath& path, std::vector<std::string>* unknown) {
  std::vector<std::string> found;
  Coercer coercer(arena, drop_invalid, unknown != nullptr ? &found : nullptr);
  auto error = coercer.Walk(object, schema, resource_root || schema.embedded_resource(), path);
  if (unknown == nullptr) return error;
  std::ranges::sort(found);
  std::ranges::move(found, std::back_inserter(*unknown));
  return error;
}

Outcome<Value, std::string> CoerceObjectMeta(Arena& arena, const Value& metadata, bool drop_invalid,
                                             std::vector<std::string>* unknown) {
  if (IsTypedObjectMeta(metadata)) return metadata;
  const codec::DecodeOptions options{.strict = unknown != nullptr};
  std::string text;
  codec::EncodeJSON(metadata, text);  // members sorted, and so what is unknown among them
  auto decoded = codec::DecodeJSON(arena, text, schema::types::meta_v1::kObjectMeta, options);
  if (!decoded.ok()) {
    if (!drop_invalid) return decoded.error().message;
    if (!metadata.is_map())
      return "invalid metadata: expected object, got " + std::string(object::GoTypeName(metadata));
    text = DecodableMembers(metadata);
    decoded = codec::DecodeJSON(arena, text, schema::types::meta_v1::kObjectMeta, options);
    if (!decoded.ok()) return decoded.error().message;
  }
  if (unknown != nullptr) {
    for (const std::string& error : decoded->strict_errors) {
      if (const std::string_view path = QuotedPart(error); !path.empty()) unknown->emplace_back(path);
    }
  }
  std::string typed;
  codec::EncodeJSON(decoded->value, schema::types::meta_v1::kObjectMeta, typed);
  return object::ParseJSON(arena, typed).value_or(Value::Map(arena));
}

Outcome<Coerced, std::string> CoerceObject(Arena& arena, Value object, Node schema, const CoerceOptions& options) {
  Coerced result;
  const bool from_storage = options.source == Source::kStorage;
  const bool drop_invalid = from_storage || options.drop_invalid_metadata;
  std::vector<std::string>* unknown = from_storage ? nullptr : &result.unknown_fields;
  for (const std::string_view field : {"kind", "apiVersion"}) {
    const Value* found = object.Find(field);
    if (found != nullptr && !found->is_string()) return AccessorError(field, *found);
  }
  Value metadata;
  const bool has_metadata = object.Has("metadata");
  if (has_metadata) {
    std::vector<std::string> names;
    auto coerced = CoerceObjectMeta(arena, object["metadata"], drop_invalid, unknown != nullptr ? &names : nullptr);
    if (!coerced.ok()) return coerced.error();
    metadata = *coerced;
    for (const std::string& name : names) unknown->push_back("metadata." + name);
  }
  if (options.other_kind) {
    if (has_metadata) object.Set(arena, "metadata", metadata);
    return result;
  }
  if (!options.preserve_unknown_fields) {
    Prune(arena, object, schema, true, unknown);
    if (!options.keep_nulls) DropNulls(arena, object, schema);
  }
  if (const auto error = CoerceEmbedded(arena, object, schema, false, drop_invalid, FieldPath(), unknown)) {
    return error->ToString();
  }
  if (has_metadata) {
    if (from_storage && metadata["generation"].as_int() == 0) metadata.Set(arena, "generation", Value(1));
    object.Set(arena, "metadata", metadata);
  }
  if (options.source != Source::kConversion) {
    Defaulter defaulter(arena);
    defaulter.Walk(object, schema);
    if (defaulter.exceeded())
      return "defaults of the schema add more than " + std::to_string(kDefaultsBytesMax) + " bytes";
  }
  return result;
}

namespace {

bool Differs(const Value& value, Node schema, bool embedded, DefaultProperties& properties) {
  if (value.is_raw()) return true;  // unread
  if (value.is_map()) {
    const bool open = schema.preserve_unknown_fields();
    for (const Member& member : value.members()) {
      if (embedded && IsMetaField(member.key)) continue;
      const Node property = schema.Property(member.key);
      const Node child = property ? property : schema.additional_properties();
      if (!property && !schema.has_additional_properties()) {
        if (open) continue;
        return true;
      }
      if (IsDroppableNull(member.value, child)) return true;
      if (IsNonNullableNull(member.value, child) && child.default_json()) return true;
      if (Differs(member.value, child, child.embedded_resource(), properties)) return true;
    }
    if (!schema.has_defaults_below()) return false;
    bool lacks = false;
    properties.ForEach(schema, [&](std::string_view name, Node) { return !(lacks = !value.Has(name)); });
    if (lacks) return true;
  } else if (value.is_list()) {
    const Node items = schema.items();
    if (!items && schema.preserve_unknown_fields()) return false;
    for (const Value& item : value.items()) {
      if (IsNonNullableNull(item, items) && items.default_json()) return true;
      if (Differs(item, items, items.embedded_resource(), properties)) return true;
    }
  }
  return false;
}

}  // namespace

bool WouldChange(const Value& object, Node schema) {
  DefaultProperties properties;
  return Differs(object, schema, true, properties);
}

}  // namespace keelson::validation::structural
