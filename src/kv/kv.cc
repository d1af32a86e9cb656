#include "kv/kv.h"

namespace keelson::kv {

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty()) {
    if (static_cast<unsigned char>(end.back()) < 0xff) {
      end.back() = static_cast<char>(end.back() + 1);
      return end;
    }
    end.pop_back();
  }
  return std::string(1, '\0');  // every key
}

bool InRange(std::string_view key, std::string_view begin, std::string_view range_end) {
  if (range_end.empty()) return key == begin;
  if (key < begin) return false;
  return (range_end.size() == 1 && range_end[0] == '\0') || key < range_end;
}

Error MakeError(ErrorCode code) {
  const char* text = "";
  switch (code) {
    case ErrorCode::kCompacted:
      text = "etcdserver: mvcc: required revision has been compacted";
      break;
    case ErrorCode::kFutureRevision:
      text = "etcdserver: mvcc: required revision is a future revision";
      break;
    case ErrorCode::kLeaseNotFound:
      text = "etcdserver: requested lease not found";
      break;
    case ErrorCode::kLeaseExists:
      text = "etcdserver: lease already exists";
      break;
    case ErrorCode::kDuplicateKey:
      text = "etcdserver: duplicate key given in txn request";
      break;
    case ErrorCode::kTooLarge:
      text = "etcdserver: request is too large";
      break;
    case ErrorCode::kTooManyOps:
      text = "etcdserver: too many operations in txn request";
      break;
    case ErrorCode::kNoSpace:
      text = "etcdserver: mvcc: database space exceeded";
      break;
    case ErrorCode::kEmptyKey:
      text = "etcdserver: key is not provided";
      break;
    case ErrorCode::kCorrupt:
      text = "etcdserver: corrupt cluster";
      break;
    case ErrorCode::kUnavailable:
      text = "etcdserver: not available";
      break;
    case ErrorCode::kDeadline:
      text = "etcdserver: request timed out";
      break;
    case ErrorCode::kCanceled:
      text = "canceled";
      break;
    case ErrorCode::kClosed:
      text = "etcdserver: server stopped";
      break;
    case ErrorCode::kInternal:
      text = "internal error";
      break;
    case ErrorCode::kKeyNotFound:
      text = "etcdserver: key not found";
      break;
    case ErrorCode::kInvalidArgument:
      text = "invalid argument";
      break;
    case ErrorCode::kLeaseTTLTooLarge:
      text = "etcdserver: too large lease TTL";
      break;
    case ErrorCode::kTooManyRequests:
      text = "etcdserver: too many requests";
      break;
    case ErrorCode::kInUse:
      text = "data folder in use";
      break;
  }
  return {.code = code, .message = text};
}

}  // namespace keelson::kv
