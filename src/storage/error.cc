#include "storage/error.h"

#include <string_view>

namespace keelson::storage {
namespace {

std::string_view Text(ErrorCode code) {
  switch (code) {
    case ErrorCode::kKeyNotFound:
      return "key not found";
    case ErrorCode::kKeyExists:
      return "key exists";
    case ErrorCode::kResourceVersionConflicts:
      return "resource version conflicts";
    case ErrorCode::kInvalidObject:
      return "invalid object";
    case ErrorCode::kUnreachable:
      return "server unreachable";
    case ErrorCode::kTimeout:
      return "request timeout";
    case ErrorCode::kCorruptObject:
      return "corrupt object";
    case ErrorCode::kInternal:
    case ErrorCode::kStatus:
      break;
  }
  return "";
}

}  // namespace

std::string Error::ToString() const {
  if (code == ErrorCode::kStatus && status) return std::string(status->message());
  if (code == ErrorCode::kInternal) return message;
  return "StorageError: " + std::string(Text(code)) + ", Code: " + std::to_string(static_cast<int>(code)) +
         ", Key: " + key + ", ResourceVersion: " + std::to_string(resource_version) +
         ", AdditionalErrorMsg: " + (message.empty() ? std::string("<nil>") : message);
}

}  // namespace keelson::storage
