// Audit events (audit.k8s.io/v1 Event). An event is a snapshot of what is known about a request at one stage; it is
// written as JSON by a backend's own thread, and the objects in it are written from the bytes that the caches share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/policy.h"
#include "base/shared_bytes.h"
#include "request/user.h"

namespace keelson::audit {

// Takes the next piece of a text.
using Emit = std::function<void(std::string_view piece)>;

// An object inside an event. Write() runs on a backend's thread, possibly several times. Immutable; thread safe.
class Payload {
 public:
  virtual ~Payload() = default;
  // False: the object is not JSON, so that the event cannot be written (upstream drops it).
  virtual bool valid() const { return true; }
  virtual void Write(const Emit& emit, bool omit_managed_fields) const = 0;
  // How much a waiting event counts against the bound of a queue; 1 for a single object.
  virtual std::size_t weight() const { return 1; }
};
using PayloadPtr = std::shared_ptr<const Payload>;

// JSON text that is there already.
PayloadPtr NewJSONPayload(base::SharedBytes json);
// A request's body as it was sent (PATCH); not valid when it is not JSON.
PayloadPtr NewRawPayload(base::SharedBytes body);

// Copies compact JSON without metadata.managedFields of the object itself, of the items of a list, and of the objects
// of a Table's rows.
void WriteWithoutManagedFields(std::string_view json, const Emit& emit);

struct ObjectReference {
  std::string resource, name_space, name, uid, api_group, api_version, resource_version, subresource;
};

struct Event {
  using Time = std::chrono::system_clock::time_point;

  Level level = Level::kNone;
  Stage stage = Stage::kRequestReceived;
  std::string audit_id, request_uri, verb;
  request::User user;
  std::optional<request::User> impersonated_user;
  std::string impersonation_constraint;
  std::vector<std::string> source_ips;
  std::string user_agent;
  std::optional<ObjectReference> object_ref;
  std::optional<int> code;    // of the response
  std::string status_fields;  // `,"status":...,"message":...` of a response that is a Status, else ""
  PayloadPtr request_object, response_object;
  Time received{}, stage_time{};
  std::vector<std::pair<std::string, std::string>> annotations;  // sorted by key when it is written
  bool omit_managed_fields = false;

  bool valid() const;
  std::size_t weight() const;
  // One JSON object without a newline. Items of an EventList have no apiVersion and kind.
  enum class Form : std::uint8_t { kObject, kItem };
  void WriteJSON(const Emit& emit, Form form = Form::kObject) const;
  std::size_t JSONSize() const;
  // One line of --audit-log-format=legacy without its newline.
  std::string LegacyLine() const;
};
using EventPtr = std::shared_ptr<const Event>;

// Addresses a request came by: X-Forwarded-For, X-Real-Ip, then the peer's (apimachinery's SourceIPs).
std::vector<std::string> SourceIPs(std::string_view forwarded_for, std::string_view real_ip, std::string_view remote);
// A user agent as events show it: cut after 1,024 characters.
std::string TruncatedUserAgent(std::string_view user_agent);

}  // namespace keelson::audit
