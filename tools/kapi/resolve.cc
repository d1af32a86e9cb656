#include <algorithm>
#include <set>

#include "model.h"

namespace kapi {
namespace {

class Resolver {
 public:
  explicit Resolver(Model& model) : model_(model) {}

  bool Run() {
    std::ranges::sort(model_.packages, {}, &PackageDef::name);
    for (std::size_t i = 1; i < model_.packages.size(); ++i) {
      if (model_.packages[i].name == model_.packages[i - 1].name) {
        Fail({model_.packages[i].file, 1},
             "package " + model_.packages[i].name + " is also in " + model_.packages[i - 1].file);
      }
    }
    for (PackageDef& package : model_.packages) std::ranges::sort(package.types, {}, &TypeDef::name);
    for (PackageDef& package : model_.packages) {
      for (TypeDef& type : package.types) ResolveType(package, type);
      for (const ResourceDef& resource : package.resources) {
        if (package.TypeIndex(resource.kind) < 0)
          Fail(resource.place, "no type " + resource.kind + " in " + package.name);
      }
    }
    for (const PackageDef& package : model_.packages) {
      for (const TypeDef& type : package.types) {
        CheckNames(type);
        CheckNesting(type, 0);
      }
    }
    return ok_;
  }

 private:
  void Fail(const Place& place, const std::string& text) {
    ok_ = false;
    Report(place, text);
  }

  void ResolveType(const PackageDef& package, TypeDef& type) {
    std::set<std::uint32_t> numbers;
    if (const auto& types = package.types; package.TypeIndex(type.name) != &type - types.data()) {
      Fail(type.place, "type " + type.name + " is there twice");
    }
    for (FieldDef& field : type.fields) {
      ResolveRef(package, field.type, field.place);
      if (field.number > kNumberMax || field.name.size() > kNameMax) {
        Fail(field.place, "a field's number is at most " + std::to_string(kNumberMax) + ", its name at most " +
                              std::to_string(kNameMax) + " bytes long");
      }
      if (field.number != 0 && !numbers.insert(field.number).second) {
        Fail(field.place, "protobuf field number " + std::to_string(field.number) + " is used twice in " + type.name);
      }
      if (type.alternatives() != (field.name.empty() && !field.inlined)) {
        Fail(field.place, "either all fields of a type have JSON names or none has");
      }
    }
  }

  void ResolveRef(const PackageDef& from, TypeRef& type, const Place& place) {
    for (TypeRef& element : type.element) ResolveRef(from, element, place);
    if (type.shape != TypeRef::Shape::kNamed) return;
    const PackageDef* package = type.package.empty() ? &from : Qualified(type.package);
    if (package == nullptr) return Fail(place, "unknown package `" + type.package + "`");
    if (package->TypeIndex(type.name) < 0) return Fail(place, "no type " + type.name + " in " + package->name);
    type.package = package->name;
  }

  // meta is meta/v1; a longer name is taken as it stands; one that is the beginning of a single package's name means
  // that one.
  const PackageDef* Qualified(const std::string& name) const {
    if (const PackageDef* exact = model_.Find(name)) return exact;
    if (const PackageDef* v1 = model_.Find(name + "/v1")) return v1;
    const PackageDef* only = nullptr;
    for (const PackageDef& package : model_.packages) {
      if (!package.name.starts_with(name + "/")) continue;
      if (only != nullptr) return nullptr;
      only = &package;
    }
    return only;
  }

  // Every JSON name of a type, those of inlined structs included, once.
  void CheckNames(const TypeDef& type) {
    std::set<std::string> names;
    AddNames(type, type, names, 0);
    if (names.size() > kJSONMax || WireOrder(type).size() > kWireMax) {
      Fail(type.place, "type " + type.name + " has more than " + std::to_string(kJSONMax) + " JSON or " +
                           std::to_string(kWireMax) + " protobuf fields");
    }
  }

  void AddNames(const TypeDef& top, const TypeDef& type, std::set<std::string>& names, int depth) {
    if (depth > 8) return Fail(type.place, "inlined structs are nested too deeply");
    for (const FieldDef& field : type.fields) {
      if (field.inlined) {
        const PackageDef* package = model_.Find(field.type.package);
        if (package == nullptr) continue;
        const int index = package->TypeIndex(field.type.name);
        if (index >= 0) AddNames(top, package->types[index], names, depth + 1);
      } else if (!field.name.empty() && !names.insert(field.name).second) {
        Fail(field.place, "JSON name `" + field.name + "` is there twice in " + top.name);
      }
    }
  }

  // Go's compiler refuses a struct that contains itself; so do we.
  bool CheckNesting(const TypeDef& type, int depth) {
    if (depth > kNestingMax) {
      Fail(type.place, "type " + type.name + " contains itself");
      return false;
    }
    return std::ranges::all_of(type.fields, [&](const FieldDef& field) {
      if (field.pointer || field.type.shape != TypeRef::Shape::kNamed) return true;
      const PackageDef* package = model_.Find(field.type.package);
      const int index = package == nullptr ? -1 : package->TypeIndex(field.type.name);
      return index < 0 || CheckNesting(package->types[index], depth + 1);
    });
  }

  static constexpr int kNestingMax = 32;
  static constexpr std::uint32_t kNumberMax = 0xffff;
  static constexpr std::size_t kWireMax = 64;   // schema::Struct::wire_inlined has a bit for each
  static constexpr std::size_t kJSONMax = 128;  // schema::Struct::written_always has a bit for each
  static constexpr std::size_t kNameMax = 255;

  Model& model_;
  bool ok_ = true;
};

}  // namespace

int PackageDef::TypeIndex(std::string_view type) const {
  const auto found = std::ranges::lower_bound(types, type, {}, &TypeDef::name);
  return found != types.end() && found->name == type ? static_cast<int>(found - types.begin()) : -1;
}

const PackageDef* Model::Find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(packages, name, {}, &PackageDef::name);
  return found != packages.end() && found->name == name ? &*found : nullptr;
}

bool Resolve(Model& model) { return Resolver(model).Run(); }

}  // namespace kapi
