// The scale subresource: the replicas of a workload as autoscaling/v1 Scale, read from and written into the workload's
// own object (upstream's ScaleREST of deployments, replicasets, statefulsets and replicationcontrollers).
#pragma once

#include <memory>
#include <span>

#include "registry/store.h"
#include "schema/schema.h"

namespace keelson::registry::autoscaling {

// The form of a workload's pod selector.
enum class SelectorForm : std::uint8_t {
  kLabelSelector,  // metav1.LabelSelector
  kMap,            // labels and values (replicationcontrollers)
};

// `type` is that of autoscaling/v1 Scale.
std::shared_ptr<const REST> NewScaleREST(std::shared_ptr<const Store> workloads, SelectorForm form,
                                         const schema::Struct& type);

// The columns of a Scale's Table, without the descriptions of Name and Age.
std::span<const schema::Column> ScaleColumns();

}  // namespace keelson::registry::autoscaling
