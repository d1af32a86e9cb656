#include "storage/definition_outline.h"

#include <string>

#include "object/json_reader.h"
#include "object/json_text.h"
#include "storage/packed.h"
#include "storage/stored_versions.h"

namespace keelson::storage {
namespace {

constexpr std::string_view kServed = "apiextensions.k8s.io/v1";

// Reads an object with `read` for each member; a null Value leaves the member out.
template <class Read>
Value ReadMembers(base::Arena& arena, object::JSONReader& reader, Read read) {
  if (!reader.EnterObject()) {
    reader.TakeValue();
    return {};
  }
  Value map = Value::Map(arena);
  std::string_view key;
  while (reader.NextMember(key)) {
    const Value value = read(key);
    if (!value.is_null()) map.Set(arena, arena.Copy(key), value);
  }
  return map;
}

Value ReadWhole(base::Arena& arena, object::JSONReader& reader) {
  return object::ParseJSON(arena, reader.TakeValue()).value_or(Value());
}

Value Skip(object::JSONReader& reader) {
  reader.TakeValue();
  return {};
}

Value ReadVersions(base::Arena& arena, object::JSONReader& reader) {
  if (!reader.EnterList()) return Skip(reader);
  Value versions = Value::List(arena);
  while (reader.NextItem()) {
    versions.Append(arena, ReadMembers(arena, reader, [&](std::string_view key) {
                      return key == "schema" ? Skip(reader) : ReadWhole(arena, reader);
                    }));
  }
  return versions;
}

}  // namespace

std::optional<Value> DefinitionOutline(base::Arena& arena, std::string_view stored) {
  const UnversionedText text = UnpackedUnversioned(arena, stored);
  object::JSONReader reader(text.json);
  if (reader.Peek() != '{') return std::nullopt;
  Value outline = ReadMembers(arena, reader, [&](std::string_view member) {
    if (member == "metadata") {
      return ReadMembers(arena, reader, [&](std::string_view key) {
        return key == "managedFields" ? Skip(reader) : ReadWhole(arena, reader);
      });
    }
    if (member != "spec") return ReadWhole(arena, reader);
    return ReadMembers(arena, reader, [&](std::string_view key) {
      if (key == "versions") return ReadVersions(arena, reader);
      return key == "validation" ? Skip(reader) : ReadWhole(arena, reader);
    });
  });
  if (!reader.ok()) return std::nullopt;
  if (text.resource_version != 0) {
    const Value version = Value::String(arena, std::to_string(text.resource_version));
    outline.EnsureMap(arena, "metadata").Set(arena, "resourceVersion", version);
  }
  const std::string_view version = outline["apiVersion"].as_string();
  if (version == kServed) return outline;
  const auto converted = ConvertDefinition(arena, outline, version, kServed);
  if (!converted.ok()) return std::nullopt;
  return *converted;
}

}  // namespace keelson::storage
