// Definitions of types in OpenAPI v2 or v3. Not for other folders.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "apidocs/discovery_documents.h"
#include "base/arena.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::apidocs {

enum class OpenAPIFormat : std::uint8_t { kV2, kV3 };

class DefinitionWriter {
 public:
  // `only`: the group version whose document it is; kinds that belong to many are shown with this one and the core
  // group's only.
  DefinitionWriter(base::Arena& arena, OpenAPIFormat format, std::span<const DiscoveryGroup> groups,
                   const schema::Package* only);

  // Makes sure that the definition, and all that it refers to, will be there.
  void Need(const std::string& name);
  // The definition is not written here.
  void Leave(const std::string& name) { left_.insert(name); }
  Value Reference(const std::string& name);
  // By name.
  Value Definitions();

 private:
  Value Define(const std::string& name);
  Value DefineWellKnown(const std::string& name, std::string_view last);
  Value DefineStruct(const schema::Struct& type);
  Value Property(const schema::Struct& type, const schema::Field& field);
  Value Element(const schema::Type& type);
  Value TypeValue(const schema::Type& type, bool described, bool zero_default);
  Value KindsOf(const schema::Struct& type);
  Value Map() { return Value::Map(arena_); }

  base::Arena& arena_;
  OpenAPIFormat format_;
  std::span<const DiscoveryGroup> groups_;
  const schema::Package* only_;
  std::map<std::string, const schema::Struct*> types_;
  std::map<std::string, Value> made_;
  std::set<std::string> left_;
  std::vector<std::string> pending_;
};

}  // namespace keelson::apidocs
