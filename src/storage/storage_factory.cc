#include "storage/storage_factory.h"

#include "schema/facts.h"

namespace keelson::storage {
namespace {

void Apply(const schema::ResourceFacts& facts, ResourceLayout& layout) {
  if (!facts.prefix.empty()) layout.resource_prefix = "/" + std::string(facts.prefix);
  if (!facts.trigger.empty()) layout.trigger_field = facts.trigger;
  if (!facts.stored.empty()) {
    const std::size_t slash = facts.stored.find('/');
    if (slash != std::string_view::npos) layout.storage_version.group = facts.stored.substr(0, slash);
    layout.storage_version.version = facts.stored.substr(slash == std::string_view::npos ? 0 : slash + 1);
  }
  layout.json = layout.json || facts.json;
  layout.defaults_on_read = layout.defaults_on_read || facts.defaults_on_read;
  layout.watch_cache = layout.watch_cache && !facts.uncached;
}

}  // namespace

ResourceLayout LayoutOf(const meta::GroupResource& resource) {
  ResourceLayout layout{.resource_prefix = "/" + resource.resource, .storage_version = {resource.group, "v1"}};
  for (const schema::ResourceFacts& facts : schema::Facts()) {
    if (facts.group == resource.group && facts.plural == resource.resource) Apply(facts, layout);
  }
  return layout;
}

ResourceLayout CustomResourceLayout(const meta::GroupResource& resource, std::string_view storage_version) {
  return {.resource_prefix = "/" + resource.group + "/" + resource.resource,
          .storage_version = {resource.group, std::string(storage_version)},
          .json = true};
}

}  // namespace keelson::storage
