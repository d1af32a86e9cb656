#include "kv/etcdpb/convert.h"

#include <utility>

namespace keelson::kv::etcdpb {
namespace {

SharedBytes TakeBytes(std::string* bytes) {
  return bytes->empty() ? SharedBytes() : SharedBytes::FromString(std::move(*bytes));
}

void CompareToPB(const Compare& from, pb::Compare* to) {
  to->set_key(from.key);
  to->set_range_end(from.range_end);
  switch (from.op) {
    case Compare::Operator::kEqual:
      to->set_result(pb::Compare::EQUAL);
      break;
    case Compare::Operator::kGreater:
      to->set_result(pb::Compare::GREATER);
      break;
    case Compare::Operator::kLess:
      to->set_result(pb::Compare::LESS);
      break;
    case Compare::Operator::kNotEqual:
      to->set_result(pb::Compare::NOT_EQUAL);
      break;
  }
  switch (from.target) {
    case Compare::Target::kVersion:
      to->set_target(pb::Compare::VERSION);
      to->set_version(from.number);
      break;
    case Compare::Target::kCreateRevision:
      to->set_target(pb::Compare::CREATE);
      to->set_create_revision(from.number);
      break;
    case Compare::Target::kModRevision:
      to->set_target(pb::Compare::MOD);
      to->set_mod_revision(from.number);
      break;
    case Compare::Target::kValue:
      to->set_target(pb::Compare::VALUE);
      to->set_value(from.value.data(), from.value.size());
      break;
    case Compare::Target::kLease:
      to->set_target(pb::Compare::LEASE);
      to->set_lease(from.number);
      break;
  }
}

Result<Compare> CompareFromPB(const pb::Compare& from) {
  Compare to{.key = from.key(), .range_end = from.range_end()};
  switch (from.result()) {
    case pb::Compare::EQUAL:
      to.op = Compare::Operator::kEqual;
      break;
    case pb::Compare::GREATER:
      to.op = Compare::Operator::kGreater;
      break;
    case pb::Compare::LESS:
      to.op = Compare::Operator::kLess;
      break;
    case pb::Compare::NOT_EQUAL:
      to.op = Compare::Operator::kNotEqual;
      break;
    default:
      return Error{.code = ErrorCode::kInvalidArgument, .message = "etcdserver: unknown compare result"};
  }
  switch (from.target()) {
    case pb::Compare::VERSION:
      to.target = Compare::Target::kVersion;
      to.number = from.version();
      break;
    case pb::Compare::CREATE:
      to.target = Compare::Target::kCreateRevision;
      to.number = from.create_revision();
      break;
    case pb::Compare::MOD:
      to.target = Compare::Target::kModRevision;
      to.number = from.mod_revision();
      break;
    case pb::Compare::VALUE:
      to.target = Compare::Target::kValue;
      to.value = SharedBytes(from.value());
      break;
    case pb::Compare::LEASE:
      to.target = Compare::Target::kLease;
      to.number = from.lease();
      break;
    default:
      return Error{.code = ErrorCode::kInvalidArgument, .message = "etcdserver: unknown compare target"};
  }
  return to;
}

void OpToPB(const Op& from, pb::RequestOp* to) {
  switch (from.kind) {
    case Op::Kind::kRange:
      ToPB(from.range, to->mutable_request_range());
      break;
    case Op::Kind::kPut: {
      auto* put = to->mutable_request_put();
      put->set_key(from.put.key);
      put->set_value(from.put.value.data(), from.put.value.size());
      put->set_lease(from.put.lease);
      put->set_prev_kv(from.put.prev_kv);
      put->set_ignore_value(from.put.ignore_value);
      put->set_ignore_lease(from.put.ignore_lease);
      break;
    }
    case Op::Kind::kDeleteRange: {
      auto* remove = to->mutable_request_delete_range();
      remove->set_key(from.delete_range.key);
      remove->set_range_end(from.delete_range.range_end);
      remove->set_prev_kv(from.delete_range.prev_kv);
      break;
    }
    case Op::Kind::kTxn:
      ToPB(*from.txn, to->mutable_request_txn());
      break;
  }
}

Result<Op> OpFromPB(pb::RequestOp& from, int depth) {
  switch (from.request_case()) {
    case pb::RequestOp::kRequestRange:
      return Op::Range(FromPB(from.request_range()));
    case pb::RequestOp::kRequestPut:
      return Op::Put(FromPB(*from.mutable_request_put()));
    case pb::RequestOp::kRequestDeleteRange:
      return Op::DeleteRange(FromPB(from.request_delete_range()));
    case pb::RequestOp::kRequestTxn: {
      KS_TRY(TxnRequest nested, FromPB(*from.mutable_request_txn(), depth + 1));
      return Op::Txn(std::move(nested));
    }
    case pb::RequestOp::REQUEST_NOT_SET:
      break;
  }
  return MakeError(ErrorCode::kEmptyKey);  // what etcd says of an operation without a request
}

struct CodeText {
  ErrorCode code;
  grpc::StatusCode status;
};

constexpr CodeText kCodes[] = {
    {ErrorCode::kCompacted, grpc::StatusCode::OUT_OF_RANGE},
    {ErrorCode::kFutureRevision, grpc::StatusCode::OUT_OF_RANGE},
    {ErrorCode::kLeaseNotFound, grpc::StatusCode::NOT_FOUND},
    {ErrorCode::kLeaseExists, grpc::StatusCode::FAILED_PRECONDITION},
    {ErrorCode::kDuplicateKey, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::kTooLarge, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::kTooManyOps, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::kNoSpace, grpc::StatusCode::RESOURCE_EXHAUSTED},
    {ErrorCode::kEmptyKey, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::kCorrupt, grpc::StatusCode::DATA_LOSS},
    {ErrorCode::kDeadline, grpc::StatusCode::UNAVAILABLE},
    {ErrorCode::kClosed, grpc::StatusCode::UNAVAILABLE},
    {ErrorCode::kKeyNotFound, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::kLeaseTTLTooLarge, grpc::StatusCode::OUT_OF_RANGE},
    {ErrorCode::kTooManyRequests, grpc::StatusCode::RESOURCE_EXHAUSTED},
    {ErrorCode::kUnavailable, grpc::StatusCode::UNAVAILABLE},
    {ErrorCode::kCanceled, grpc::StatusCode::CANCELLED},
};

}  // namespace

void ToPB(const RangeRequest& from, pb::RangeRequest* to) {
  to->set_key(from.key);
  to->set_range_end(from.range_end);
  to->set_limit(from.limit);
  to->set_revision(from.revision);
  to->set_keys_only(from.keys_only);
  to->set_count_only(from.count_only);
  to->set_sort_order(static_cast<pb::RangeRequest::SortOrder>(from.sort_order));
  to->set_sort_target(static_cast<pb::RangeRequest::SortTarget>(from.sort_target));
  to->set_min_mod_revision(from.min_mod_revision);
  to->set_max_mod_revision(from.max_mod_revision);
  to->set_min_create_revision(from.min_create_revision);
  to->set_max_create_revision(from.max_create_revision);
}

RangeRequest FromPB(const pb::RangeRequest& from) {
  RangeRequest to{.key = from.key(),
                  .range_end = from.range_end(),
                  .limit = from.limit(),
                  .revision = from.revision(),
                  .keys_only = from.keys_only(),
                  .count_only = from.count_only()};
  if (from.sort_order() >= 0 && from.sort_order() <= 2) to.sort_order = static_cast<SortOrder>(from.sort_order());
  if (from.sort_target() >= 0 && from.sort_target() <= 4) to.sort_target = static_cast<SortTarget>(from.sort_target());
  // etcd sorts by a target other than the key even when no order is given.
  if (to.sort_order == SortOrder::kNone && to.sort_target != SortTarget::kKey) to.sort_order = SortOrder::kAscend;
  if (to.sort_order == SortOrder::kAscend && to.sort_target == SortTarget::kKey)
    to.sort_order = SortOrder::kNone;  // as it is
  to.min_mod_revision = from.min_mod_revision();
  to.max_mod_revision = from.max_mod_revision();
  to.min_create_revision = from.min_create_revision();
  to.max_create_revision = from.max_create_revision();
  return to;
}

PutRequest FromPB(pb::PutRequest& from) {
  return {.key = std::move(*from.mutable_key()),
          .value = TakeBytes(from.mutable_value()),
          .lease = from.lease(),
          .prev_kv = from.prev_kv(),
          .ignore_value = from.ignore_value(),
          .ignore_lease = from.ignore_lease()};
}

DeleteRangeRequest FromPB(const pb::DeleteRangeRequest& from) {
  return {.key = from.key(), .range_end = from.range_end(), .prev_kv = from.prev_kv()};
}

void ToPB(const TxnRequest& from, pb::TxnRequest* to) {
  for (const Compare& compare : from.compare) CompareToPB(compare, to->add_compare());
  for (const Op& op : from.success) OpToPB(op, to->add_success());
  for (const Op& op : from.failure) OpToPB(op, to->add_failure());
}

Result<TxnRequest> FromPB(pb::TxnRequest& from, int depth) {
  if (depth > kTxnDepthMax) return MakeError(ErrorCode::kTooManyOps);
  TxnRequest to;
  for (const auto& compare : from.compare()) {
    KS_TRY(Compare one, CompareFromPB(compare));
    to.compare.push_back(std::move(one));
  }
  for (auto& op : *from.mutable_success()) {
    KS_TRY(Op one, OpFromPB(op, depth));
    to.success.push_back(std::move(one));
  }
  for (auto& op : *from.mutable_failure()) {
    KS_TRY(Op one, OpFromPB(op, depth));
    to.failure.push_back(std::move(one));
  }
  return to;
}

void ToPB(const KeyValue& from, pb::KeyValue* to) {
  to->set_key(from.key);
  to->set_value(from.value.data(), from.value.size());
  to->set_create_revision(from.create_revision);
  to->set_mod_revision(from.mod_revision);
  to->set_version(from.version);
  to->set_lease(from.lease);
}

KeyValue FromPB(pb::KeyValue& from) {
  return {.key = std::move(*from.mutable_key()),
          .value = TakeBytes(from.mutable_value()),
          .create_revision = from.create_revision(),
          .mod_revision = from.mod_revision(),
          .version = from.version(),
          .lease = from.lease()};
}

void ToPB(const RangeResponse& from, pb::RangeResponse* to) {
  to->mutable_header()->set_revision(from.revision);
  to->mutable_kvs()->Reserve(static_cast<int>(from.kvs.size()));
  for (const KeyValue& kv : from.kvs) ToPB(kv, to->add_kvs());
  to->set_more(from.more);
  to->set_count(from.count);
}

RangeResponse FromPB(pb::RangeResponse& from) {
  RangeResponse to{.revision = from.header().revision(), .more = from.more(), .count = from.count()};
  to.kvs.reserve(static_cast<std::size_t>(from.kvs_size()));
  for (auto& kv : *from.mutable_kvs()) to.kvs.push_back(FromPB(kv));
  return to;
}

void ToPB(const TxnResponse& from, pb::TxnResponse* to) {
  to->mutable_header()->set_revision(from.revision);
  to->set_succeeded(from.succeeded);
  for (const OpResponse& one : from.responses) {
    auto* op = to->add_responses();
    switch (one.kind) {
      case Op::Kind::kRange:
        ToPB(one.range, op->mutable_response_range());
        break;
      case Op::Kind::kPut:
        op->mutable_response_put()->mutable_header()->set_revision(from.revision);
        if (one.put_prev) ToPB(*one.put_prev, op->mutable_response_put()->mutable_prev_kv());
        break;
      case Op::Kind::kDeleteRange: {
        auto* removed = op->mutable_response_delete_range();
        removed->mutable_header()->set_revision(from.revision);
        removed->set_deleted(one.deleted);
        for (const KeyValue& kv : one.delete_prev) ToPB(kv, removed->add_prev_kvs());
        break;
      }
      case Op::Kind::kTxn:
        ToPB(*one.txn, op->mutable_response_txn());
        break;
    }
  }
}

TxnResponse FromPB(pb::TxnResponse& from) {
  TxnResponse to{.revision = from.header().revision(), .succeeded = from.succeeded()};
  for (auto& op : *from.mutable_responses()) {
    OpResponse& one = to.responses.emplace_back();
    switch (op.response_case()) {
      case pb::ResponseOp::kResponseRange:
        one.range = FromPB(*op.mutable_response_range());
        break;
      case pb::ResponseOp::kResponsePut:
        one.kind = Op::Kind::kPut;
        if (op.response_put().has_prev_kv()) one.put_prev = FromPB(*op.mutable_response_put()->mutable_prev_kv());
        break;
      case pb::ResponseOp::kResponseDeleteRange:
        one.kind = Op::Kind::kDeleteRange;
        one.deleted = op.response_delete_range().deleted();
        for (auto& kv : *op.mutable_response_delete_range()->mutable_prev_kvs()) one.delete_prev.push_back(FromPB(kv));
        break;
      case pb::ResponseOp::kResponseTxn:
        one.kind = Op::Kind::kTxn;
        one.txn = std::make_shared<TxnResponse>(FromPB(*op.mutable_response_txn()));
        break;
      case pb::ResponseOp::RESPONSE_NOT_SET:
        break;
    }
  }
  return to;
}

void ToPB(const Event& from, pb::Event* to) {
  to->set_type(from.type == Event::Type::kDelete ? pb::Event::DELETE : pb::Event::PUT);
  ToPB(from.kv, to->mutable_kv());
  if (from.prev_kv) ToPB(*from.prev_kv, to->mutable_prev_kv());
}

Event FromPB(pb::Event& from) {
  Event to{.type = from.type() == pb::Event::DELETE ? Event::Type::kDelete : Event::Type::kPut,
           .kv = FromPB(*from.mutable_kv())};
  if (from.has_prev_kv()) to.prev_kv = FromPB(*from.mutable_prev_kv());
  return to;
}

void ToPB(const WatchRequest& from, pb::WatchCreateRequest* to) {
  to->set_key(from.key);
  to->set_range_end(from.range_end);
  to->set_start_revision(from.start_revision);
  to->set_prev_kv(from.prev_kv);
  to->set_progress_notify(from.progress_notify);
  if (from.no_put) to->add_filters(pb::WatchCreateRequest::NOPUT);
  if (from.no_delete) to->add_filters(pb::WatchCreateRequest::NODELETE);
}

WatchRequest FromPB(const pb::WatchCreateRequest& from) {
  WatchRequest to{.key = from.key(),
                  .range_end = from.range_end(),
                  .start_revision = from.start_revision(),
                  .prev_kv = from.prev_kv(),
                  .progress_notify = from.progress_notify()};
  // \0 is the smallest key: "everything" comes as an empty key with an end.
  if (to.key.empty()) to.key = std::string(1, '\0');
  for (const int filter : from.filters()) {
    if (filter == pb::WatchCreateRequest::NOPUT) to.no_put = true;
    if (filter == pb::WatchCreateRequest::NODELETE) to.no_delete = true;
  }
  return to;
}

Error FromStatus(const grpc::Status& status) {
  const std::string& text = status.error_message();
  for (const CodeText& entry : kCodes) {
    if (entry.code == ErrorCode::kUnavailable || entry.code == ErrorCode::kInvalidArgument) continue;
    if (const Error known = MakeError(entry.code); known.message == text) return known;
  }
  ErrorCode code = ErrorCode::kInternal;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      code = text.starts_with("etcdserver: request timed out") ? ErrorCode::kDeadline : ErrorCode::kUnavailable;
      break;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      code = ErrorCode::kDeadline;
      break;
    case grpc::StatusCode::CANCELLED:
      code = ErrorCode::kCanceled;
      break;
    case grpc::StatusCode::INVALID_ARGUMENT:
      code = ErrorCode::kInvalidArgument;
      break;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      code = ErrorCode::kTooLarge;
      break;  // gRPC's own limit on messages
    case grpc::StatusCode::DATA_LOSS:
      code = ErrorCode::kCorrupt;
      break;
    default:
      break;
  }
  return {.code = code, .message = text};
}

grpc::Status ToStatus(const Error& error) {
  for (const CodeText& entry : kCodes) {
    if (entry.code == error.code) return {entry.status, error.message};
  }
  return {grpc::StatusCode::UNKNOWN, error.message};
}

}  // namespace keelson::kv::etcdpb
