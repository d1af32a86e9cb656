// The generated code: arrays of constants in read-only data. Nothing is computed at start-up,
// and because every array has a fixed name and size, a package's file needs nothing of the others but declarations.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "../../src/schema/schema.h"
#include "model.h"

namespace kapi {
namespace {

std::string Identifier(std::string_view text) {
  std::string out;
  for (const char c : text) out += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  return out;
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Any bytes, escaped for a string literal.
std::string Octal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8),
            static_cast<char>('0' + byte % 8)};
  }
  return out;
}

std::string View(std::string_view text) { return "{" + Quoted(text) + ", " + std::to_string(text.size()) + "}"; }

bool WriteIfChanged(const std::string& path, const std::string& text) {
  std::ifstream in(path, std::ios::binary);
  if (in) {
    std::ostringstream old;
    old << in.rdbuf();
    if (old.str() == text) return true;
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

const char* KindName(const std::string& scalar) {
  static const std::map<std::string, const char*> kNames = {{"string", "kString"},
                                                            {"bool", "kBool"},
                                                            {"int32", "kInt32"},
                                                            {"int64", "kInt64"},
                                                            {"double", "kDouble"},
                                                            {"bytes", "kBytes"},
                                                            {"time", "kTime"},
                                                            {"microtime", "kMicroTime"},
                                                            {"duration", "kDuration"},
                                                            {"quantity", "kQuantity"},
                                                            {"int-or-string", "kIntOrString"},
                                                            {"raw", "kRaw"},
                                                            {"fieldsv1", "kFieldsV1"},
                                                            {"json", "kJSON"}};
  return kNames.at(scalar);
}

std::string DefaultText(const FieldDef& field) {
  if (!field.has_default) return "";
  if (field.type.shape == TypeRef::Shape::kScalar && field.type.name == "string")
    return "\"" + field.default_value + "\"";
  return field.default_value;
}

// One JSON member of a type: the field, and where its array is.
struct JSONField {
  const FieldDef* field;
  std::string reference;  // &core_v1_Pod_fields[1]
  std::size_t wire;       // its position in the wire of the type that declares it
};

constexpr std::size_t kNone = 0xff;  // no position

class PackageEmitter {
 public:
  PackageEmitter(const Model& model, const PackageDef& package) : model_(model), package_(package) {}

  std::string Run() {
    const std::string id = Identifier(package_.name);
    for (const TypeDef& type : package_.types) EmitType(type);
    EmitStructs(id);
    EmitResources();
    std::string out =
        "// Made by tools/kapi from " + package_.file + ": edit that file.\n#include \"schema/schema.h\"\n\n";
    out += "namespace keelson::schema::tables {\n\nusing std::string_view;\n\n";
    for (const std::string& declaration : declarations_) out += declaration + "\n";
    out += "\n";
    // A type names its element by address, so the array must be complete before anything refers to it.
    out += "static constinit const Type " + id + "_shapes[" + std::to_string(std::max<std::size_t>(1, shapes_.size())) +
           "] = {\n";
    for (const std::string& shape : shapes_) out += "    " + shape + ",\n";
    out += "};\n\n" + texts_ + body_;
    out += "extern constinit const Package " + id + "_package = {\n    .name = " + View(package_.name) +
           ", .group = " + View(package_.group) + ", .version = " + View(package_.version) +
           ", .serves = " + (package_.serves ? "true" : "false") +
           ",\n    .types = " + (package_.types.empty() ? "{}" : id + "_types") +
           ", .resources = " + (package_.resources.empty() ? "{}" : id + "_resources") +
           "};\n\n}  // namespace keelson::schema::tables\n";
    return out;
  }

 private:
  std::string StructReference(const TypeRef& type) {
    const PackageDef* package = model_.Find(type.package);
    const std::string id = Identifier(package->name);
    declarations_.insert("extern const Struct " + id + "_types[" + std::to_string(package->types.size()) + "];");
    return "&" + id + "_types[" + std::to_string(package->TypeIndex(type.name)) + "]";
  }

  // The type of a subresource's kind; nullptr when no table has it.
  std::string KindReference(const SubresourceDef& sub) {
    for (const PackageDef& package : model_.packages) {
      if (!package.serves || package.group != sub.kind_group || package.version != sub.kind_version) continue;
      const int index = package.TypeIndex(sub.kind);
      if (index < 0) continue;
      const std::string id = Identifier(package.name);
      declarations_.insert("extern const Struct " + id + "_types[" + std::to_string(package.types.size()) + "];");
      return "&" + id + "_types[" + std::to_string(index) + "]";
    }
    return "nullptr";
  }

  // The index of the shape, adding it when new.
  std::size_t Shape(const TypeRef& type) {
    const std::string id = Identifier(package_.name);
    std::string text;
    switch (type.shape) {
      case TypeRef::Shape::kScalar:
        text = std::string("{Kind::") + KindName(type.name) + "}";
        break;
      case TypeRef::Shape::kNamed: {
        const PackageDef* package = model_.Find(type.package);
        const bool either = package->types[package->TypeIndex(type.name)].alternatives();
        text = std::string("{Kind::") + (either ? "kEither" : "kStruct") + ", nullptr, " + StructReference(type) + "}";
        break;
      }
      case TypeRef::Shape::kList:
      case TypeRef::Shape::kMap:
        text = std::string("{Kind::") + (type.shape == TypeRef::Shape::kList ? "kList" : "kMap") + ", &" + id +
               "_shapes[" + std::to_string(Shape(type.element[0])) + "], nullptr, " +
               (type.wrapped ? "true" : "false") + "}";
        break;
    }
    const auto found = std::ranges::find(shapes_, text);
    if (found != shapes_.end()) return static_cast<std::size_t>(found - shapes_.begin());
    shapes_.push_back(text);
    return shapes_.size() - 1;
  }

  std::string Strings(const std::string& name, const std::vector<std::string>& values) {
    if (values.empty()) return "{}";
    body_ += "static constinit const string_view " + name + "[] = {";
    for (const std::string& value : values) body_ += View(value) + ", ";
    body_ += "};\n";
    return name;
  }

  void CollectJSON(const PackageDef& package, const TypeDef& type, std::vector<JSONField>& out) {
    const std::string array = Identifier(package.name) + "_" + type.name + "_fields";
    const std::vector<std::size_t> proto = WireOrder(type);
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      const FieldDef& field = type.fields[i];
      if (field.inlined) {
        const PackageDef* inner = model_.Find(field.type.package);
        const TypeDef& inner_type = inner->types[inner->TypeIndex(field.type.name)];
        CollectJSON(*inner, inner_type, out);
        continue;
      }
      declarations_.insert("extern const Field " + array + "[" + std::to_string(type.fields.size()) + "];");
      const auto wire = std::ranges::find(proto, i);
      out.push_back({&field, "&" + array + "[" + std::to_string(i) + "]",
                     wire == proto.end() ? kNone : static_cast<std::size_t>(wire - proto.begin())});
    }
  }

  void EmitType(const TypeDef& type) {
    const std::string id = Identifier(package_.name) + "_" + type.name;
    if (type.fields.empty()) return;
    std::string fields;
    const std::vector<std::size_t> proto = WireOrder(type);
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      const auto wire = std::ranges::find(proto, i);
      fields += "    " +
                FieldText(type.fields[i], id + "_" + std::to_string(i),
                          wire == proto.end() ? kNone : static_cast<std::size_t>(wire - proto.begin())) +
                ",\n";
    }
    body_ += "extern constinit const Field " + id + "_fields[" + std::to_string(type.fields.size()) + "] = {\n" +
             fields + "};\n";
    EmitOrders(type, id);
  }

  // A key as JSON writes it, once per package, with room to be copied in blocks; names are a part of it.
  std::string KeyText(const std::string& name) {
    const auto [found, added] = keys_.try_emplace(name, keys_.size());
    std::string id = Identifier(package_.name) + "_key" + std::to_string(found->second);
    if (!added) return id;
    const std::string quoted = "\"" + name + "\":";
    const std::size_t padded =
        (quoted.size() / keelson::schema::kQuotedPadding + 1) * keelson::schema::kQuotedPadding;  // NUL included
    texts_ += "alignas(" + std::to_string(keelson::schema::kQuotedPadding) + ") static constexpr char " + id + "[" +
              std::to_string(padded) + "] = " + Quoted(quoted) + ";\n";
    return id;
  }
  std::string NameText(const std::string& name) { return name.empty() ? "nullptr" : KeyText(name) + " + 1"; }

  std::string FieldText(const FieldDef& field, const std::string& id, std::size_t wire) {
    std::string text = "{";
    if (!field.name.empty()) {
      text += ".name = {" + NameText(field.name) + ", " + std::to_string(field.name.size()) +
              "}, .quoted = " + KeyText(field.name) + ", ";
    }
    text += ".type = &" + Identifier(package_.name) + "_shapes[" + std::to_string(Shape(field.type)) + "]";
    if (field.number != 0) text += ", .number = " + std::to_string(field.number);
    if (field.pointer) text += ", .pointer = true";
    if (field.inlined) text += ", .inlined = true";
    if (field.always) text += ", .always = true";
    if (field.omit_zero) text += ", .omit_zero = true";
    if (field.required) text += ", .required = true";
    if (wire != kNone) text += ", .wire = " + std::to_string(wire);
    if (field.map == "atomic") text += ", .map_topology = MapTopology::kAtomic";
    if (field.list == "set") text += ", .list_topology = ListTopology::kSet";
    if (field.list == "map") text += ", .list_topology = ListTopology::kMap";
    if (!field.list.empty()) text += ", .has_list_topology = true";
    static const std::map<std::string, const char*> kPatch = {{"merge", "kMerge"},
                                                              {"replace", "kReplace"},
                                                              {"retainKeys", "kRetainKeys"},
                                                              {"merge,retainKeys", "kMergeRetainKeys"}};
    if (!field.patch.empty()) text += std::string(", .patch_strategy = PatchStrategy::") + kPatch.at(field.patch);
    if (!field.key.empty()) text += ", .patch_merge_key = " + View(field.key);
    if (!field.list_keys.empty()) text += ", .list_keys = " + Strings(id + "_keys", field.list_keys);
    if (!field.enum_values.empty()) text += ", .enum_values = " + Strings(id + "_enum", field.enum_values);
    if (field.has_default) text += ", .default_text = " + View(DefaultText(field));
    return text + "}";
  }

  void EmitOrders(const TypeDef& type, const std::string& id) {
    std::vector<JSONField> json;
    CollectJSON(package_, type, json);
    if (!json.empty()) {
      body_ += "static constinit const Field* const " + id + "_json[] = {";
      for (const JSONField& field : json) body_ += field.reference + ", ";
      body_ += "};\n";
      std::vector<std::size_t> order(json.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::ranges::sort(order, {}, [&](std::size_t i) { return json[i].field->name; });
      body_ += "static constinit const std::uint16_t " + id + "_names[] = {";
      for (const std::size_t i : order) body_ += std::to_string(i) + ", ";
      body_ += "};\n";
      if (!type.alternatives()) {
        EmitJSON(json, id);
        EmitNameTable(json, id);
      }
    }
    const std::vector<std::size_t> proto = WireOrder(type);
    if (proto.empty()) return;
    std::string positions;
    body_ += "static constinit const Field* const " + id + "_proto[] = {";
    for (const std::size_t i : proto) {
      body_ += "&" + id + "_fields[" + std::to_string(i) + "], ";
      const auto found = std::ranges::find(json, &type.fields[i], &JSONField::field);
      positions += found == json.end() ? "Struct::kNoPosition, " : std::to_string(found - json.begin()) + ", ";
    }
    body_ += "};\nstatic constinit const std::uint16_t " + id + "_positions[] = {" + positions + "};\n";
    EmitWire(type, id, json, proto);
  }

  // The members about a field's value that both tables share.
  std::string ValueText(const TypeRef& type) {
    const std::string form = FormOf(type);
    if (form == "kStruct" || form == "kStructs")
      return ".structure = " + StructReference(form == "kStruct" ? type : type.element[0]);
    return ".type = &" + Identifier(package_.name) + "_shapes[" + std::to_string(Shape(type)) + "]";
  }

  std::string FormOf(const TypeRef& type) {
    const bool list = type.shape == TypeRef::Shape::kList && !type.wrapped;
    const std::string kind = KindOf(type), element = type.element.empty() ? "" : KindOf(type.element[0]);
    if (list && element == "Kind::kStruct") return "kStructs";
    if (list && element == "Kind::kString") return "kStrings";
    if (kind == "Kind::kMap" && element == "Kind::kString") return "kTexts";
    static const std::set<std::string> kSame = {"kString", "kBool", "kInt32",   "kInt64",
                                                "kStruct", "kTime", "kQuantity"};
    const std::string own = kind.substr(std::string("Kind::").size());
    return kSame.contains(own) ? own : "kOther";
  }

  void EmitJSON(const std::vector<JSONField>& json, const std::string& id) {
    body_ += "static constinit const JSONField " + id + "_json_table[] = {\n";
    for (std::size_t at = 0; at < json.size(); ++at) {
      const FieldDef& field = *json[at].field;
      const auto flag = [](bool set) { return set ? "true" : "false"; };
      body_ += "    {.quoted = " + KeyText(field.name) + ", .field = " + json[at].reference + ", " +
               ValueText(field.type) + ", .place = " + std::to_string(at | json[at].wire << 8) +
               ", .name_size = " + std::to_string(field.name.size()) + ", .kind = " + KindOf(field.type) +
               ", .form = Form::" + FormOf(field.type) + ", .pointer = " + flag(field.pointer) +
               ", .always = " + flag(field.always) + ", .omit_zero = " + flag(field.omit_zero) + "},\n";
    }
    body_ += "};\n";
  }

  void EmitWire(const TypeDef& type, const std::string& id, const std::vector<JSONField>& json,
                const std::vector<std::size_t>& proto) {
    Wire& result = wires_[id];
    const ZeroImage zero = ZeroMessage(model_, type);
    result.zero_size = zero.bytes.size();
    if (!zero.bytes.empty())
      body_ += "static constexpr char " + id + "_zero[] = \"" +
               Octal(std::string(keelson::schema::kZeroPadding, '\0') + zero.bytes) + "\";\n";
    std::vector<std::size_t> of_json(json.size(), kNone);
    body_ += "static constinit const WireField " + id + "_wire[] = {\n";
    for (std::size_t at = 0; at < proto.size(); ++at) {
      const FieldDef& field = type.fields[proto[at]];
      const auto found = std::ranges::find(json, &field, &JSONField::field);
      std::size_t place = at << 8;
      if (found != json.end()) {
        const auto position = static_cast<std::size_t>(found - json.begin());
        of_json[position] = at;
        place |= position;
      } else if (field.inlined) {
        place = FirstOf(field, json);
      }
      const bool repeated = field.type.shape == TypeRef::Shape::kMap ||
                            (field.type.shape == TypeRef::Shape::kList && !field.type.wrapped);
      const std::string tag = WireTag(field);
      std::uint32_t tag_bytes = 0;
      for (const char c : tag)
        tag_bytes = tag_bytes >> 8 | static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 24;
      body_ += "    {.name = " + NameText(field.name) + ", " + ValueText(field.type) +
               ", .tag = " + std::to_string(tag_bytes) + "u, .zero_begin = " + std::to_string(zero.begin[at]) +
               ", .zero_end = " + std::to_string(zero.begin[at + 1]) + ", .place = " + std::to_string(place) +
               ", .number = " + std::to_string(field.number) + ", .name_size = " + std::to_string(field.name.size()) +
               ", .kind = " + KindOf(field.type) + ", .form = Form::" + FormOf(field.type) +
               ", .tag_size = " + std::to_string(tag.size()) + ", .pointer = " + (field.pointer ? "true" : "false") +
               ", .inlined = " + (field.inlined ? "true" : "false") + ", .repeated = " + (repeated ? "true" : "false") +
               "},\n";
      if (field.inlined) result.inlined |= std::uint64_t{1} << at;
    }
    body_ += "};\n";
    if (json.empty()) return;
    body_ += "static constinit const std::uint8_t " + id + "_wire_of_json[] = {";
    for (const std::size_t at : of_json) body_ += std::to_string(at) + ",";
    body_ += "};\n";
  }

  // Index of the first field of an inlined struct among the JSON fields; 0 if it has none.
  std::size_t FirstOf(const FieldDef& inlined, const std::vector<JSONField>& json) {
    const PackageDef* package = model_.Find(inlined.type.package);
    std::vector<JSONField> inner;
    CollectJSON(*package, package->types[package->TypeIndex(inlined.type.name)], inner);
    if (inner.empty()) return 0;
    return static_cast<std::size_t>(std::ranges::find(json, inner[0].field, &JSONField::field) - json.begin());
  }

  std::string KindOf(const TypeRef& type) {
    switch (type.shape) {
      case TypeRef::Shape::kScalar:
        return std::string("Kind::") + KindName(type.name);
      case TypeRef::Shape::kList:
        return "Kind::kList";
      case TypeRef::Shape::kMap:
        return "Kind::kMap";
      case TypeRef::Shape::kNamed:
        break;
    }
    const PackageDef* package = model_.Find(type.package);
    return package->types[package->TypeIndex(type.name)].alternatives() ? "Kind::kEither" : "Kind::kStruct";
  }

  // Tries multipliers until no two names meet; a table twice as large as the names needs a few thousand tries at most.
  void EmitNameTable(const std::vector<JSONField>& json, const std::string& id) {
    NameTable& result = name_tables_[id];
    int bits = 2;
    while ((1u << bits) < json.size() * 2) ++bits;
    std::uint64_t multiplier = 0x9E3779B97F4A7C15u;
    for (int tries = 1;; ++tries) {
      if (tries % 20000 == 0) ++bits;
      multiplier = (multiplier * 6364136223846793005u + 1442695040888963407u) | 1;
      std::vector<int> table(1u << bits, 0xff);
      bool collides = false;
      for (std::size_t i = 0; i < json.size() && !collides; ++i) {
        const std::string& name = json[i].field->name;
        int& slot = table[(keelson::schema::HashName(name.data(), name.size()) * multiplier) >> (64 - bits)];
        collides = slot != 0xff;
        slot = static_cast<int>(i);
      }
      if (collides) continue;
      result = {multiplier, 64 - bits};
      body_ += "static constinit const std::uint8_t " + id + "_table[] = {";
      for (const int slot : table) body_ += std::to_string(slot) + ",";
      body_ += "};\n";
      break;
    }
    for (std::size_t i = 0; i < json.size(); ++i) {
      if (WrittenAlways(*json[i].field)) result.always[i / 64] |= std::uint64_t{1} << (i % 64);
    }
  }

  // Go's omitempty leaves out false, 0, "", nil and empty collections, but never a struct.
  static bool WrittenAlways(const FieldDef& field) {
    if (field.always) return true;
    if (field.pointer || field.omit_zero) return false;
    if (field.type.shape == TypeRef::Shape::kNamed) return true;
    if (field.type.shape != TypeRef::Shape::kScalar) return false;
    static const std::set<std::string> kStructs = {"time",          "microtime", "duration", "quantity",
                                                   "int-or-string", "raw",       "fieldsv1", "json"};
    return kStructs.contains(field.type.name);
  }

  bool HasJSON(const TypeDef& type) {
    std::vector<JSONField> json;
    CollectJSON(package_, type, json);
    return !json.empty();
  }

  void EmitStructs(const std::string& id) {
    if (package_.types.empty()) return;
    for (const TypeDef& type : package_.types) Strings(id + "_" + type.name + "_members", type.members);
    body_ += "\nextern constinit const Struct " + id + "_types[" + std::to_string(package_.types.size()) + "] = {\n";
    for (const TypeDef& type : package_.types) {
      const std::string name = id + "_" + type.name;
      body_ += "    {";
      if (const auto wire = wires_.find(name); wire != wires_.end()) {
        body_ += ".wire = " + name + "_wire";
        if (wire->second.zero_size != 0) {
          body_ += ", .wire_zero = {" + name + "_zero + kZeroPadding, " + std::to_string(wire->second.zero_size) + "}";
        }
        body_ += ", .wire_inlined = " + std::to_string(wire->second.inlined) + "u";
        if (HasJSON(type)) body_ += ", .wire_of_json = " + name + "_wire_of_json";
        body_ += ", ";
      }
      if (const auto table = name_tables_.find(name); table != name_tables_.end()) {
        body_ += ".json = " + name + "_json_table, .name_table = " + name +
                 "_table, .name_multiplier = " + std::to_string(table->second.multiplier) +
                 "u, .name_shift = " + std::to_string(table->second.shift) + ", .written_always = {" +
                 std::to_string(table->second.always[0]) + "u, " + std::to_string(table->second.always[1]) + "u}, ";
      }
      body_ += ".name = " + View(type.name) + ", .package = " + View(package_.name) +
               ", .proto_package = " + View(package_.proto);
      if (!type.fields.empty()) body_ += ", .fields = " + name + "_fields";
      if (HasJSON(type)) body_ += ", .json_fields = " + name + "_json";
      if (std::ranges::any_of(type.fields, [](const FieldDef& field) { return field.number != 0; })) {
        body_ += ", .proto_fields = " + name + "_proto, .proto_positions = " + name + "_positions";
      }
      if (HasJSON(type)) body_ += ", .name_index = " + name + "_names";
      if (type.atomic) body_ += ", .map_topology = MapTopology::kAtomic";
      if (type.is_union)
        body_ += ", .union_discriminator = " + View(type.discriminator) + ", .union_members = " + name + "_members";
      body_ += "},\n";
    }
    body_ += "};\n\n";
  }

  void EmitResources() {
    if (package_.resources.empty()) return;
    const std::string id = Identifier(package_.name);
    std::string out;
    for (const ResourceDef& resource : package_.resources) {
      const std::string name = id + "_r_" + resource.plural;
      std::string subs = "{}";
      if (!resource.subresources.empty()) {
        std::string text;
        for (const SubresourceDef& sub : resource.subresources) {
          text += "    {" + View(sub.name) + ", " + View(sub.kind_group) + ", " + View(sub.kind_version) + ", " +
                  View(sub.kind) + ", " + Strings(name + "_" + Identifier(sub.name) + "_verbs", sub.verbs) + ", " +
                  KindReference(sub) + "},\n";
        }
        body_ += "static constinit const Subresource " + name + "_subs[] = {\n" + text + "};\n";
        subs = name + "_subs";
      }
      std::string columns = "{}";
      if (!resource.columns.empty()) {
        body_ += "static constinit const Column " + name + "_columns[] = {\n";
        for (const ColumnDef& column : resource.columns) {
          body_ += "    {" + View(column.name) + ", " + View(column.type) + ", " + View(column.format) + ", " +
                   std::to_string(column.priority) + "},\n";
        }
        body_ += "};\n";
        columns = name + "_columns";
      }
      const std::string shorts = Strings(name + "_short", resource.short_names);
      const std::string categories = Strings(name + "_categories", resource.categories);
      const std::string verbs = Strings(name + "_verbs", resource.verbs);
      out += "    {.group = " + View(package_.group) + ", .version = " + View(package_.version) +
             ", .plural = " + View(resource.plural) + ", .singular = " + View(resource.singular) +
             ", .kind = " + View(resource.kind) + ", .namespaced = " + (resource.namespaced ? "true" : "false") +
             ",\n     .short_names = " + shorts + ", .categories = " + categories + ", .verbs = " + verbs +
             ", .subresources = " + subs + ", .columns = " + columns + ", .type = &" + id + "_types[" +
             std::to_string(package_.TypeIndex(resource.kind)) + "]},\n";
    }
    body_ += "\nstatic constinit const Resource " + id + "_resources[] = {\n" + out + "};\n\n";
  }

  const Model& model_;
  const PackageDef& package_;
  struct NameTable {
    std::uint64_t multiplier = 0;
    int shift = 0;
    std::uint64_t always[2] = {0, 0};
  };
  std::map<std::string, NameTable> name_tables_;
  struct Wire {
    std::size_t zero_size = 0;
    std::uint64_t inlined = 0;
  };
  std::map<std::string, Wire> wires_;
  std::map<std::string, std::size_t> keys_;
  std::string texts_;
  std::set<std::string> declarations_;
  std::vector<std::string> shapes_;
  std::string body_;
};

// Priorities of group versions and facts of resources (schema/facts.h), for those that have any.
std::string Facts(const Model& model) {
  std::vector<const PackageDef*> versions;
  std::string facts;
  for (const PackageDef& package : model.packages) {
    if (package.serves && package.group_priority > 0) versions.push_back(&package);
    for (const ResourceDef& resource : package.resources) {
      if (resource.facts.empty()) continue;
      facts += "    {.group = " + View(package.group) + ", .version = " + View(package.version) +
               ", .plural = " + View(resource.plural) + ", .kind = " + View(resource.kind);
      for (const FactWord& fact : kFactWords) {
        const auto found = resource.facts.find(std::string(fact.word));
        if (found == resource.facts.end()) continue;
        facts += ", ." + std::string(fact.member) + " = " + (fact.has_value ? View(found->second) : "true");
      }
      facts += "},\n";
    }
  }
  // The core group first, then as discovery has them; groups of one priority by name.
  std::ranges::sort(versions, {}, [](const PackageDef* package) {
    return std::tuple(!package->group.empty(), -package->group_priority, package->group, -package->version_priority);
  });
  std::string rows;
  for (const PackageDef* package : versions) {
    rows += "    {" + View(package->group) + ", " + View(package->version) + ", " +
            std::to_string(package->group_priority) + ", " + std::to_string(package->version_priority) + "},\n";
  }
  return "// Made by tools/kapi: facts of resources and group versions.\n#include \"schema/facts.h\"\n\nnamespace "
         "keelson::schema {\n\nstatic constinit const ResourceFacts kFacts[] = {\n" +
         facts +
         "};\nstd::span<const ResourceFacts> Facts() { return kFacts; }\n\nstatic constinit const "
         "VersionPriority kVersions[] = {\n" +
         rows +
         "};\nstd::span<const VersionPriority> VersionPriorities() { return kVersions; }\n\n}  // namespace "
         "keelson::schema\n";
}

// A header with every type by name, so that code which means one certain type needs no look-up.
std::string TypeNames(const Model& model) {
  std::string tables, names;
  for (const PackageDef& package : model.packages) {
    if (package.types.empty()) continue;
    const std::string id = Identifier(package.name);
    tables += "extern const Struct " + id + "_types[" + std::to_string(package.types.size()) + "];\n";
    names += "namespace " + id + " {\n";
    for (std::size_t i = 0; i < package.types.size(); ++i) {
      names += "inline constexpr const Struct& k" + package.types[i].name + " = tables::" + id + "_types[" +
               std::to_string(i) + "];\n";
    }
    names += "}  // namespace " + id + "\n";
  }
  return "// Made by tools/kapi: the types of the tables by name, schema::types::meta_v1::kStatus.\n#pragma once\n\n"
         "#include \"schema/schema.h\"\n\nnamespace keelson::schema {\nnamespace tables {\n" +
         tables + "}  // namespace tables\n\nnamespace types {\n" + names +
         "}  // namespace types\n}  // namespace keelson::schema\n";
}

}  // namespace

bool Emit(const Model& model, const std::string& directory) {
  std::string declarations, list;
  for (const PackageDef& package : model.packages) {
    const std::string id = Identifier(package.name);
    if (!WriteIfChanged(directory + "/" + id + ".cc", PackageEmitter(model, package).Run())) {
      Report({directory + "/" + id + ".cc", 0}, "cannot be written");
      return false;
    }
    declarations += "extern const Package " + id + "_package;\n";
    list += "    &tables::" + id + "_package,\n";
  }
  if (!WriteIfChanged(directory + "/facts.cc", Facts(model))) {
    Report({directory + "/facts.cc", 0}, "cannot be written");
    return false;
  }
  // In a subfolder: it is included as "schema/types.h".
  const std::string header = directory + "/schema/types.h";
  std::error_code ignored;
  std::filesystem::create_directories(directory + "/schema", ignored);
  if (!WriteIfChanged(header, TypeNames(model))) {
    Report({header, 0}, "cannot be written");
    return false;
  }
  return WriteIfChanged(directory + "/packages.cc",
                        "// Made by tools/kapi: all packages.\n#include \"schema/schema.h\"\n\nnamespace "
                        "keelson::schema {\nnamespace tables {\n" +
                            declarations +
                            "}  // namespace tables\n\nstatic constinit const Package* const kPackages[] = {\n" + list +
                            "};\n\nstd::span<const Package* const> Packages() { return kPackages; }\n\n}  // namespace "
                            "keelson::schema\n");
}

}  // namespace kapi
