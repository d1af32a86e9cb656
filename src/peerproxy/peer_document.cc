#include "peerproxy/peer_document.h"

#include <algorithm>

#include "codec/json.h"
#include "schema/types.h"

namespace keelson::peerproxy {

const schema::Struct& DiscoveryListType() { return schema::types::apidiscovery_v2::kAPIGroupDiscoveryList; }

Outcome<void, std::string> PeerDocument::Add(std::string_view json) {
  const auto meta = codec::FindTypeMeta(arena_, json);
  if (!meta.ok()) return "error decoding discovery response: " + meta.error().message;
  if (meta->kind != "APIGroupDiscoveryList" || meta->api_version != "apidiscovery.k8s.io/v2") {
    return "error decoding discovery response: no kind \"" + std::string(meta->kind) +
           "\" is registered for version \"" + std::string(meta->api_version) + "\"";
  }
  const auto decoded = codec::DecodeJSON(arena_, json, DiscoveryListType());
  if (!decoded.ok()) return "error decoding discovery response: " + decoded.error().message;
  for (const Value& group : decoded->value["items"].items()) {
    const std::string name(group.Get("metadata", "name").as_string());
    for (const Value& version : group["versions"].items()) {
      for (const Value& resource : version["resources"].items()) {
        resources_.push_back(
            {name, std::string(version["version"].as_string()), std::string(resource["resource"].as_string())});
      }
    }
    const bool seen = std::ranges::any_of(
        groups_.items(), [&](const Value& other) { return other.Get("metadata", "name").as_string() == name; });
    if (!name.empty() && !seen) groups_.Append(arena_, group);
  }
  return {};
}

}  // namespace keelson::peerproxy
