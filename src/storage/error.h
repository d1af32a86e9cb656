// Errors below the API: keys and revisions, not names and reasons. registry/ translates them into a Status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "meta/status.h"

namespace keelson::storage {

enum class ErrorCode : std::uint8_t {
  kKeyNotFound = 1,
  kKeyExists = 2,
  kResourceVersionConflicts = 3,
  kInvalidObject = 4,  // a precondition failed
  kUnreachable = 5,
  kTimeout = 6,
  kCorruptObject = 7,
  kInternal = 100,  // a transformer failed, or a bug: 500 InternalError
  kStatus = 101,    // `status` goes to the client unchanged
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string key;  // the full etcd key; of a corrupt object in a single read: the requested key
  std::uint64_t resource_version = 0;
  std::string message;  // AdditionalErrorMsg, or the internal error's text; of a list of corrupt objects: the first
  std::optional<meta::Status> status;
  // StorageError: <msg>, Code: <n>, Key: <key>, ResourceVersion: <rv>, AdditionalErrorMsg: <message>
  std::string ToString() const;
};

inline Error StatusError(meta::Status status) { return {.code = ErrorCode::kStatus, .status = std::move(status)}; }

}  // namespace keelson::storage
