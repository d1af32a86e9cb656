// Kinds that are served in several versions: which version is the hub, how the others are converted, and the order of
// groups and versions.
#pragma once

#include <string_view>
#include <vector>

#include "endpoints/scope.h"
#include "schema/schema.h"

namespace keelson::controlplane {

// The table of the version that strategies and storage use for the resource (itself where there is one version).
const schema::Resource* HubResource(const schema::Resource& resource);

// Built-in groups, most important first ("" is core), and a group's versions, preferred first.
std::vector<std::string_view> GroupsByPriority();
std::vector<const schema::Package*> VersionsByPriority(std::string_view group);

}  // namespace keelson::controlplane
