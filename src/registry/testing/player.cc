#include "registry/testing/player.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "registry/catalog.h"
#include "validation/defaulting.h"

namespace keelson::registry::testing {
namespace {

const Conversion* ConversionOf(const schema::Resource& resource) {
  return FindConversion(resource.group, resource.version, resource.kind);
}

// Nothing: the kind has no such subresource.
std::optional<Endpoint> EndpointOf(const Strategy& strategy, std::string_view subresource) {
  if (subresource.empty()) return Endpoint{};
  if (subresource == "status") return Endpoint{.part = Endpoint::Part::kStatus};
  for (const Subresource& one : strategy.subresources) {
    if (one.name == subresource) return Endpoint{.part = Endpoint::Part::kOther, .rules = &one.rules};
  }
  return std::nullopt;
}

StoredKind KindOf(const schema::Resource& resource, const Strategy& row) {
  const auto definition = Catalog::BuiltIn()->Find(resource.group, resource.plural);
  StoredKind kind = StoredKindOf(*definition);
  if (!kind.strategy) kind.strategy = std::make_shared<RESTStrategy>(row);  // answered and not stored
  return kind;
}

std::vector<std::string> ErrorTexts(const meta::Status& status) {
  if (!status.details() || status.details()->causes.empty()) return {std::string(status.message())};
  std::vector<std::string> texts;
  for (const meta::StatusCause& cause : status.details()->causes) texts.push_back(cause.field + ": " + cause.message);
  return texts;
}

// A copy with the structs that are not pointers, also if they are empty and the decoder left them out.
Value WithStructs(base::Arena& arena, const schema::Resource& resource, const Value& given) {
  Value object = given.Clone(arena);
  for (const std::string_view part : {"metadata", "spec"}) {
    const schema::Field* const field = resource.type->FindField(part);
    if (field != nullptr && !field->pointer && field->type->kind == schema::Kind::kStruct)
      object.EnsureMap(arena, part);
  }
  return object;
}

}  // namespace

Target ParsePath(std::string_view path) {
  const auto parts = base::Split(path.substr(1, std::min(path.find('?'), path.size()) - 1), '/');
  Target target;
  std::size_t at = 0;
  std::string_view group, version;
  if (parts.size() > 2 && parts[0] == "api") {
    version = parts[1];
    at = 2;
  } else if (parts.size() > 3 && parts[0] == "apis") {
    group = parts[1];
    version = parts[2];
    at = 3;
  } else {
    return target;
  }
  if (parts.size() > at + 2 && parts[at] == "namespaces" && parts[at + 2] != "status" && parts[at + 2] != "finalize") {
    target.name_space = parts[at + 1];
    at += 2;
  }
  target.resource = schema::FindResource(group, version, parts[at]);
  if (parts.size() > at + 1) target.name = parts[at + 1];
  if (parts.size() > at + 2) target.subresource = parts[at + 2];
  return target;
}

void PlayedRandom::Fill(std::span<std::uint8_t> bytes) {
  constexpr std::uint8_t kBytes[] = {0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x43, 0x33,
                                     0x84, 0x44, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = kBytes[i % std::size(kBytes)];
}

Value Player::Decode(const Target& target, std::string_view json) {
  auto decoded = codec::DecodeJSON(arena_, arena_.Copy(json), *target.resource->type);
  return decoded.ok() ? decoded->value : Value();
}

Value Player::ToHub(const Target& target, const Value& object) {
  const Conversion* const conversion = ConversionOf(*target.resource);
  return conversion == nullptr ? object : conversion->to_hub(arena_, object);
}

Value Player::FromHub(const Target& target, const Value& object) {
  const Conversion* const conversion = ConversionOf(*target.resource);
  return conversion == nullptr ? object : conversion->from_hub(arena_, object);
}

Player::Outcome Player::Create(const Target& target, const Value& object) { return Write(target, object, {}); }

Player::Outcome Player::Update(const Target& target, const Value& object, const Value& old) {
  return old.is_null() ? Outcome() : Write(target, object, old);
}

Value Player::Row(const Target& target, const Value& object) {
  const Strategy* const strategy = FindStrategy(target.resource->group, target.resource->kind);
  if (strategy == nullptr || strategy->table_row == nullptr) return {};
  Value cells = Value::List(arena_);
  strategy->table_row(arena_, clock_, object, cells);
  return cells;
}

// A copy in the hub's version with all defaults.
Value Player::Complete(const Target& target, const Strategy& strategy, const Value& given) {
  const schema::Resource& resource = *target.resource;
  Value object = WithStructs(arena_, resource, given);
  object.Set(arena_, "kind", Value(resource.kind));
  object.Set(
      arena_, "apiVersion",
      Value(resource.group.empty() ? resource.version
                                   : arena_.Copy(std::string(resource.group) + "/" + std::string(resource.version))));
  validation::ApplyTableDefaults(arena_, *resource.type, object);
  object = ToHub(target, object);
  if (strategy.defaults != nullptr) strategy.defaults(arena_, object);
  return object;
}

// Through the stored form, which has no empty lists, and the defaults on read.
Value Player::ReadBack(const Target& target, const Strategy& strategy, const Value& object) {
  const Conversion* const conversion = ConversionOf(*target.resource);
  const schema::Struct& type =
      conversion == nullptr ? *target.resource->type
                            : *schema::FindKind(conversion->hub_group, conversion->hub_version, conversion->kind);
  Value read = object;
  if (type.HasProto() && target.resource->group != "apiextensions.k8s.io") {  // those are stored as JSON
    std::string stored;
    codec::EncodeProto(object, type, stored);
    auto decoded = codec::DecodeProto(arena_, stored, type);
    KS_CHECK(decoded.ok());
    read = decoded->value;
  }
  if (strategy.defaults != nullptr) strategy.defaults(arena_, read);
  return read;
}

Player::Outcome Player::Write(const Target& target, const Value& given, const Value& old) {
  static const std::vector<std::string> kGroups = {"system:masters", "system:authenticated"};
  const schema::Resource& resource = *target.resource;
  const Strategy* const row = FindStrategy(resource.group, resource.kind);
  if (given.is_null() || row == nullptr) return {};
  const auto endpoint = EndpointOf(*row, target.subresource);
  if (!endpoint) return {};
  Outcome outcome{.ran = true, .errors = {}, .warnings = {}, .object = {}};
  const Call call{.arena = arena_,
                  .clock = clock_,
                  .random = random_,
                  .warnings = outcome.warnings,
                  .user_name = "admin",
                  .user_groups = kGroups,
                  .name_space = target.name_space,
                  .request_group = resource.group,
                  .request_version = resource.version,
                  .feature_enabled = feature_enabled_};
  Value object = Complete(target, *row, given);
  Value metadata = object["metadata"];
  metadata.Erase("managedFields");  // the request's are taken away or corrected before strategies see them
  metadata.Erase("selfLink");
  if (metadata["name"].is_null() && metadata["generateName"].is_string()) {
    metadata.Set(arena_, "name",
                 Value(arena_.Concat(metadata["generateName"].as_string(), row->random_names ? "abcde" : "")));
  }
  const StoredKind kind = KindOf(resource, *row);
  const auto written = old.is_null() ? RunCreate(kind, call, target, object)
                                     : RunUpdate(kind, call, *endpoint, object, WithStructs(arena_, resource, old));
  if (written.ok()) {
    outcome.object = ReadBack(target, *row, object);
  } else {
    outcome.errors = ErrorTexts(written.error());
  }
  return outcome;
}

meta::Result<void> Player::Allocate(const StoredKind& kind, const Call& call, Value object, const Value& old) {
  if (!before_validation_) return {};
  const FieldErrors errors = before_validation_(call, object, old);
  if (!errors.empty()) return meta::NewInvalid(kind.kind, object.Get("metadata", "name").as_string(), errors);
  return {};
}

meta::Result<void> Player::RunCreate(const StoredKind& kind, const Call& call, const Target& target, Value object) {
  const bool stored = std::ranges::find(target.resource->verbs, "get") != target.resource->verbs.end();
  if (stored) FillObjectMetaSystemFields(call, object["metadata"]);
  KS_RETURN_IF_ERROR(Allocate(kind, call, object, {}));
  return PrepareCreate(kind, call, object);
}

meta::Result<void> Player::RunUpdate(const StoredKind& kind, const Call& call, const Endpoint& endpoint, Value object,
                                     const Value& old) {
  Value metadata = object["metadata"];
  const auto version = base::ParseUint64(old.Get("metadata", "resourceVersion").as_string());
  KS_RETURN_IF_ERROR(CheckUpdateVersion(kind, arena_, metadata["name"].as_string(), metadata,
                                        std::max<std::uint64_t>(version.value_or(1), 1)));
  if (endpoint.part == Endpoint::Part::kMain) KS_RETURN_IF_ERROR(Allocate(kind, call, object, old));
  return PrepareUpdate(kind, call, endpoint, object, old);
}

}  // namespace keelson::registry::testing
