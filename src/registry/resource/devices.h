// Shared rules of claims, classes and slices: names, selectors, configuration, taints, and the names of Go's types in
// messages.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "registry/hub_types.h"
#include "registry/strategy.h"

namespace keelson::registry::devices {

constexpr std::int64_t kRequestsMax = 32;
constexpr std::int64_t kConstraintsMax = 32;
constexpr std::int64_t kConfigMax = 32;
constexpr std::int64_t kSelectorsMax = 32;
constexpr std::int64_t kOpaqueParametersBytesMax = 10 * 1024;

using ValidateItem = std::function<void(const Value& item, const FieldPath& path, FieldErrors& errors)>;
using ItemKey = std::function<std::string(const Value& item)>;

const HubTypes& Types();

// Too many items are reported and not validated. `max` < 0: no limit.
void ValidateSlice(const Value& list, std::int64_t max, const ValidateItem& validate, const FieldPath& path,
                   FieldErrors& errors);
// The same, then duplicates by key.
void ValidateSet(const Value& list, std::int64_t max, const ValidateItem& validate, const ItemKey& key,
                 const FieldPath& path, FieldErrors& errors);
std::string TextKey(const Value& item);
std::string NameKey(const Value& item);

void ValidateDNSLabel(std::string_view text, const FieldPath& path, FieldErrors& errors);
void ValidatePoolName(std::string_view name, const FieldPath& path, FieldErrors& errors);
void ValidateUID(std::string_view uid, const FieldPath& path, FieldErrors& errors);
void ValidateQualifiedAttribute(std::string_view name, const FieldPath& path,
                                FieldErrors& errors);  // [domain/]identifier
void ValidateFullyQualifiedAttribute(std::string_view name, const FieldPath& path,
                                     FieldErrors& errors);  // domain/identifier
// How CEL selectors are compiled: selectors that are stored already may use libraries that are new in this version.
struct SelectorOptions {
  bool stored = false;
  bool list_type_attributes = false;  // DRAListTypeAttributes; DRAConsumableCapacity is always on
};
SelectorOptions SelectorOptionsOf(const Call& call);
void ValidateSelectors(const Value& selectors, const SelectorOptions& options, const FieldPath& path,
                       FieldErrors& errors);
void ValidateConfiguration(const Value& config, const FieldPath& path,
                           FieldErrors& errors);  // of a class, claim or allocation
void ValidateRaw(const Value& raw, std::int64_t bytes_max, const FieldPath& path, FieldErrors& errors);
void ValidateTaint(const Value& taint, const FieldPath& path, FieldErrors& errors);
void ValidateToleration(const Value& toleration, const FieldPath& path, FieldErrors& errors);
void ValidateBindingConditions(const Value& owner, const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::devices
