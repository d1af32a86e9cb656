// Shared part of the verbs' handlers: reading bodies, naming targets, responses with objects. Internal to endpoints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "codec/decode.h"
#include "endpoints/admission.h"
#include "endpoints/exchange.h"
#include "endpoints/negotiation.h"
#include "endpoints/object_encoder.h"
#include "endpoints/scope.h"
#include "meta/options.h"
#include "meta/status.h"

namespace keelson::endpoints {

inline constexpr std::size_t kBodyBytesMax = 3 * 1024 * 1024;

// All of the body; 413 above the limit.
Task<base::SharedBytes> ReadBody(Exchange& exchange);

// How upstream shows a body it could not read, and what it says of it.
std::string BodySummary(std::string_view body);
meta::Status UnrecognizedBody(const Scope& scope, std::string_view error, std::string_view body);
// Decodes the configuration of a server-side apply; `type` (kApplyPatch or kApplyCBORPatch) gives the encoding.
meta::Result<codec::Decoded> DecodeApply(base::Arena& arena, std::string_view type, std::string_view body, bool strict);
meta::Result<Value> DecodeDeleteOptions(Exchange& exchange, const Scope& scope, Format format, std::string_view body);
// Strict errors per fieldValidation: a Status for Strict, warnings for Warn.
meta::Result<void> ReportStrictErrors(Exchange& exchange, const std::vector<std::string>& errors,
                                      std::string_view field_validation,
                                      const std::function<meta::Status(const std::string& text)>& refuse);

// 200 (or `code`) with the object in the negotiated representation, gzipped if large enough. The answer of a write is
// not kept as an encoded form: the object is the watch cache's own, and most objects that are written are not read soon.
http::Response ObjectResponse(Exchange& exchange, const ScopePtr& scope, const MediaTypeOptions& media,
                              const storage::ObjectPtr& object, int code, ObjectEncoder::Keep keep);
http::Response BytesResponse(const Exchange& exchange, int code, std::string_view content_type, base::SharedBytes body,
                             bool may_compress);

// The Table options of the request; kMetadata if no Table was requested.
meta::Result<IncludeObject> IncludeObjectOf(const Exchange& exchange, const MediaTypeOptions& media);

// ownerReferences that say the same twice are dropped, with a warning.
void DedupOwnerReferences(Exchange& exchange, Value object, bool after_admission);
// Fields that a client cannot set.
void WipeSystemFields(Value object);

// The decoded request of a POST or PUT. The object refers to the body.
struct WriteRequest {
  MediaTypeOptions media;
  meta::WriteOptions options;
  base::SharedBytes body;
  Value object;  // has metadata, which names no other namespace than the URL

  std::int64_t length() const { return static_cast<std::int64_t>(body.size()); }
};
enum class WriteVerb : std::uint8_t { kCreate, kUpdate };
Task<WriteRequest> ReadWrite(Exchange& exchange, const Scope& scope, WriteVerb verb);

// An object that names a namespace names the URL's; 400 otherwise.
meta::Result<void> CheckNamespace(const Scope& scope, const Exchange& exchange, Value object);
// The object must be the one that the URL names; 400 otherwise.
meta::Result<void> CheckTarget(const Scope& scope, const Exchange& exchange, Value object);

// A JSON, merge or strategic merge patch: read once, applied to whatever the object is when it is written.
class Patcher {
 public:
  // `type` is the bare media type. All references must outlive this.
  Patcher(const Scope& scope, Exchange& exchange, std::string type, const meta::WriteOptions& options)
      : scope_(scope), exchange_(exchange), arena_(exchange.context.arena), type_(std::move(type)), options_(options) {}

  // Parses the patch; errors of the patch alone are reported before the object is read.
  meta::Result<void> Read(std::string_view body);
  // The patched object, decoded and defaulted, in the served version; so is `current`.
  meta::Result<Value> Apply(Value current);

 private:
  std::optional<Value> ApplyToTouchedFields(Value current);

  const Scope& scope_;
  Exchange& exchange_;
  base::Arena& arena_;
  std::string type_;
  const meta::WriteOptions& options_;
  Value patch_;
  std::vector<std::string> patch_errors_;
};

// Field labels of the selector in the hub's words; 400 for a field the kind cannot be selected by.
meta::Result<void> ConvertFieldSelector(const Scope& scope, meta::FieldSelector& selector);

// A write that storage refuses as too large is tried once more without managedFields, which may be as large as the
// object (isTooLargeError); server-side apply is not.
enum class ManagedFields : std::uint8_t { kTracked, kDropped };
bool IsTooLargeError(const meta::Status& error);

// Sets metadata.managedFields after a write by `manager` (create, update, patches other than apply). Both objects in
// the served version; all parameters must outlive the call.
Awaitable<void> TrackUpdate(Exchange& exchange, const Scope& scope, Value live, Value object, std::string manager);
// Server-side apply of a configuration by `options.field_manager`: the merged object with its managedFields.
struct AppliedConfiguration {
  Value object;
  bool unchanged = false;  // nothing but the metadata may differ
};
Task<AppliedConfiguration> ApplyConfiguration(Exchange& exchange, const Scope& scope, Value live, Value config,
                                              const meta::WriteOptions& options);
// Restores `before` where admission left managedFields that cannot be read.
void KeepManagedFieldsAfterAdmission(Exchange& exchange, const Scope& scope, Value object, Value before);
std::string_view NowText(base::Arena& arena);

}  // namespace keelson::endpoints
