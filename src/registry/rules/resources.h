// Resource lists outside pods: names and quantities, with the messages of core's container rules.
#pragma once

#include <string_view>

#include "object/field_path.h"
#include "object/quantity.h"
#include "object/value.h"
#include "validation/errors.h"

namespace keelson::registry::rules {

using validation::FieldErrors;

// The quantity a decoded object holds: a text the codec has already parsed once. Zero for anything else.
object::Quantity QuantityOf(const Value& value);
void ValidateNonnegativeQuantity(const Value& quantity, const FieldPath& path, FieldErrors& errors);
// A resource list checked as the limits of a container; errors stand at `path`.limits[<name>].
void ValidateContainerLimits(const Value& limits, const FieldPath& path, FieldErrors& errors);
void ValidateContainerResourceName(std::string_view name, const FieldPath& path, FieldErrors& errors);
bool IsExtendedResourceName(std::string_view name);
bool IsNativeResource(std::string_view name);

}  // namespace keelson::registry::rules
