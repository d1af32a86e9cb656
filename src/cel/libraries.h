// The function libraries of CEL and Kubernetes as rows of text; Environment turns the chosen ones into declarations.
#pragma once

#include <cstdint>
#include <string_view>

namespace keelson::cel {

enum class Library : std::uint8_t {
  kStandard,
  kURLs,
  kRegex,
  kLists,
  kAuthz,
  kOptionals,
  kQuantity,
  kStrings,  // version 2: with format and strings.quote
  kSets,
  kIP,
  kCIDR,
  kFormat,
  kAuthzSelectors,
  kTwoVarComprehensions,
  kSemver,
  kExtLists,  // version 3
  kBindings,  // the macro cel.bind
  kJSONPatch,
  kMath,
  kEncoders,
  kStringsV3,    // reverse, beside kStrings
  kBlock,        // cel.@block
  kDeviceLists,  // includes, on devices
};

// Rows "id .|- function (types) result", one overload each.
std::string_view LibraryRows(Library library);

}  // namespace keelson::cel
