// Pods: what happens to them on create, update and through their subresources.
#pragma once

#include <string>

#include "registry/strategy.h"

namespace keelson::registry::core {

void DefaultPod(base::Arena& arena, Value pod);
void DefaultStorageSources(base::Arena& arena, Value holder);  // of volumes and persistent volumes
// serviceAccount and serviceAccountName say the same; again after something changed one of them.
void SyncServiceAccount(base::Arena& arena, Value spec);

void PreparePodForCreate(const Call& call, Value pod, Value old);
void PreparePodForUpdate(const Call& call, Value pod, Value old);
void PreparePodForStatusUpdate(const Call& call, Value pod, Value old);
void PreparePodForEphemeralContainers(const Call& call, Value pod, Value old);
void PreparePodForResize(const Call& call, Value pod, Value old);
// Upstream's CheckGracefulDelete: `asked`, else spec.terminationGracePeriodSeconds; 0 if no container can be running.
std::int64_t PodGracePeriod(Value pod, std::optional<std::int64_t> asked);
void CanonicalizePod(const Call& call, Value pod, Value old);

void ValidatePod(const Call& call, Value pod, Value old, FieldErrors& errors);
void ValidatePodUpdate(const Call& call, Value pod, Value old, FieldErrors& errors);
void ValidatePodStatusUpdate(const Call& call, Value pod, Value old, FieldErrors& errors);
void ValidatePodEphemeralContainersUpdate(const Call& call, Value pod, Value old, FieldErrors& errors);
void ValidatePodResize(const Call& call, Value pod, Value old, FieldErrors& errors);

void WarnPodOnCreate(const Call& call, Value pod, Value old);
void WarnPodOnStatusUpdate(const Call& call, Value pod, Value old);
void PodRow(base::Arena& arena, const base::Clock& clock, Value pod, Value cells);
Value PodRowConditions(base::Arena& arena, Value pod);  // of finished pods

}  // namespace keelson::registry::core
