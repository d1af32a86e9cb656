#include "schema/schema.h"

#include <algorithm>

namespace keelson::schema {
namespace {

// Kinds of meta/v1 in every served group version, as metav1.AddToGroupVersion registers them.
constexpr std::string_view kEverywhere[] = {"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions",
                                            "PatchOptions",  "UpdateOptions", "WatchEvent"};
// Kinds of meta/v1 that are "unversioned": found under v1 whatever the group of the request.
constexpr std::string_view kUnversioned[] = {"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"};

const Struct* FindIn(const Package& package, std::string_view name) {
  const auto found = std::ranges::lower_bound(package.types, name, {}, &Struct::name);
  return found != package.types.end() && found->name == name ? &*found : nullptr;
}

const Package* FindPackageByName(std::string_view name) {
  const auto packages = Packages();
  const auto found = std::ranges::lower_bound(packages, name, {}, [](const Package* package) { return package->name; });
  return found != packages.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace

std::uint16_t Struct::FindPosition(std::string_view json_name) const {
  if (!name_table.empty()) {
    const std::uint8_t at = name_table[(HashName(json_name.data(), json_name.size()) * name_multiplier) >> name_shift];
    return at != 0xff && std::string_view(json[at].quoted + 1, json[at].name_size) == json_name ? at : kNoPosition;
  }
  std::size_t low = 0, high = name_index.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const int order = json_fields[name_index[middle]]->name.compare(json_name);
    if (order == 0) return name_index[middle];
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return kNoPosition;
}

const Field* Struct::FindField(std::string_view json_name) const {
  const std::uint16_t position = FindPosition(json_name);
  return position == kNoPosition ? nullptr : json_fields[position];
}

std::uint16_t Struct::SearchProtoPosition(std::uint32_t number) const {
  const auto found =
      std::ranges::lower_bound(proto_fields, number, {}, [](const Field* field) { return field->number; });
  if (found == proto_fields.end() || (*found)->number != number) return kNoPosition;
  return static_cast<std::uint16_t>(found - proto_fields.begin());
}

const Package* FindPackage(std::string_view group, std::string_view version) {
  for (const Package* package : Packages()) {
    if (package->serves && package->group == group && package->version == version) return package;
  }
  return nullptr;
}

const Struct* FindType(std::string_view package, std::string_view name) {
  const Package* found = FindPackageByName(package);
  return found == nullptr ? nullptr : FindIn(*found, name);
}

const Struct* FindKind(std::string_view group, std::string_view version, std::string_view kind) {
  const Package* package = FindPackage(group, version);
  if (package != nullptr) {
    if (const Struct* type = FindIn(*package, kind)) {
      // Only what carries apiVersion and kind is a kind.
      return type->FindPosition("apiVersion") != Struct::kNoPosition &&
                     type->FindPosition("kind") != Struct::kNoPosition
                 ? type
                 : nullptr;
    }
    if (std::ranges::find(kEverywhere, kind) != std::end(kEverywhere)) return FindType("meta/v1", kind);
  }
  if (std::ranges::find(kUnversioned, kind) != std::end(kUnversioned)) return FindType("meta/v1", kind);
  if (group == "meta.k8s.io" && (version == "v1" || version == "v1beta1")) return FindType("meta/v1", kind);
  return nullptr;
}

const Resource* FindResource(std::string_view group, std::string_view version, std::string_view plural) {
  const Package* package = FindPackage(group, version);
  if (package == nullptr) return nullptr;
  const auto found = std::ranges::find(package->resources, plural, &Resource::plural);
  return found == package->resources.end() ? nullptr : &*found;
}

}  // namespace keelson::schema
