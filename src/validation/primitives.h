// Validators of single values, with apimachinery's messages. A check returns the messages of what is wrong; none means
// valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "object/field_path.h"
#include "object/value.h"
#include "validation/errors.h"

namespace keelson::validation {

using Messages = std::vector<std::string>;

Messages IsDNS1123Label(std::string_view text);
Messages IsDNS1123Subdomain(std::string_view text);
Messages IsDNS1123SubdomainWithUnderscore(std::string_view text);
Messages IsDNS1035Label(std::string_view text);
Messages IsWildcardDNS1123Subdomain(std::string_view text);
Messages IsQualifiedName(std::string_view text);
Messages IsValidLabelValue(std::string_view text);
Messages IsValidPortNum(std::int64_t port);
Messages IsInRange(std::int64_t value, std::int64_t min, std::int64_t max);
Messages IsValidPortName(std::string_view text);
Messages IsValidUserID(std::int64_t id);
Messages IsValidPercent(std::string_view text);
Messages IsHTTPHeaderName(std::string_view text);
Messages IsEnvVarName(std::string_view text);  // relaxed rule, in force since 1.36
Messages IsConfigMapKey(std::string_view text);
Messages IsValidPathSegmentName(std::string_view text);
Messages IsCIdentifier(std::string_view text);
Messages IsValidIP(std::string_view text);  // strict: canonical form too
bool IsIPv4(std::string_view text);
bool IsIPv6(std::string_view text);
// Checks that append field errors.
void ValidateLabels(const Value& labels, const FieldPath& path, FieldErrors& errors);
void ValidateLabelName(std::string_view name, const FieldPath& path, FieldErrors& errors);
void ValidateAnnotations(const Value& annotations, const FieldPath& path, FieldErrors& errors);
void ValidateLabelSelector(const Value& selector, const FieldPath& path, FieldErrors& errors,
                           bool allow_invalid_values = false);
void ValidateFullyQualifiedDomainName(std::string_view text, const FieldPath& path,
                                      FieldErrors& errors);  // two segments or more
void ValidateFullyQualifiedName(std::string_view text, const FieldPath& path,
                                FieldErrors& errors);  // three segments or more
void ValidateDomainPrefixedPath(std::string_view text, const FieldPath& path, FieldErrors& errors);  // acme.io/foo/bar
void ValidateDomainPrefixedKey(std::string_view text, const FieldPath& path, FieldErrors& errors);   // acme.io/foo
void ValidateNonnegative(std::int64_t value, const FieldPath& path, FieldErrors& errors);
void ValidatePositive(std::int64_t value, const FieldPath& path, FieldErrors& errors);
// Equal as equality.Semantic has it for typed objects: an absent, null or empty list or map is the same nothing.
bool SemanticEqual(const Value& a, const Value& b);
void ValidateImmutableField(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors);
void ValidateConditions(const Value& conditions, const FieldPath& path, FieldErrors& errors);
// Address fields of older kinds: lenient first, then strict; a value in `old_values` is accepted (ratcheting).
void ValidateIPForLegacyField(std::string_view text, const FieldPath& path,
                              const std::vector<std::string_view>& old_values, FieldErrors& errors);
void ValidateCIDRForLegacyField(std::string_view text, const FieldPath& path,
                                const std::vector<std::string_view>& old_values, FieldErrors& errors);
void ValidateIP(std::string_view text, const FieldPath& path, FieldErrors& errors);    // strict, canonical
void ValidateCIDR(std::string_view text, const FieldPath& path, FieldErrors& errors);  // strict, canonical
void ValidateEndpointIP(std::string_view text, const FieldPath& path,
                        FieldErrors& errors);  // not loopback, link-local, ...

// How a kind's names are checked. `prefix`: it is a generateName, so a trailing "-" is masked.
using NameRule = Messages (*)(std::string_view name, bool prefix);
Messages NameIsDNSSubdomain(std::string_view name, bool prefix);
Messages NameIsDNSLabel(std::string_view name, bool prefix);
Messages NameIsDNS1035Label(std::string_view name, bool prefix);
Messages NameIsPathSegment(std::string_view name, bool prefix);

// metadata as every kind has it. `core_finalizers`: names without a domain must be standard ones (all kinds but CRDs,
// APIServices, CRs).
void ValidateObjectMeta(const Value& metadata, bool namespaced, NameRule rule, const FieldPath& path,
                        FieldErrors& errors, bool core_finalizers = true);
void ValidateObjectMetaUpdate(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors,
                              bool core_finalizers = true);

}  // namespace keelson::validation
