// A remote server's OpenAPI v2 document merged into this server's (kube-openapi's aggregator). Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "object/value.h"

namespace keelson::aggregator {

// Maximum size of the paths of all remote documents; paths beyond it are left out. Shared parameters are copied into each
// path, so that the paths can be far larger than the document they come from.
constexpr std::size_t kMergedPathsBytesMax = std::size_t{128} << 20;

// Appends members to `paths` and `definitions` of the document `base`, each with a comma before it: the paths of
// `remote` below one of `prefixes` (with their slash), and the definitions that those use or that nothing uses. A
// definition whose name is already in use is renamed <name>_v2, _v3, ... One that differs in descriptions or in
// x-kubernetes-group-version-kind is the same, and ours stays. References to parameters become the parameters
// themselves.
void MergeOpenAPIv2(std::string_view base, const Value& remote, std::span<const std::string> prefixes,
                    std::string& paths, std::string& definitions);

// Whether `document` is JSON that upstream's decoder of an OpenAPI v2 document takes. Every member may be missing, also
// "swagger".
bool IsOpenAPIv2(std::string_view document);

}  // namespace keelson::aggregator
