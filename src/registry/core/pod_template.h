// The kind PodTemplate.
#pragma once

#include <initializer_list>

#include "registry/fields.h"
#include "registry/strategy.h"

namespace keelson::registry::core {

void DefaultPodTemplateObject(base::Arena& arena, Value object);
void PreparePodTemplate(const Call& call, Value object, Value old);
void ValidatePodTemplate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidatePodTemplateUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnPodTemplate(const Call& call, Value object, Value old);
void PodTemplateRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

// Shared rules of the workload kinds.
// Reports "`selector` does not match template `labels`" at path.metadata.labels unless `matches`.
void CheckTemplateLabels(Value pod_template, bool matches, const FieldPath& path, FieldErrors& errors);
// Pods of this kind run for ever: restartPolicy Always, no deadline. `kind` is the word of the message.
void CheckRunsForever(Value pod_template, std::string_view kind, const FieldPath& path, FieldErrors& errors);
// A selector of a workload: there, valid, not empty ("empty selector is invalid for <kind>").
void CheckWorkloadSelector(Value selector, std::string_view kind, const FieldPath& path, FieldErrors& errors);
// "field is immutable" with the selector as the value.
void CheckSelectorUnchanged(Value now, Value old, FieldErrors& errors);
// Counts in a status: not negative, not more than another count, not less than before.
void CheckStatusCounts(Value status, std::initializer_list<std::string_view> keys, const FieldPath& path,
                       FieldErrors& errors);
void CheckNotMoreThan(Value status, std::initializer_list<std::string_view> keys, std::string_view total,
                      std::string_view message, const FieldPath& path, FieldErrors& errors);
void CheckNotDecremented(Value now, Value old, std::string_view key, const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::core
