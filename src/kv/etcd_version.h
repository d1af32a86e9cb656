// Differences between etcd versions.
#pragma once

#include <string_view>

namespace keelson::kv {

// Whether a requested progress response comes after the events before it. Older etcds send it past them
// (etcd issue 15220), so it must not be taken for "everything up to here was delivered". The versions are those from
// which kube-apiserver uses it: 3.4.31, 3.5.13 and 3.6. False for text that is not a version.
bool ProgressOnRequestIsOrdered(std::string_view version);

}  // namespace keelson::kv
