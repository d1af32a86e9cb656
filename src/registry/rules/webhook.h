// How the server reaches a webhook: a URL, or a service in the cluster.
#pragma once

#include "object/field_path.h"
#include "object/value.h"
#include "validation/errors.h"

namespace keelson::registry::rules {

using validation::FieldErrors;

void ValidateWebhookURL(std::string_view url, const FieldPath& path, FieldErrors& errors);
void ValidateWebhookService(const Value& service, const FieldPath& path, FieldErrors& errors);
// Exactly one of url and service, and that one.
void ValidateWebhookClientConfig(const Value& config, const FieldPath& path, FieldErrors& errors);

// Versions of the reviews that the server can send.
bool IsAcceptedReviewVersion(std::string_view version);
// The versions that a webhook understands: some, none of them twice and, where that is required, one that the server
// can send. `missing` is the detail where there are none.
void ValidateReviewVersions(const Value& versions, std::string_view missing, bool require_recognized,
                            const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::rules
