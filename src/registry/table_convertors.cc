#include "registry/table_convertors.h"

#include <algorithm>

namespace keelson::registry {
namespace {

struct Row {
  std::string_view group, plural, subresource;
  friend bool operator==(const Row&, const Row&) = default;
};

constexpr Row kWithout[] = {
    {"", "pods", "ephemeralcontainers"},
    {"", "pods", "resize"},
    {"apiextensions.k8s.io", "customresourcedefinitions", "status"},
    {"apiregistration.k8s.io", "apiservices", "status"},
    {"certificates.k8s.io", "certificatesigningrequests", "approval"},
    {"resource.k8s.io", "resourceclaims", "status"},
};

}  // namespace

bool HasTableConvertor(std::string_view group, std::string_view plural, std::string_view subresource) {
  return std::ranges::find(kWithout, Row{group, plural, subresource}) == std::end(kWithout);
}

}  // namespace keelson::registry
