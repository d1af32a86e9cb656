#include "endpoints/audit_hooks.h"

#include "audit/auditor.h"
#include "codec/json.h"
#include "object/json_text.h"

namespace keelson::endpoints {
namespace {

MediaTypeOptions AsJSON(MediaTypeOptions media) {
  media.format = Format::kJSON;
  media.pretty = false;
  return media;
}

void WriteJSON(std::string_view json, const audit::Emit& emit, bool omit_managed_fields) {
  while (json.ends_with('\n')) json.remove_suffix(1);
  if (omit_managed_fields) return audit::WriteWithoutManagedFields(json, emit);
  emit(json);
}

// One object, written from the JSON form that readers of the object share.
class ObjectPayload final : public audit::Payload {
 public:
  ObjectPayload(ObjectEncoder encoder, storage::ObjectPtr object)
      : encoder_(std::move(encoder)), object_(std::move(object)) {}
  void Write(const audit::Emit& emit, bool omit_managed_fields) const override {
    const auto json = encoder_.Whole(object_);
    if (!json.ok()) return emit("null");
    WriteJSON(json->view(), emit, omit_managed_fields);
  }

 private:
  ObjectEncoder encoder_;
  storage::ObjectPtr object_;
};

// A list: references to the cache's objects, written one after another.
class ListPayload final : public audit::Payload {
 public:
  ListPayload(ObjectEncoder encoder, storage::ObjectList list) : encoder_(std::move(encoder)), list_(std::move(list)) {}
  std::size_t weight() const override { return 1 + list_.items.size() / kItemsPerWeight; }

  void Write(const audit::Emit& emit, bool omit_managed_fields) const override {
    const auto frame = encoder_.Frame(list_);
    if (!frame || omit_managed_fields) {
      const auto whole = encoder_.WholeList(list_);
      if (!whole.ok()) return emit("null");
      return WriteJSON(whole->view(), emit, omit_managed_fields);
    }
    emit(frame->head.view());
    std::vector<SharedBytes> pieces;
    bool first = true;
    for (const auto& item : list_.items) {
      pieces.clear();
      if (encoder_.Item(item, first, pieces).ok()) {
        for (const SharedBytes& piece : pieces) emit(piece.view());
      }
      first = false;
    }
    std::string_view tail = frame->tail.view();
    while (tail.ends_with('\n')) tail.remove_suffix(1);
    emit(tail);
  }

 private:
  static constexpr std::size_t kItemsPerWeight = 16;
  ObjectEncoder encoder_;
  storage::ObjectList list_;
};

void SetIfEmpty(std::string& field, const Value& value) {
  if (field.empty()) field = std::string(value.as_string());
}

}  // namespace

void AuditRequestObject(const Exchange& exchange, const Scope& scope, const Value& object) {
  if (!exchange.audit) return;
  audit::Event& event = exchange.audit->event;
  if (event.object_ref) {
    const Value metadata = object["metadata"];
    SetIfEmpty(event.object_ref->name_space, metadata["namespace"]);
    SetIfEmpty(event.object_ref->name, metadata["name"]);
    SetIfEmpty(event.object_ref->uid, metadata["uid"]);
    SetIfEmpty(event.object_ref->resource_version, metadata["resourceVersion"]);
  }
  if (!exchange.audit->records_request()) return;
  std::string json;
  scope.codec->EncodeJSON(object, scope, json);
  event.request_object = audit::NewJSONPayload(base::SharedBytes::FromString(std::move(json)));
}

void AuditRequestPatch(const Exchange& exchange, const base::SharedBytes& body) {
  if (!exchange.audit || !exchange.audit->records_request()) return;
  exchange.audit->event.request_object = audit::NewRawPayload(body);
}

void AuditDeleteOptions(const Exchange& exchange, const Value& options) {
  if (!exchange.audit || !exchange.audit->records_request()) return;
  std::string json = R"({"kind":"DeleteOptions","apiVersion":"meta.k8s.io/__internal")";
  for (const auto& member : options.members()) {
    if (member.key == "kind" || member.key == "apiVersion") continue;
    json += ',';
    object::AppendJSONString(json, member.key);
    json += ':';
    object::AppendJSON(json, member.value);
  }
  json += '}';
  exchange.audit->event.request_object = audit::NewJSONPayload(base::SharedBytes::FromString(std::move(json)));
}

void AuditImpersonation(const Exchange& exchange, const request::User& user, std::string_view constraint) {
  if (!exchange.audit) return;
  exchange.audit->event.impersonated_user = user;
  exchange.audit->event.impersonation_constraint = constraint;
}

void AuditResponseObject(const Exchange& exchange, const ScopePtr& scope, const MediaTypeOptions& media,
                         IncludeObject include, const storage::ObjectPtr& object) {
  if (!exchange.audit || !exchange.audit->records_response()) return;
  exchange.audit->event.response_object =
      std::make_shared<ObjectPayload>(ObjectEncoder(scope, AsJSON(media), include), object);
}

void AuditResponseList(const Exchange& exchange, const ScopePtr& scope, const MediaTypeOptions& media,
                       IncludeObject include, const storage::ObjectList& list) {
  if (!exchange.audit || !exchange.audit->records_response()) return;
  exchange.audit->event.response_object =
      std::make_shared<ListPayload>(ObjectEncoder(scope, AsJSON(media), include), list);
}

void AuditResponseValue(const Exchange& exchange, const Value& object, const schema::Struct& type) {
  if (!exchange.audit || !exchange.audit->records_response()) return;
  std::string json;
  codec::EncodeJSON(object, type, json);
  exchange.audit->event.response_object = audit::NewJSONPayload(base::SharedBytes::FromString(std::move(json)));
}

void AuditResponseJSON(const Exchange& exchange, const base::SharedBytes& json) {
  if (!exchange.audit || !exchange.audit->records_response()) return;
  std::size_t size = json.size();
  while (size > 0 && json.view()[size - 1] == '\n') --size;
  exchange.audit->event.response_object = audit::NewJSONPayload(json.Slice(0, size));
}

void AuditResponseStatus(const Exchange& exchange, const Value& status) {
  if (!exchange.audit) return;
  std::string fields;
  for (const std::string_view key : {"status", "message", "reason", "details"}) {
    const Value value = status[key];
    if (value.is_null() || (value.is_string() && value.as_string().empty())) continue;
    fields += ",\"" + std::string(key) + "\":";
    object::AppendJSON(fields, value);
  }
  exchange.audit->event.status_fields = std::move(fields);
}

}  // namespace keelson::endpoints
