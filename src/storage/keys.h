// Keys: what the interface takes (relative to the etcd prefix, beginning with the resource prefix) and what lies in the
// store.
#pragma once

#include <string>
#include <string_view>

#include "base/outcome.h"
#include "storage/error.h"

namespace keelson::storage {

// "/" + prefix + "/": the prefix of every relative key without its leading slash. "/registry" → "/registry/".
std::string PathPrefix(std::string_view etcd_prefix);

// The relative key, checked against path tricks and against the resource prefix; with a trailing slash when
// `recursive`.
Outcome<std::string, Error> PrepareKey(std::string_view resource_prefix, std::string_view key, bool recursive);

// An error of upstream that is neither a StorageError nor a Status: 500 with its text alone.
Error UntypedError(std::string_view message);

// 0 for "" and "0". The error is the text of upstream's InvalidError.
Outcome<std::uint64_t, std::string> ParseResourceVersion(std::string_view text);

}  // namespace keelson::storage
