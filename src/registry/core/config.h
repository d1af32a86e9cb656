// ConfigMap, Secret, ServiceAccount and Namespace.
#pragma once

#include "registry/strategy.h"

namespace keelson::registry::core {

void ValidateConfigMap(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateConfigMapUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ConfigMapRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void DefaultSecret(base::Arena& arena, Value object);
void PrepareSecretForUpdate(const Call& call, Value object, Value old);
void ValidateSecret(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateSecretUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnSecret(const Call& call, Value object, Value old);
void SecretRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void PrepareServiceAccount(const Call& call, Value object, Value old);
void ValidateServiceAccountUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnServiceAccount(const Call& call, Value object, Value old);
void ServiceAccountRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void DefaultNamespace(base::Arena& arena, Value object);
void PrepareNamespaceForCreate(const Call& call, Value object, Value old);
void PrepareNamespaceForUpdate(const Call& call, Value object, Value old);
void PrepareNamespaceForFinalize(const Call& call, Value object, Value old);
void CanonicalizeNamespace(const Call& call, Value object, Value old);
void ValidateNamespace(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateNamespaceUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateNamespaceStatusUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateNamespaceFinalizeUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void NamespaceRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

}  // namespace keelson::registry::core
