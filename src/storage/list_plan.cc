#include "storage/list_plan.h"

#include "storage/continue_token.h"
#include "storage/keys.h"
#include "storage/shard_filter.h"

namespace keelson::storage {
namespace {

constexpr std::string_view kExpiredList = "The resourceVersion for the provided list is too old.";
constexpr std::string_view kExpiredContinue =
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with "
    "the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between the time the first "
    "chunk was returned and "
    "now may show up in the list.";

Error BadRequest(std::string_view message) { return StatusError(meta::NewBadRequest(message)); }

}  // namespace

bool SelectionPredicate::Matches(const Object& object) const {
  const Attributes& attributes = object.attributes();
  return (!shard || shard->Matches(object)) && (!label || label->Matches(attributes.labels)) &&
         (!field || field->Matches(attributes.fields));
}

Result<ListPlan> ResolveListOptions(std::string_view prefix, const ListOptions& options) {
  ListPlan plan;
  if (options.recursive && !options.predicate.continue_token.empty()) {
    auto token = DecodeContinue(options.predicate.continue_token, prefix);
    if (!token.ok()) return BadRequest("invalid continue token: " + token.error());
    if (!options.resource_version.empty() && options.resource_version != "0") {
      return BadRequest("specifying resource version is not allowed when using continue");
    }
    if (token->resource_version > 0) plan.exact_revision = static_cast<std::uint64_t>(token->resource_version);
    plan.start_key = std::move(token->start_key);
    return plan;
  }
  if (options.resource_version.empty()) return plan;
  const auto parsed = ParseResourceVersion(options.resource_version);
  if (!parsed.ok()) return BadRequest("invalid resource version: " + parsed.error());
  if (options.resource_version_match == "NotOlderThan") {
    plan.not_older_than = *parsed;
  } else if (options.resource_version_match == "Exact") {
    plan.exact_revision = *parsed;
  } else if (options.resource_version_match.empty()) {
    const bool legacy_exact = options.recursive && options.predicate.limit > 0 && *parsed > 0;
    (legacy_exact ? plan.exact_revision : plan.not_older_than) = *parsed;
  } else {
    return StatusError(meta::NewPlainError("unknown ResourceVersionMatch value: " + options.resource_version_match));
  }
  return plan;
}

Error CompactedListError(std::string_view start_key, std::string_view key_prefix) {
  if (start_key.empty()) return StatusError(meta::NewExpired(kExpiredList));
  return StatusError(meta::NewExpired(kExpiredContinue, EncodeContinue(start_key, key_prefix, -1)));
}

PageEnd EndPage(std::string_view last_key, std::string_view key, std::uint64_t resource_version, std::int64_t count,
                bool has_more, const ListOptions& options) {
  PageEnd end;
  if (!has_more) return end;
  std::string next(last_key);
  next.push_back('\0');
  end.continue_token = EncodeContinue(next, key, static_cast<std::int64_t>(resource_version));
  // With a selector the number of remaining matches is unknown.
  if (options.predicate.Empty()) end.remaining_item_count = count - options.predicate.limit;
  return end;
}

std::optional<Error> CheckPreconditions(const Preconditions& preconditions, std::string_view uid,
                                        std::uint64_t resource_version, std::string_view full_key) {
  const auto failed = [&](std::string message) {
    return Error{.code = ErrorCode::kInvalidObject, .key = std::string(full_key), .message = std::move(message)};
  };
  if (preconditions.uid && *preconditions.uid != uid) {
    return failed("Precondition failed: UID in precondition: " + *preconditions.uid +
                  ", UID in object meta: " + std::string(uid));
  }
  const std::string version = resource_version == 0 ? "" : std::to_string(resource_version);
  if (preconditions.resource_version && *preconditions.resource_version != version) {
    return failed("Precondition failed: ResourceVersion in precondition: " + *preconditions.resource_version +
                  ", ResourceVersion in object meta: " + version);
  }
  return std::nullopt;
}

}  // namespace keelson::storage
