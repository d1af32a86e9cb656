// Persistent volume claims, and claim templates of pods and stateful sets.
#pragma once

#include "registry/fields.h"
#include "registry/strategy.h"

namespace keelson::registry::core {

struct ClaimOptions {
  bool allow_invalid_label_value_in_selector = false;
  bool allow_invalid_api_group = false;
};

void ValidateClaimSpec(Value spec, const ClaimOptions& options, const FieldPath& path, FieldErrors& errors);
void ValidateClaimTemplate(Value claim_template, const FieldPath& path, FieldErrors& errors);
void WarnClaimSpec(const Call& call, Value spec, const FieldPath& path);

void DefaultClaim(base::Arena& arena, Value claim);
void PrepareClaimForCreate(const Call& call, Value claim, Value old);
void PrepareClaimForUpdate(const Call& call, Value claim, Value old);
void ValidateClaim(const Call& call, Value claim, Value old, FieldErrors& errors);
void ValidateClaimUpdate(const Call& call, Value claim, Value old, FieldErrors& errors);
void ValidateClaimStatusUpdate(const Call& call, Value claim, Value old, FieldErrors& errors);
void WarnClaim(const Call& call, Value claim, Value old);
void ClaimRow(base::Arena& arena, const base::Clock& clock, Value claim, Value cells);

// Of access modes: "RWO,ROX".
std::string AccessModesText(Value modes);
void CheckAccessModes(Value modes, const FieldPath& path, FieldErrors& errors);
inline constexpr std::string_view kVolumeModes[] = {"Block", "Filesystem"};
inline constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";

}  // namespace keelson::registry::core
