// Deployment, ReplicaSet, StatefulSet, DaemonSet and ControllerRevision.
#pragma once

#include "registry/strategy.h"

namespace keelson::registry::apps {

void DefaultDeployment(base::Arena& arena, Value object);
void PrepareDeployment(const Call& call, Value object, Value old);
void PrepareDeploymentStatus(const Call& call, Value object, Value old);
void ValidateDeployment(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateDeploymentUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateDeploymentStatusUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void DeploymentRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void DefaultReplicaSet(base::Arena& arena, Value object);
void ValidateReplicaSet(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateReplicaSetUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateReplicaSetStatusUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ReplicaSetRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void DefaultStatefulSet(base::Arena& arena, Value object);
void PrepareStatefulSet(const Call& call, Value object, Value old);
void ValidateStatefulSet(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateStatefulSetUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateStatefulSetStatusUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnStatefulSet(const Call& call, Value object, Value old);
void StatefulSetRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void DefaultDaemonSet(base::Arena& arena, Value object);
void PrepareDaemonSet(const Call& call, Value object, Value old);
void PrepareDaemonSetStatus(const Call& call, Value object, Value old);
void ValidateDaemonSet(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateDaemonSetUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateDaemonSetStatusUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnDaemonSet(const Call& call, Value object, Value old);  // also on updates that change the template
void DaemonSetRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void ValidateControllerRevision(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateControllerRevisionUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ControllerRevisionRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

// Templates of all of them: gates, warnings.
void PrepareTemplate(const Call& call, Value object, Value old);
void WarnTemplate(const Call& call, Value object, Value old);  // on create, and on updates that change the generation
void WarnTemplateAndName(const Call& call, Value object, Value old);  // on create

}  // namespace keelson::registry::apps
