#include "schema/structural/structural.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.h"
#include "object/json_reader.h"
#include "object/json_text.h"
#include "schema/structural/layout.h"

namespace keelson::schema::structural {

std::string_view NodeTypeName(NodeType type) {
  switch (type) {
    case NodeType::kNone:
      return "";
    case NodeType::kObject:
      return "object";
    case NodeType::kArray:
      return "array";
    case NodeType::kString:
      return "string";
    case NodeType::kInteger:
      return "integer";
    case NodeType::kNumber:
      return "number";
    case NodeType::kBoolean:
      return "boolean";
  }
  return "";
}

// ---- SchemaRef

SchemaRef::SchemaRef(const SchemaRef& other) : schema_(other.schema_) {
  if (schema_ != nullptr) schema_->references_.fetch_add(1, std::memory_order_relaxed);
}

SchemaRef::SchemaRef(SchemaRef&& other) noexcept : schema_(std::exchange(other.schema_, nullptr)) {}

SchemaRef& SchemaRef::operator=(SchemaRef other) noexcept {
  std::swap(schema_, other.schema_);
  return *this;
}

SchemaRef::~SchemaRef() {
  if (schema_ == nullptr || schema_->references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  schema_->pool_->Remove(schema_);
  Schema::Destroy(schema_);
}

Node SchemaRef::root() const { return schema_ != nullptr ? schema_->root() : Node(); }

// ---- Schema

Schema::~Schema() {
  for (std::uint32_t i = 0; i < counts_.patterns; ++i) delete patterns()[i].load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < counts_.parts; ++i) SchemaRef release(parts()[i]);
}

void Schema::Destroy(const Schema* schema) {
  auto* mutable_schema = const_cast<Schema*>(schema);
  mutable_schema->~Schema();
  ::operator delete(mutable_schema);
}

// False when the last reference is gone already, so that the blob is about to be destroyed.
bool Schema::TryReference() const {
  std::uint32_t count = references_.load(std::memory_order_relaxed);
  while (count != 0) {
    if (references_.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

std::atomic<const base::GoRegex*>* Schema::patterns() const {
  return reinterpret_cast<std::atomic<const base::GoRegex*>*>(const_cast<std::byte*>(tail()) +
                                                              counts_.parts * sizeof(const Schema*));
}

const Schema::NodeRecord* Schema::nodes() const {
  return reinterpret_cast<const NodeRecord*>(tail() + (counts_.parts + counts_.patterns) * sizeof(void*));
}

const Schema::FieldRecord* Schema::fields() const {
  return reinterpret_cast<const FieldRecord*>(nodes() + counts_.nodes);
}

const std::uint32_t* Schema::words() const { return reinterpret_cast<const std::uint32_t*>(fields() + counts_.fields); }

const char* Schema::texts() const { return reinterpret_cast<const char*>(words() + counts_.words); }

std::string_view Schema::text(std::uint32_t offset) const {
  const auto* at = reinterpret_cast<const unsigned char*>(texts() + offset);
  std::size_t size = 0;
  for (int shift = 0;; shift += 7) {
    size |= static_cast<std::size_t>(*at & 0x7f) << shift;
    if ((*at++ & 0x80) == 0) break;
  }
  return {reinterpret_cast<const char*>(at), size};
}

Node Schema::Resolve(std::uint32_t reference) const {
  if (reference >= Layout::kForbidden) return {};
  if ((reference & Layout::kPart) != 0) return parts()[reference & ~Layout::kPart]->root();
  return Node(this, reference);
}

std::span<const std::uint32_t> Schema::List(std::uint32_t offset) const {
  return {words() + offset + 1, words()[offset]};
}

std::size_t Schema::total_bytes() const {
  std::set<const Schema*> seen = {this};
  std::vector<const Schema*> waiting = {this};
  std::size_t bytes = 0;
  while (!waiting.empty()) {
    const Schema* next = waiting.back();
    waiting.pop_back();
    bytes += next->bytes_;
    for (std::uint32_t i = 0; i < next->counts_.parts; ++i) {
      if (seen.insert(next->parts()[i]).second) waiting.push_back(next->parts()[i]);
    }
  }
  return bytes;
}

// ---- Node

bool Node::Flag(std::uint16_t flag) const { return schema_ != nullptr && (schema_->nodes()[index_].flags & flag) != 0; }

const std::uint32_t* Node::Side(std::uint32_t keyword) const {
  if (schema_ == nullptr || schema_->nodes()[index_].side == 0) return nullptr;
  const std::uint32_t* side = schema_->words() + schema_->nodes()[index_].side;
  if ((*side & keyword) == 0) return nullptr;
  return side + 1 + Layout::Position(*side, keyword);
}

std::optional<std::int64_t> Node::Integer(std::uint32_t keyword) const {
  const std::uint32_t* at = Side(keyword);
  if (at == nullptr) return std::nullopt;
  std::int64_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::optional<double> Node::Double(std::uint32_t keyword) const {
  const std::uint32_t* at = Side(keyword);
  if (at == nullptr) return std::nullopt;
  double value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::string_view Node::Text(std::uint32_t keyword) const {
  const std::uint32_t* at = Side(keyword);
  return at != nullptr ? schema_->text(*at) : std::string_view();
}

std::span<const std::uint32_t> Node::List(std::uint32_t keyword) const {
  const std::uint32_t* at = Side(keyword);
  if (at == nullptr) return {};
  return schema_->List(*at);
}

NodeType Node::type() const { return schema_ != nullptr ? schema_->nodes()[index_].type : NodeType::kNone; }
bool Node::nullable() const { return Flag(Layout::kNullable); }
bool Node::preserve_unknown_fields() const { return Flag(Layout::kPreserveUnknown); }
bool Node::embedded_resource() const { return Flag(Layout::kEmbedded); }
bool Node::int_or_string() const { return Flag(Layout::kIntOrString); }
bool Node::exclusive_maximum() const { return Flag(Layout::kExclusiveMaximum); }
bool Node::exclusive_minimum() const { return Flag(Layout::kExclusiveMinimum); }
bool Node::unique_items() const { return Flag(Layout::kUniqueItems); }
bool Node::has_defaults_below() const { return Flag(Layout::kDefaultsBelow); }
bool Node::has_embedded_below() const { return Flag(Layout::kEmbeddedBelow); }
bool Node::has_list_types_below() const { return Flag(Layout::kListTypesBelow); }
bool Node::has_rules_below() const { return Flag(Layout::kRulesBelow); }
ListType Node::list_type() const {
  return schema_ != nullptr ? static_cast<ListType>(schema_->nodes()[index_].kinds & 3) : ListType::kNone;
}
MapType Node::map_type() const {
  return schema_ != nullptr ? static_cast<MapType>(schema_->nodes()[index_].kinds >> 2) : MapType::kNone;
}

std::size_t Node::property_count() const { return schema_ != nullptr ? schema_->nodes()[index_].fields_count : 0; }
std::string_view Node::property_name(std::size_t index) const {
  return schema_->text(schema_->fields()[schema_->nodes()[index_].fields_begin + index].name);
}
Node Node::property(std::size_t index) const {
  return schema_->Resolve(schema_->fields()[schema_->nodes()[index_].fields_begin + index].node);
}

Node Node::Property(std::string_view name) const {
  if (schema_ == nullptr) return {};
  constexpr std::size_t kWalkedMax = 12;  // Among so few, comparing lengths one by one is faster than a search.
  const std::size_t count = schema_->nodes()[index_].fields_count;
  const auto* begin = schema_->fields() + schema_->nodes()[index_].fields_begin;
  const auto* end = begin + count;
  if (count <= kWalkedMax) {
    for (const auto* at = begin; at != end; ++at) {
      if (schema_->text(at->name) == name) return schema_->Resolve(at->node);
    }
    return {};
  }
  const auto* found = std::lower_bound(begin, end, name, [&](const Schema::FieldRecord& field, std::string_view key) {
    return schema_->text(field.name) < key;
  });
  if (found == end || schema_->text(found->name) != name) return {};
  return schema_->Resolve(found->node);
}

Node Node::items() const { return schema_ != nullptr ? schema_->Resolve(schema_->nodes()[index_].items) : Node(); }
bool Node::has_additional_properties() const {
  return schema_ != nullptr && schema_->nodes()[index_].additional != Layout::kNoNode;
}
Node Node::additional_properties() const {
  return schema_ != nullptr ? schema_->Resolve(schema_->nodes()[index_].additional) : Node();
}
bool Node::additional_properties_allowed() const {
  return has_additional_properties() && schema_->nodes()[index_].additional != Layout::kForbidden;
}

Node Node::Member(std::string_view name) const {
  const Node property = Property(name);
  return property ? property : additional_properties();
}

std::optional<double> Node::maximum() const { return Double(Layout::kMaximum); }
std::optional<double> Node::minimum() const { return Double(Layout::kMinimum); }
std::optional<double> Node::multiple_of() const { return Double(Layout::kMultipleOf); }
std::optional<std::int64_t> Node::max_length() const { return Integer(Layout::kMaxLength); }
std::optional<std::int64_t> Node::min_length() const { return Integer(Layout::kMinLength); }
std::optional<std::int64_t> Node::max_items() const { return Integer(Layout::kMaxItems); }
std::optional<std::int64_t> Node::min_items() const { return Integer(Layout::kMinItems); }
std::optional<std::int64_t> Node::max_properties() const { return Integer(Layout::kMaxProperties); }
std::optional<std::int64_t> Node::min_properties() const { return Integer(Layout::kMinProperties); }
std::string_view Node::format() const { return Text(Layout::kFormat); }
std::string_view Node::pattern() const { return Text(Layout::kPattern); }

const base::GoRegex* Node::compiled_pattern() const {
  const std::uint32_t* slot_index = Side(Layout::kPatternSlot);
  if (slot_index == nullptr) return nullptr;
  std::atomic<const base::GoRegex*>& slot = schema_->patterns()[*slot_index];
  const base::GoRegex* compiled = slot.load(std::memory_order_acquire);
  if (compiled != nullptr) return compiled;
  auto fresh = std::make_unique<const base::GoRegex>(pattern());
  if (slot.compare_exchange_strong(compiled, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
  return compiled;  // Another thread was first.
}

std::size_t Node::required_count() const { return List(Layout::kRequired).size(); }
std::string_view Node::required(std::size_t index) const { return schema_->text(List(Layout::kRequired)[index]); }
std::size_t Node::enum_count() const { return List(Layout::kEnum).size() / 2; }
bool Node::enum_is_string(std::size_t index) const { return List(Layout::kEnum)[2 * index] == 1; }
std::string_view Node::enum_text(std::size_t index) const { return schema_->text(List(Layout::kEnum)[2 * index + 1]); }

std::optional<std::string_view> Node::default_json() const {
  const std::uint32_t* at = Side(Layout::kDefault);
  if (at == nullptr) return std::nullopt;
  return schema_->text(*at);
}

Value Node::DefaultValue(base::Arena& arena) const {
  const auto text = default_json();
  if (!text) return {};
  return object::ParseJSON(arena, *text).value_or(Value());
}

std::size_t Node::list_map_key_count() const { return List(Layout::kListMapKeys).size(); }
std::string_view Node::list_map_key(std::size_t index) const {
  return schema_->text(List(Layout::kListMapKeys)[index]);
}
std::size_t Node::all_of_count() const { return List(Layout::kAllOf).size(); }
Node Node::all_of(std::size_t index) const { return schema_->Resolve(List(Layout::kAllOf)[index]); }
std::size_t Node::any_of_count() const { return List(Layout::kAnyOf).size(); }
Node Node::any_of(std::size_t index) const { return schema_->Resolve(List(Layout::kAnyOf)[index]); }
std::size_t Node::one_of_count() const { return List(Layout::kOneOf).size(); }
Node Node::one_of(std::size_t index) const { return schema_->Resolve(List(Layout::kOneOf)[index]); }
Node Node::not_schema() const {
  const std::uint32_t* at = Side(Layout::kNot);
  return at != nullptr ? schema_->Resolve(*at) : Node();
}

std::size_t Node::rule_count() const { return List(Layout::kRules).size() / Layout::kRuleWords; }
Rule Node::rule(std::size_t index) const {
  const auto words = List(Layout::kRules).subspan(index * Layout::kRuleWords, Layout::kRuleWords);
  Rule rule{.rule = schema_->text(words[0]),
            .message = schema_->text(words[1]),
            .message_expression = schema_->text(words[2]),
            .reason = schema_->text(words[3]),
            .field_path = schema_->text(words[4])};
  if (words[5] != 0) rule.optional_old_self = words[5] == 2;
  return rule;
}

// ---- Stored bytes

std::optional<std::string_view> FindVersionSchema(std::string_view definition, std::string_view version) {
  const auto spec = object::FindJSONMember(definition, "spec");
  if (!spec) return std::nullopt;
  const auto of = [](std::string_view holder, std::string_view member) -> std::optional<std::string_view> {
    const auto validation = object::FindJSONMember(holder, member);
    if (!validation) return std::nullopt;
    const auto schema = object::FindJSONMember(*validation, "openAPIV3Schema");
    return schema && *schema != "null" ? schema : std::nullopt;
  };
  const auto versions = object::FindJSONMember(*spec, "versions");
  bool known = false;
  if (versions) {
    const std::string quoted = "\"" + std::string(version) + "\"";  // Version names need no escapes.
    object::JSONReader reader(*versions);
    reader.EnterList();
    while (reader.NextItem()) {
      const std::string_view item = reader.TakeValue();
      if (!reader.ok()) return std::nullopt;
      if (object::FindJSONMember(item, "name") != quoted) continue;
      known = true;
      if (const auto schema = of(item, "schema")) return schema;
    }
  }
  return known ? of(*spec, "validation") : std::nullopt;
}

}  // namespace keelson::schema::structural
