// autoscaling/v1 has one CPU target; the other fields of v2 are kept in v1 as annotations, in JSON:
//   autoscaling.alpha.kubernetes.io/metrics          the other metrics, in the shape of the old v2beta1
//   autoscaling.alpha.kubernetes.io/current-metrics  all statuses, likewise
//   autoscaling.alpha.kubernetes.io/behavior         the behaviour, with Go's field names of the internal type
//   autoscaling.alpha.kubernetes.io/conditions       the conditions
// Conversion to v1 writes them and conversion back removes them; unparsable ones are ignored, as upstream does.
#pragma once

#include "base/arena.h"
#include "object/value.h"

namespace keelson::registry {

// The default metric of an autoscaler without metrics: CPU utilization.
inline constexpr std::int64_t kDefaultCPUUtilization = 80;
Value CPUMetric(base::Arena& arena, const Value& utilization);  // v2's form

// Drops the annotations above from an object of v2, which needs none: a client's own are lost, as upstream.
void DropRoundTripAnnotations(Value metadata);

Value HorizontalPodAutoscalerToHub(base::Arena& arena, const Value& object);    // autoscaling/v1 to v2
Value HorizontalPodAutoscalerFromHub(base::Arena& arena, const Value& object);  // and back

}  // namespace keelson::registry
