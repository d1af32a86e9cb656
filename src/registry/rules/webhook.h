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

}  // namespace keelson::registry::rules
