// One served resource in one version: everything the handlers need. Made once at start (or when a CRD
// is established), immutable then, shared by all requests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "endpoints/exchange.h"
#include "endpoints/kind_codec.h"
#include "endpoints/negotiation.h"
#include "meta/group_version.h"
#include "meta/status.h"
#include "object/value.h"
#include "registry/catalog/conversion.h"
#include "registry/resource_definition.h"
#include "registry/rest.h"
#include "schema/schema.h"

namespace keelson::auth {
class Authorizer;  // auth/authorizer.h
}
namespace keelson::patch {
class FieldManager;  // patch/field_manager.h
}
namespace keelson::endpoints {

class VersionConverter;  // endpoints/version_converter.h

struct Scope;

// The scopes that serve the same objects in different groups and versions, in the order they were installed. Filled
// before serving, immutable then.
class EquivalentScopes {
 public:
  void Add(const std::shared_ptr<const Scope>& scope) { scopes_.push_back(scope); }
  std::vector<std::shared_ptr<const Scope>> Scopes() const {
    std::vector<std::shared_ptr<const Scope>> scopes;
    for (const auto& weak : scopes_) {
      if (auto scope = weak.lock()) scopes.push_back(std::move(scope));
    }
    return scopes;
  }

 private:
  std::vector<std::weak_ptr<const Scope>> scopes_;  // each of them refers to this
};

struct Scope {
  registry::ResourceDefinitionPtr definition;  // of the resource; also where the scope is a subresource of another kind
  KindCodecPtr codec = TableCodec();
  meta::GroupVersionKind kind;
  meta::GroupVersionKind list_kind;
  meta::GroupVersionResource resource;
  std::string subresource;  // "" for the resource itself
  bool namespaced = true;
  const schema::Struct* type = nullptr;  // of the served version
  std::vector<schema::Column> columns;   // of the Table form
  // How the verbs are served. Null for resources whose only verb is a POST that answers (reviews) or a connect.
  std::shared_ptr<const registry::REST> rest;
  registry::Endpoint endpoint;  // which part an update through this scope is for
  const registry::Conversion* conversion =
      nullptr;                  // between the served version and the hub; null: they have the same shape
  std::string hub_api_version;  // of the objects that strategies and storage see
  std::string go_package;       // of the hub type, as upstream's messages have it
  bool any_version = false;     // bodies in other versions of the kind are taken too (Eviction)
  bool own_kind = false;        // a subresource whose kind is not the stored one: no defaults of the stored kind
  void (*own_defaults)(base::Arena& arena, Value object) = nullptr;  // of a subresource's own kind
  EndpointRestrictions restrictions;
  bool compress = true;                                      // large responses are gzipped if the client accepts it
  std::shared_ptr<const admission::Chain> admission;         // may be null: nothing to admit
  std::shared_ptr<const EquivalentScopes> equivalents;       // null: served in this version only
  std::shared_ptr<const patch::FieldManager> field_manager;  // null: writes are not tracked (kinds without ObjectMeta)

  // Of a custom resource. Null: its versions differ by name only.
  std::shared_ptr<const VersionConverter> version_converter;

  // Checked for the verb `create` when PUT or apply creates an object. Null: such requests fail.
  std::shared_ptr<auth::Authorizer> authorizer;
  std::string deprecation_warning;  // said with every answer; "" for versions that are not deprecated
  int delete_collection_workers = 1;
  bool sharding = false;   // the gate ShardedListAndWatch: shardSelector is honoured, not ignored
  bool watch_list = true;  // the gate WatchList: a watch may begin with the present state and say when that is over
  // Authorizes deletion of objects that cannot be read. Null: the gate AllowUnsafeMalformedObjectDeletion is off.
  std::shared_ptr<auth::Authorizer> unsafe_delete_authorizer;
  bool unsafe_delete = true;  // false: the kind has no way to do that (upstream's namespaces and RBAC kinds)
  std::chrono::seconds watch_timeout_min{1800};
  std::string api_version() const { return kind.group_version().ToString(); }
};

using ScopePtr = std::shared_ptr<const Scope>;

Awaitable<http::Response> GetResource(ScopePtr scope, ExchangePtr exchange);
Awaitable<http::Response> ListResource(ScopePtr scope, ExchangePtr exchange, bool force_watch);
Awaitable<http::Response> CreateResource(ScopePtr scope, ExchangePtr exchange);
Awaitable<http::Response> UpdateResource(ScopePtr scope, ExchangePtr exchange);
Awaitable<http::Response> PatchResource(ScopePtr scope, ExchangePtr exchange);
Awaitable<http::Response> DeleteResource(ScopePtr scope, ExchangePtr exchange);
Awaitable<http::Response> DeleteCollection(ScopePtr scope, ExchangePtr exchange);

}  // namespace keelson::endpoints
