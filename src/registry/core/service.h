// Services: validation, and the pure part of the allocation before it.
#pragma once

#include <span>
#include <string_view>

#include "registry/fields.h"
#include "registry/strategy.h"
#include "validation/net.h"

namespace keelson::registry::core {

void DefaultService(base::Arena& arena, Value service);
void CanonicalizeService(const Call& call, Value service, Value old);
void PrepareServiceForUpdate(const Call& call, Value service, Value old);
void ValidateService(const Call& call, Value service, Value old, FieldErrors& errors);
void ValidateServiceUpdate(const Call& call, Value service, Value old, FieldErrors& errors);
void ValidateServiceStatusUpdate(const Call& call, Value service, Value old, FieldErrors& errors);
void WarnService(const Call& call, Value service, Value old);
void WarnServiceOnStatusUpdate(const Call& call, Value service, Value old);
void ServiceRow(base::Arena& arena, const base::Clock& clock, Value service, Value cells);

bool IsHeadless(Value service);
bool NeedsClusterIP(Value service);            // not ExternalName
bool NeedsNodePort(Value service);             // NodePort, LoadBalancer
bool NeedsHealthCheckNodePort(Value service);  // LoadBalancer with local traffic
bool IsExternallyAccessible(Value service);
// Does this port get a node port where it names none?
bool AllocatesNodePorts(Value service);

// Before allocation. `old` is null on create (and on read).
// clusterIP and clusterIPs agree, whichever of them the client changed.
void NormalizeClusterIPs(base::Arena& arena, Value service, Value old);
// Values that the client left empty stay what was allocated: addresses, node ports by port name, the health check port.
void PatchAllocatedValues(base::Arena& arena, Value service, Value old);
// ipFamilyPolicy and ipFamilies filled in. `configured`: the cluster's families, the default one first. Errors end the
// request.
void InitIPFamilyFields(base::Arena& arena, Value service, Value old, std::span<const std::string_view> configured,
                        validation::AddressRules rules, FieldErrors& errors);
// The rules on clusterIP(s), ipFamilies and ipFamilyPolicy alone.
void ValidateClusterIPFields(Value service, Value old, validation::AddressRules rules, FieldErrors& errors);

}  // namespace keelson::registry::core
