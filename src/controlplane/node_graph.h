// Feeds the Node authorizer's graph from informers: pods (from their stored bytes), persistent volumes, volume
// attachments, resource slices and pod certificate requests. Thread safety: the owner's.
#pragma once

#include <memory>
#include <vector>

#include "auth/node/graph.h"
#include "controlplane/resource_storage.h"
#include "registry/informer.h"

namespace keelson::controlplane {

// Registers with `informers`, which must be stopped before `storage` goes. The graph is empty until they run.
void FollowNodeGraph(const ResourceStorage& storage, registry::SharedInformers& informers,
                     std::shared_ptr<auth::node::Graph> graph);

}  // namespace keelson::controlplane
