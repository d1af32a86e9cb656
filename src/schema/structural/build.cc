// Builds blobs bottom-up. Equal sub-trees of one schema become one draft; a draft that grows beyond kPartBytes becomes
// a separate blob, which the Pool shares by content. Cost is linear in the schema's text.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "base/check.h"
#include "base/go_int.h"
#include "base/hash.h"
#include "object/json_text.h"
#include "schema/structural/layout.h"
#include "schema/structural/structural.h"

namespace keelson::schema::structural {
namespace {

// Sub-trees of at least this size (estimated from their content alone, so that equal ones are cut equally) are shared.
// Smaller ones cost less inside their parent than a header, a pool entry and a pointer would.
constexpr std::size_t kPartBytes = 512;
constexpr std::size_t kPartReferenceBytes = 8;

using DraftId = std::uint32_t;

// A node before its place in a blob is known. References are draft ids (or Layout's special values), texts are texts.
struct Draft {
  NodeType type = NodeType::kNone;
  std::uint8_t kinds = 0;
  std::uint16_t flags = 0;
  std::vector<std::pair<std::string_view, DraftId>> fields;  // sorted by name
  DraftId items = Layout::kNoNode;
  DraftId additional = Layout::kNoNode;
  std::uint32_t mask = 0;
  std::vector<std::uint64_t> bounds;  // of the wide keywords, in bit order
  std::string_view format, pattern;
  std::optional<std::string_view> default_json;
  DraftId not_schema = Layout::kNoNode;
  std::vector<std::pair<bool, std::string_view>> enums;
  std::vector<std::string_view> required, list_map_keys;
  std::vector<DraftId> all_of, any_of, one_of;
  struct RuleDraft {
    std::string_view texts[5];
    std::uint32_t optional_old_self = 0;
  };
  std::vector<RuleDraft> rules;

  bool part = false;
  std::size_t weight = 0;  // bytes, parts below it left out
};

void AppendWord(std::string& key, std::uint64_t word) {
  key.append(reinterpret_cast<const char*>(&word), sizeof(word));
}
void AppendText(std::string& key, std::string_view text) {
  AppendWord(key, text.size());
  key += text;
}

// All of a draft's content as bytes: equal exactly for equal drafts.
std::string ContentKey(const Draft& draft) {
  std::string key;
  AppendWord(key, static_cast<std::uint64_t>(draft.type) | static_cast<std::uint64_t>(draft.kinds) << 8 |
                      static_cast<std::uint64_t>(draft.flags) << 16 | static_cast<std::uint64_t>(draft.mask) << 32);
  AppendWord(key, static_cast<std::uint64_t>(draft.items) | static_cast<std::uint64_t>(draft.additional) << 32);
  AppendWord(key, draft.fields.size());
  for (const auto& [name, id] : draft.fields) {
    AppendText(key, name);
    AppendWord(key, id);
  }
  for (const std::uint64_t bound : draft.bounds) AppendWord(key, bound);
  AppendText(key, draft.format);
  AppendText(key, draft.pattern);
  AppendText(key, draft.default_json.value_or(""));
  AppendWord(key, draft.not_schema);
  AppendWord(key, draft.enums.size());
  for (const auto& [is_string, text] : draft.enums) {
    AppendWord(key, is_string ? 1 : 0);
    AppendText(key, text);
  }
  for (const auto* texts : {&draft.required, &draft.list_map_keys}) {
    AppendWord(key, texts->size());
    for (const std::string_view text : *texts) AppendText(key, text);
  }
  for (const auto* ids : {&draft.all_of, &draft.any_of, &draft.one_of}) {
    AppendWord(key, ids->size());
    for (const DraftId id : *ids) AppendWord(key, id);
  }
  for (const auto& rule : draft.rules) {
    for (const std::string_view text : rule.texts) AppendText(key, text);
    AppendWord(key, rule.optional_old_self);
  }
  return key;
}

NodeType TypeOf(std::string_view name) {
  for (const NodeType type : {NodeType::kObject, NodeType::kArray, NodeType::kString, NodeType::kInteger,
                              NodeType::kNumber, NodeType::kBoolean}) {
    if (NodeTypeName(type) == name) return type;
  }
  return NodeType::kNone;
}

// Why upstream cannot make a structural schema of it at all; "" when it can.
std::string UnsupportedField(const Value& schema) {
  const auto unsupported = [](std::string_view field) {
    return "OpenAPIV3Schema '" + std::string(field) + "' is not supported";
  };
  if (!schema["id"].as_string().empty()) return unsupported("id");
  if (!schema["$schema"].as_string().empty()) return unsupported("schema");
  if (!schema["$ref"].as_string().empty()) return unsupported("$ref");
  if (!schema["patternProperties"].empty()) return unsupported("patternProperties");
  if (!schema["dependencies"].empty()) return unsupported("dependencies");
  if (!schema["additionalItems"].is_null()) return unsupported("additionalItems");
  if (!schema["definitions"].empty()) return unsupported("definitions");
  if (schema["items"].is_list() && !schema["items"].empty())
    return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  return {};
}

class Drafter {
 public:
  // `inside_junctor`: below allOf, anyOf, oneOf or not, where defaults, rules and markers have no effect.
  Outcome<DraftId, std::string> Make(const Value& schema, bool inside_junctor, int depth) {
    if (depth > kDepthMax) return std::string("OpenAPIV3Schema is nested too deeply");
    if (std::string problem = UnsupportedField(schema); !problem.empty()) return problem;
    Draft draft;
    KS_RETURN_IF_ERROR(Structure(schema, inside_junctor, depth, draft));
    Bounds(schema, draft);
    KS_RETURN_IF_ERROR(Junctors(schema, depth, draft));
    Texts(schema, draft);
    Rules(schema, inside_junctor, draft);
    SetFlags(schema, inside_junctor, draft);
    return Intern(std::move(draft));
  }

  const std::vector<Draft>& drafts() const { return drafts_; }

 private:
  Outcome<void, std::string> Structure(const Value& schema, bool inside, int depth, Draft& draft) {
    draft.type = TypeOf(schema["type"].as_string());
    for (const auto& member : schema["properties"].members()) {
      KS_TRY(const DraftId id, Make(member.value, inside, depth + 1));
      draft.fields.emplace_back(member.key, id);
      Below(id, draft);
    }
    std::ranges::sort(draft.fields, {}, [](const auto& field) { return field.first; });
    if (const Value items = schema["items"]; items.is_map()) {
      KS_TRY(draft.items, Make(items, inside, depth + 1));
      Below(draft.items, draft);
    }
    if (const Value additional = schema["additionalProperties"]; additional.is_map()) {
      KS_TRY(draft.additional, Make(additional, inside, depth + 1));
      Below(draft.additional, draft);
    } else if (additional.is_bool()) {
      draft.additional = additional.as_bool() ? Layout::kAllowed : Layout::kForbidden;
    }
    return {};
  }

  void Below(DraftId id, Draft& draft) const {
    draft.flags |= drafts_[id].flags &
                   (Layout::kDefaultsBelow | Layout::kEmbeddedBelow | Layout::kListTypesBelow | Layout::kRulesBelow);
  }

  static void Bounds(const Value& schema, Draft& draft) {
    struct Bound {
      std::string_view name;
      Layout::Keyword keyword;
      bool is_double;
    };
    static constexpr Bound kBounds[] = {
        {"maximum", Layout::kMaximum, true},
        {"minimum", Layout::kMinimum, true},
        {"multipleOf", Layout::kMultipleOf, true},
        {"maxLength", Layout::kMaxLength, false},
        {"minLength", Layout::kMinLength, false},
        {"maxItems", Layout::kMaxItems, false},
        {"minItems", Layout::kMinItems, false},
        {"maxProperties", Layout::kMaxProperties, false},
        {"minProperties", Layout::kMinProperties, false},
    };
    for (const Bound& bound : kBounds) {
      const Value value = schema[bound.name];
      if (!value.is_number()) continue;
      draft.mask |= bound.keyword;
      const auto integer = value.is_int() ? value.as_int() : base::GoInt64(value.as_double());
      draft.bounds.push_back(bound.is_double ? std::bit_cast<std::uint64_t>(value.as_double())
                                             : static_cast<std::uint64_t>(integer));
    }
  }

  Outcome<void, std::string> Junctors(const Value& schema, int depth, Draft& draft) {
    const auto list = [&](std::string_view name, Layout::Keyword keyword,
                          std::vector<DraftId>& ids) -> Outcome<void, std::string> {
      for (const Value& item : schema[name].items()) {
        KS_TRY(const DraftId id, Make(item, true, depth + 1));
        ids.push_back(id);
      }
      if (!ids.empty()) draft.mask |= keyword;
      return {};
    };
    KS_RETURN_IF_ERROR(list("allOf", Layout::kAllOf, draft.all_of));
    KS_RETURN_IF_ERROR(list("anyOf", Layout::kAnyOf, draft.any_of));
    KS_RETURN_IF_ERROR(list("oneOf", Layout::kOneOf, draft.one_of));
    if (const Value not_schema = schema["not"]; not_schema.is_map()) {
      KS_TRY(draft.not_schema, Make(not_schema, true, depth + 1));
      draft.mask |= Layout::kNot;
    }
    return {};
  }

  // JSON values inside a schema come as trees (parsed stored bytes) or as raw text (decoded requests).
  std::string_view JSONOf(const Value& value) {
    if (value.is_raw()) return value.as_raw();
    return arena_.Copy(object::ToJSON(value));
  }

  void Texts(const Value& schema, Draft& draft) {
    const auto text = [&](std::string_view name, std::uint32_t keywords, std::string_view& out) {
      out = schema[name].as_string();
      if (!out.empty()) draft.mask |= keywords;
    };
    text("format", Layout::kFormat, draft.format);
    text("pattern", Layout::kPattern | Layout::kPatternSlot, draft.pattern);
    if (const Value value = schema["default"]; !value.is_null() && value.as_raw() != "null") {
      draft.mask |= Layout::kDefault;
      draft.default_json = JSONOf(value);
    }
    for (Value item : schema["enum"].items()) {
      if (item.is_raw()) item = object::ParseJSON(arena_, item.as_raw()).value_or(item);
      draft.enums.emplace_back(item.is_string(), item.is_string() ? item.as_string() : JSONOf(item));
    }
    if (!draft.enums.empty()) draft.mask |= Layout::kEnum;
    const auto texts = [&](std::string_view name, Layout::Keyword keyword, std::vector<std::string_view>& out) {
      for (const Value& item : schema[name].items()) out.push_back(item.as_string());
      if (!out.empty()) draft.mask |= keyword;
    };
    texts("required", Layout::kRequired, draft.required);
    texts("x-kubernetes-list-map-keys", Layout::kListMapKeys, draft.list_map_keys);
  }

  static void Rules(const Value& schema, bool inside_junctor, Draft& draft) {
    if (inside_junctor) return;
    for (const Value& item : schema["x-kubernetes-validations"].items()) {
      Draft::RuleDraft rule{.texts = {item["rule"].as_string(), item["message"].as_string(),
                                      item["messageExpression"].as_string(), item["reason"].as_string(),
                                      item["fieldPath"].as_string()}};
      if (const Value old = item["optionalOldSelf"]; old.is_bool()) rule.optional_old_self = old.as_bool() ? 2 : 1;
      draft.rules.push_back(rule);
    }
    if (!draft.rules.empty()) draft.mask |= Layout::kRules;
  }

  static void SetFlags(const Value& schema, bool inside_junctor, Draft& draft) {
    const auto flag = [&](std::string_view name, std::uint16_t flags) {
      if (schema[name].as_bool()) draft.flags |= flags;
    };
    flag("nullable", Layout::kNullable);
    flag("exclusiveMaximum", Layout::kExclusiveMaximum);
    flag("exclusiveMinimum", Layout::kExclusiveMinimum);
    flag("uniqueItems", Layout::kUniqueItems);
    flag("x-kubernetes-preserve-unknown-fields", Layout::kPreserveUnknown);
    flag("x-kubernetes-embedded-resource", Layout::kEmbedded | Layout::kEmbeddedBelow);
    flag("x-kubernetes-int-or-string", Layout::kIntOrString);
    const std::string_view list_type = schema["x-kubernetes-list-type"].as_string();
    const ListType list = list_type == "atomic" ? ListType::kAtomic
                          : list_type == "set"  ? ListType::kSet
                          : list_type == "map"  ? ListType::kMap
                                                : ListType::kNone;
    const std::string_view map_type = schema["x-kubernetes-map-type"].as_string();
    const MapType map = map_type == "atomic"     ? MapType::kAtomic
                        : map_type == "granular" ? MapType::kGranular
                        : map_type.empty()       ? MapType::kNone
                                                 : MapType::kUnknown;
    draft.kinds = static_cast<std::uint8_t>(static_cast<int>(list) | static_cast<int>(map) << 2);
    if (inside_junctor) return;
    if (list == ListType::kSet || list == ListType::kMap) draft.flags |= Layout::kListTypesBelow;
    if (draft.default_json) draft.flags |= Layout::kDefaultsBelow;
    if (!draft.rules.empty()) draft.flags |= Layout::kRulesBelow;
  }

  DraftId Intern(Draft draft) {
    const auto [found, fresh] = ids_.emplace(ContentKey(draft), static_cast<DraftId>(drafts_.size()));
    if (!fresh) return found->second;
    Weigh(draft);
    drafts_.push_back(std::move(draft));
    return found->second;
  }

  void Weigh(Draft& draft) const {
    std::size_t bytes = sizeof(std::uint32_t) * 6 + 10 * draft.fields.size() + 8 * draft.bounds.size();
    for (const auto& [name, id] : draft.fields) bytes += name.size();
    bytes += draft.format.size() + draft.pattern.size() + draft.default_json.value_or("").size();
    for (const auto& [is_string, text] : draft.enums) bytes += 8 + text.size();
    for (const auto* texts : {&draft.required, &draft.list_map_keys}) bytes += 4 * texts->size();
    for (const auto& rule : draft.rules) {
      for (const std::string_view text : rule.texts) bytes += 4 + text.size();
    }
    const auto child = [&](DraftId id) {
      if (id < drafts_.size()) bytes += drafts_[id].part ? kPartReferenceBytes : drafts_[id].weight;
    };
    for (const auto& [name, id] : draft.fields) child(id);
    child(draft.items);
    child(draft.additional);
    child(draft.not_schema);
    for (const auto* ids : {&draft.all_of, &draft.any_of, &draft.one_of}) std::ranges::for_each(*ids, child);
    draft.weight = bytes;
    draft.part = bytes >= kPartBytes && draft.type == NodeType::kObject;
  }

  base::Arena arena_;
  std::vector<Draft> drafts_;
  base::StringMap<DraftId> ids_;
};

}  // namespace

struct Pool::Impl {
  mutable std::mutex mutex;
  std::unordered_multimap<std::size_t, const Schema*> schemas;  // by hash of the content; not counted as references
  std::size_t bytes = 0;
};

// Writes the drafts of one schema as blobs.
struct Writer {
  Pool& pool;
  const std::vector<Draft>& drafts;
  std::map<DraftId, SchemaRef> parts = {};  // made so far; keeps them while their users are written

  // One blob in the making.
  struct Sheet {
    std::map<DraftId, std::uint32_t> places;  // node index, or kPart | part index
    std::vector<DraftId> order;
    std::vector<Schema::NodeRecord> nodes;
    std::vector<Schema::FieldRecord> fields;
    std::vector<std::uint32_t> words = {0};  // index 0 means "no side record"
    std::string texts;
    base::StringViewMap<std::uint32_t> text_offsets;
    std::vector<const Schema*> parts;
    std::uint32_t patterns = 0;
  };

  SchemaRef Write(DraftId id) {
    Sheet sheet;
    Place(sheet, id, true);
    for (std::size_t i = 0; i < sheet.order.size(); ++i) Fill(sheet, drafts[sheet.order[i]], i);
    return Finish(sheet);
  }

  // The reference of a draft in this blob; nodes are numbered as they are first named, so that equal content gives
  // equal bytes.
  std::uint32_t Place(Sheet& sheet, DraftId id, bool is_root = false) {
    if (id >= Layout::kForbidden) return id;
    if (const auto found = sheet.places.find(id); found != sheet.places.end()) return found->second;
    std::uint32_t reference = 0;
    if (drafts[id].part && !is_root) {
      auto& part = parts[id];
      if (!part) part = Write(id);
      reference = Layout::kPart | static_cast<std::uint32_t>(sheet.parts.size());
      sheet.parts.push_back(part.get());
    } else {
      reference = static_cast<std::uint32_t>(sheet.order.size());
      sheet.order.push_back(id);
    }
    sheet.places.emplace(id, reference);
    return reference;
  }

  std::uint32_t Text(Sheet& sheet, std::string_view text) {
    const auto [found, fresh] = sheet.text_offsets.emplace(text, static_cast<std::uint32_t>(sheet.texts.size()));
    if (!fresh) return found->second;
    std::size_t size = text.size();
    for (; size >= 0x80; size >>= 7) sheet.texts += static_cast<char>(0x80 | (size & 0x7f));
    sheet.texts += static_cast<char>(size);
    sheet.texts += text;
    return found->second;
  }

  void Fill(Sheet& sheet, const Draft& draft, std::size_t index) {
    Schema::NodeRecord node{.type = draft.type, .kinds = draft.kinds, .flags = draft.flags};
    node.fields_begin = static_cast<std::uint32_t>(sheet.fields.size());
    node.fields_count = static_cast<std::uint32_t>(draft.fields.size());
    for (const auto& [name, id] : draft.fields) {
      const std::uint32_t child = Place(sheet, id);
      sheet.fields.push_back({.name = Text(sheet, name), .node = child});
    }
    node.items = Place(sheet, draft.items);
    node.additional = Place(sheet, draft.additional);
    node.side = draft.mask == 0 ? 0 : Side(sheet, draft);
    KS_CHECK(index == sheet.nodes.size());
    sheet.nodes.push_back(node);
  }

  std::uint32_t List(Sheet& sheet, const std::vector<std::uint32_t>& entries) {
    const auto offset = static_cast<std::uint32_t>(sheet.words.size());
    sheet.words.push_back(static_cast<std::uint32_t>(entries.size()));
    sheet.words.insert(sheet.words.end(), entries.begin(), entries.end());
    return offset;
  }

  std::uint32_t Side(Sheet& sheet, const Draft& draft) {
    std::vector<std::uint32_t> record = {draft.mask};
    for (const std::uint64_t bound : draft.bounds) {
      record.push_back(static_cast<std::uint32_t>(bound));
      record.push_back(static_cast<std::uint32_t>(bound >> 32));
    }
    const auto has = [&](Layout::Keyword keyword) { return (draft.mask & keyword) != 0; };
    const auto texts = [&](const std::vector<std::string_view>& list) {
      std::vector<std::uint32_t> entries;
      for (const std::string_view text : list) entries.push_back(Text(sheet, text));
      return List(sheet, entries);
    };
    const auto nodes = [&](const std::vector<DraftId>& list) {
      std::vector<std::uint32_t> entries;
      for (const DraftId id : list) entries.push_back(Place(sheet, id));
      return List(sheet, entries);
    };
    if (has(Layout::kFormat)) record.push_back(Text(sheet, draft.format));
    if (has(Layout::kPattern)) record.push_back(Text(sheet, draft.pattern));
    if (has(Layout::kPatternSlot)) record.push_back(sheet.patterns++);
    if (has(Layout::kDefault)) record.push_back(Text(sheet, *draft.default_json));
    if (has(Layout::kNot)) record.push_back(Place(sheet, draft.not_schema));
    if (has(Layout::kEnum)) {
      std::vector<std::uint32_t> entries;
      for (const auto& [is_string, text] : draft.enums) {
        entries.push_back(is_string ? 1 : 0);
        entries.push_back(Text(sheet, text));
      }
      record.push_back(List(sheet, entries));
    }
    if (has(Layout::kRequired)) record.push_back(texts(draft.required));
    if (has(Layout::kListMapKeys)) record.push_back(texts(draft.list_map_keys));
    if (has(Layout::kAllOf)) record.push_back(nodes(draft.all_of));
    if (has(Layout::kAnyOf)) record.push_back(nodes(draft.any_of));
    if (has(Layout::kOneOf)) record.push_back(nodes(draft.one_of));
    if (has(Layout::kRules)) {
      std::vector<std::uint32_t> entries;
      for (const auto& rule : draft.rules) {
        for (const std::string_view text : rule.texts) entries.push_back(Text(sheet, text));
        entries.push_back(rule.optional_old_self);
      }
      record.push_back(List(sheet, entries));
    }
    const auto offset = static_cast<std::uint32_t>(sheet.words.size());
    sheet.words.insert(sheet.words.end(), record.begin(), record.end());
    return offset;
  }

  SchemaRef Finish(const Sheet& sheet) {
    const Schema::Counts counts{.nodes = static_cast<std::uint32_t>(sheet.nodes.size()),
                                .fields = static_cast<std::uint32_t>(sheet.fields.size()),
                                .words = static_cast<std::uint32_t>(sheet.words.size()),
                                .patterns = sheet.patterns,
                                .parts = static_cast<std::uint32_t>(sheet.parts.size()),
                                .texts = static_cast<std::uint32_t>(sheet.texts.size())};
    const std::size_t tail = (counts.parts + counts.patterns) * sizeof(void*) +
                             counts.nodes * sizeof(Schema::NodeRecord) + counts.fields * sizeof(Schema::FieldRecord) +
                             counts.words * sizeof(std::uint32_t) + counts.texts;
    const std::size_t bytes = sizeof(Schema) + tail;
    auto* schema = new (::operator new(bytes)) Schema(&pool, bytes, counts);
    std::byte* at = schema->tail();
    const auto put = [&](const void* data, std::size_t size) {
      if (size != 0) std::memcpy(at, data, size);
      at += size;
    };
    put(sheet.parts.data(), counts.parts * sizeof(const Schema*));
    for (std::uint32_t i = 0; i < counts.patterns; ++i, at += sizeof(void*))
      new (at) std::atomic<const base::GoRegex*>(nullptr);
    put(sheet.nodes.data(), counts.nodes * sizeof(Schema::NodeRecord));
    put(sheet.fields.data(), counts.fields * sizeof(Schema::FieldRecord));
    put(sheet.words.data(), counts.words * sizeof(std::uint32_t));
    put(sheet.texts.data(), counts.texts);
    for (const Schema* part : sheet.parts) part->references_.fetch_add(1, std::memory_order_relaxed);
    return Share(schema);
  }

  // Pattern slots are filled later and by other threads: they are not part of the content.
  static std::string_view Content(const Schema& schema) {
    const auto* begin = reinterpret_cast<const char*>(schema.nodes());
    const auto* end = reinterpret_cast<const char*>(&schema) + schema.bytes_;
    return {begin, static_cast<std::size_t>(end - begin)};
  }
  static bool SameContent(const Schema& a, const Schema& b) {
    return std::memcmp(&a.counts_, &b.counts_, sizeof(a.counts_)) == 0 &&
           std::equal(a.parts(), a.parts() + a.counts_.parts, b.parts()) && Content(a) == Content(b);
  }

  // The blob that is in the pool already, or this one.
  SchemaRef Share(Schema* schema) {
    schema->hash_ = base::SeededHash(Content(*schema));
    {
      const std::lock_guard lock(pool.impl_->mutex);
      const auto [begin, end] = pool.impl_->schemas.equal_range(schema->hash_);
      for (auto it = begin; it != end; ++it) {
        if (!SameContent(*it->second, *schema) || !it->second->TryReference()) continue;
        SchemaRef shared(it->second);
        Discard(schema);
        return shared;
      }
      pool.impl_->schemas.emplace(schema->hash_, schema);
      pool.impl_->bytes += schema->bytes_;
    }
    return SchemaRef(schema);
  }

  // REQUIRES: the blob is not shared yet, and its parts are referenced by `parts` too (so no part dies under the lock).
  static void Discard(Schema* schema) {
    for (std::uint32_t i = 0; i < schema->counts_.parts; ++i)
      schema->parts()[i]->references_.fetch_sub(1, std::memory_order_relaxed);
    ::operator delete(schema);
  }
};

Pool::Pool() : impl_(std::make_unique<Impl>()) {}
Pool::~Pool() { KS_CHECK(impl_->schemas.empty()); }

void Pool::Remove(const Schema* schema) {
  const std::lock_guard lock(impl_->mutex);
  const auto [begin, end] = impl_->schemas.equal_range(schema->hash_);
  for (auto it = begin; it != end; ++it) {
    if (it->second != schema) continue;
    impl_->bytes -= schema->bytes_;
    impl_->schemas.erase(it);
    return;
  }
}

Outcome<SchemaRef, std::string> Pool::Build(const Value& schema) {
  if (!schema.is_map()) return std::string("OpenAPIV3Schema must be an object");
  Drafter drafter;
  KS_TRY(const DraftId root, drafter.Make(schema, false, 0));
  Writer writer{.pool = *this, .drafts = drafter.drafts()};
  return writer.Write(root);
}

Outcome<SchemaRef, std::string> Pool::Build(std::string_view open_api_v3_schema) {
  base::Arena arena;
  const auto parsed = object::ParseJSON(arena, open_api_v3_schema);
  if (!parsed) return std::string("OpenAPIV3Schema is not valid JSON");
  return Build(*parsed);
}

std::size_t Pool::schema_count() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->schemas.size();
}

std::size_t Pool::bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->bytes;
}

}  // namespace keelson::schema::structural
