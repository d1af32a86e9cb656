// Versions that lie in the store and are served no more: their types, and how they become the version that is.
#pragma once

#include "meta/group_version.h"
#include "schema/schema.h"
#include "storage/schema_codec.h"

namespace keelson::storage {

// The type of a kind as it is stored, served or not; nullptr when there is none.
const schema::Struct* StoredType(const meta::GroupVersionKind& kind);

// Between the served and the stored version of a resource where their shapes (customresourcedefinitions: v1 and
// v1beta1) or their defaults (admissionregistration.k8s.io) differ; empty for all others. The object given stays as it
// is.
Convert StoredConversion(const meta::GroupResource& resource);
// That of customresourcedefinitions.
Outcome<Value, std::string> ConvertDefinition(base::Arena& arena, Value object, std::string_view from,
                                              std::string_view to);

}  // namespace keelson::storage
