// The resources and subresources that are more than reading and writing a stored object: reviews, scale, bindings,
// evictions.
#pragma once

#include "controlplane/server_chain.h"
#include "endpoints/api_group_version.h"
#include "schema/schema.h"

namespace keelson::controlplane {

std::shared_ptr<endpoints::Scope> NewScope(const ChainConfig& config, const schema::Resource& resource,
                                           std::shared_ptr<registry::Store> store, std::string_view subresource = "");
// A scope with the kind of the subresource.
std::shared_ptr<endpoints::Scope> NewSubresourceScope(const ChainConfig& config, const schema::Resource& resource,
                                                      const schema::Subresource& subresource,
                                                      std::shared_ptr<registry::Store> store);

// managedFields of a subresource's own kind.
void TrackSubresource(endpoints::Scope& scope);

// Resources that are answered and not stored. False when `resource` is none of them.
bool InstallReview(const ChainConfig& config, const schema::Resource& resource, endpoints::APIGroupVersion& version);
// deployments/scale and its kin.
bool InstallScale(const ChainConfig& config, const schema::Resource& resource, const schema::Subresource& subresource,
                  std::shared_ptr<registry::Store> store, endpoints::APIGroupVersion& version);
// pods/binding, bindings, pods/eviction.
bool InstallPodSubresource(const ChainConfig& config, const schema::Resource& resource,
                           const schema::Subresource& subresource, std::shared_ptr<registry::Store> store,
                           endpoints::APIGroupVersion& version);
bool InstallEviction(const ChainConfig& config, const schema::Resource& resource,
                     const schema::Subresource& subresource, std::shared_ptr<registry::Store> store,
                     endpoints::APIGroupVersion& version);
// The answer of bindings and evictions.
Value SuccessStatus(base::Arena& arena, std::int32_t code);
// serviceaccounts/token.
bool InstallTokenRequest(const ChainConfig& config, const schema::Resource& resource,
                         const schema::Subresource& subresource, std::shared_ptr<registry::Store> store,
                         endpoints::APIGroupVersion& version);
// componentstatuses, which are computed and not stored.
bool InstallComponentStatuses(const ChainConfig& config, const schema::Resource& resource,
                              endpoints::APIGroupVersion& version);
// pods/log, exec, attach, portforward; proxies to pods, nodes and services.
bool InstallConnect(const ChainConfig& config, const schema::Resource& resource, const schema::Subresource& subresource,
                    std::shared_ptr<registry::Store> store, endpoints::APIGroupVersion& version);
bool InstallBindings(const ChainConfig& config, const schema::Resource& resource, endpoints::APIGroupVersion& version);

}  // namespace keelson::controlplane
