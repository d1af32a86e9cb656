// Errors of runtime.Scheme for objects of an unregistered kind.
#pragma once

#include <string>
#include <string_view>

namespace keelson::meta {

// `no kind "X" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`.
std::string NotRegisteredError(std::string_view kind, std::string_view api_version);

}  // namespace keelson::meta
