#include "apiextensions/scale.h"

#include "base/strings.h"
#include "endpoints/column_descriptions.h"
#include "endpoints/scope.h"
#include "object/go_text.h"
#include "patch/managed_fields.h"
#include "registry/cells.h"
#include "storage/schema_codec.h"

namespace keelson::apiextensions {
namespace {

using registry::ObjectPtr;
using registry::Task;

// Upstream's handler has no decoder for Scale; this is all that it says.
constexpr std::string_view kUndecodable =
    "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";

// The value at a dotted path; absent is null, a step into a scalar or another kind of value is an error.
Outcome<Value, std::string> Nested(const Value& object, std::string_view path, std::string_view expected) {
  Value at = object;
  std::string walked;
  for (const std::string_view step : base::Split(path.substr(path.starts_with('.') ? 1 : 0), '.')) {
    walked += "." + std::string(step);
    if (at.is_null()) return Value();
    if (!at.is_map()) {
      return walked + " accessor error: " + object::GoSprint(at) + " is of the type " +
             std::string(object::GoTypeName(at)) + ", expected map[string]interface{}";
    }
    const Value* const found = at.Find(step);
    if (found == nullptr) return Value();
    at = *found;
  }
  if (!at.is_null() && object::GoTypeName(at) != expected) {
    return walked + " accessor error: " + object::GoSprint(at) + " is of the type " +
           std::string(object::GoTypeName(at)) + ", expected " + std::string(expected);
  }
  return at;
}

struct ScaleView {
  Value scale;
  bool has_replicas = false;
};

Outcome<ScaleView, std::string> ScaleOf(base::Arena& arena, const VersionKind& version, const Value& parent) {
  KS_TRY(const Value replicas, Nested(parent, version.spec_replicas, "int64"));
  KS_TRY(const Value status_replicas, Nested(parent, version.status_replicas, "int64"));
  Value selector;
  if (!version.label_selector.empty()) {
    KS_TRY(selector, Nested(parent, version.label_selector, "string"));
  }
  Value scale = Value::Map(arena);
  scale.Set(arena, "kind", "Scale");
  scale.Set(arena, "apiVersion", "autoscaling/v1");
  Value metadata = scale.EnsureMap(arena, "metadata");
  for (const std::string_view key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Value value = parent["metadata"][key]; !value.is_null()) metadata.Set(arena, key, value);
  }
  Value spec = scale.EnsureMap(arena, "spec");
  if (replicas.as_int() != 0) spec.Set(arena, "replicas", replicas);
  Value status = scale.EnsureMap(arena, "status");
  if (status_replicas.as_int() != 0) status.Set(arena, "replicas", status_replicas);
  if (!selector.as_string().empty()) status.Set(arena, "selector", selector);
  return ScaleView{scale, !replicas.is_null()};
}

std::string_view WithoutDot(std::string_view path) { return path.substr(path.starts_with('.') ? 1 : 0); }

void SetNested(base::Arena& arena, Value object, std::string_view path, Value value) {
  const auto steps = base::Split(WithoutDot(path), '.');
  Value at = object;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) at = at.EnsureMap(arena, arena.Copy(steps[i]));
  if (at.is_map()) at.Set(arena, arena.Copy(steps.back()), value);
}

void ScaleRow(base::Arena& arena, const base::Clock& clock, Value scale, Value cells) {
  cells.Append(arena, scale.Get("metadata", "name"));
  cells.Append(arena, scale.Get("spec", "replicas"));  // zero is left out of a Scale
  cells.Append(arena, scale.Get("status", "replicas").as_int());
  cells.Append(arena, Value::String(arena, registry::Age(clock, scale.Get("metadata", "creationTimestamp"))));
}

registry::Strategy ScaleStrategy() {
  registry::Strategy row;
  row.group = "autoscaling";
  row.kind = "Scale";
  row.table_row = ScaleRow;
  return row;
}

class ScaleREST final : public registry::REST, public registry::Getter, public registry::Updater {
 public:
  ScaleREST(CustomKindPtr kind, VersionKindPtr version, std::shared_ptr<const registry::Store> parents,
            const schema::Struct& type)
      : kind_(std::move(kind)),
        version_(std::move(version)),
        parents_(std::move(parents)),
        codec_(storage::NewSchemaCodec(
            {.resource = kind_->resource, .storage = {"autoscaling", "v1", "Scale"}, .type = &type})) {
    for (const VersionKindPtr& one : kind_->versions)  // empty for versions without the subresource
      paths_.push_back({one->api_version, WithoutDot(one->spec_replicas)});
  }

  const storage::ResourceCodec& codec() const override { return *codec_; }
  const registry::RESTStrategy& rest_strategy() const override { return strategy_; }
  const registry::Getter* getter() const override { return this; }
  const registry::Updater* updater() const override { return this; }

  Task<ObjectPtr> Get(std::string name_space, std::string name, std::string resource_version,
                      telemetry::Caller caller) const override {
    KS_CO_TRY(const ObjectPtr object,
              co_await parents_->Get(std::move(name_space), std::move(name), std::move(resource_version), caller));
    base::Arena arena;
    KS_CO_TRY(const Value parent, parents_->Decode(arena, object));
    const auto view = ScaleOf(arena, *version_, parent);
    if (!view.ok()) co_return meta::NewPlainError(view.error());
    if (!view->has_replicas) {
      co_return meta::NewInternalError("the spec replicas field " + base::GoQuote(version_->spec_replicas) +
                                       " does not exist");
    }
    co_return Encoded(object, view->scale);
  }

  Task<registry::WriteResult> Update(request::Context& context, std::string name, registry::UpdatedObject updated,
                                     registry::ValidateObject, registry::ValidateObjectUpdate validate_update,
                                     registry::UpdateParameters parameters) const override {
    registry::ValidateObjectUpdate validate;
    if (validate_update) {
      validate = [this, &context, &validate_update](Value object, Value old) {
        return ValidateScale(context.arena, validate_update, object, old);
      };
    }
    const registry::UpdatedObject updated_parent = [this, &context, &name, &updated](Value existing) {
      return UpdatedParent(context.arena, name, updated, existing);
    };
    parameters.endpoint = {};  // a change of the parent's spec
    KS_CO_TRY(registry::WriteResult written, co_await parents_->Update(context, name, updated_parent, nullptr,
                                                                       std::move(validate), std::move(parameters)));
    KS_CO_TRY(const Value parent, parents_->Decode(context.arena, written.object));
    const auto view = ScaleOf(context.arena, *version_, parent);
    if (!view.ok()) co_return meta::NewBadRequest(view.error());
    KS_CO_TRY(written.object, Encoded(written.object, view->scale));
    co_return written;
  }

 private:
  meta::Result<ObjectPtr> Encoded(const ObjectPtr& parent, const Value& scale) const {
    auto object = storage::NewUnstoredObject(*codec_, std::string(parent->key()), scale, parent->resource_version());
    if (!object.ok()) return meta::NewPlainError(object.error());
    return *std::move(object);
  }

  // The parent with the replicas of what `updated` makes of its Scale.
  Task<Value> UpdatedParent(base::Arena& arena, std::string name, const registry::UpdatedObject& updated,
                            Value existing) const {
    Value parent = existing.Clone(arena);
    const auto view = ScaleOf(arena, *version_, parent);
    if (!view.ok()) co_return meta::NewPlainError(view.error());
    const Value live = view->scale;
    auto fields = patch::ToScaleManagedFields(arena, parent.Get("metadata", "managedFields"), paths_);
    if (fields.ok() && !fields->is_null()) live["metadata"].Set(arena, "managedFields", *fields);
    KS_CO_TRY(const Value scale, co_await updated(live));
    auto tracked = patch::FromScaleManagedFields(arena, parent.Get("metadata", "managedFields"),
                                                 scale.Get("metadata", "managedFields"), version_->api_version, paths_);
    if (tracked.ok() && !tracked->is_null()) parent["metadata"].Set(arena, "managedFields", *tracked);
    const Value metadata = scale["metadata"];
    const std::string_view uid = metadata["uid"].as_string(), own = parent.Get("metadata", "uid").as_string();
    if (!uid.empty() && uid != own) {
      co_return meta::NewConflict({version_->kind.group, version_->kind.kind}, name,
                                  "Precondition failed: UID in precondition: " + std::string(uid) +
                                      ", UID in object meta: " + std::string(own));
    }
    if (const Value revision = metadata["resourceVersion"]; !revision.as_string().empty())
      parent["metadata"].Set(arena, "resourceVersion", revision);
    SetNested(arena, parent, version_->spec_replicas, Value(scale.Get("spec", "replicas").as_int()));
    co_return parent;
  }

  // Validating admission of the parent's write in the form of its Scale.
  Task<void> ValidateScale(base::Arena& arena, const registry::ValidateObjectUpdate& validate, Value object,
                           Value old) const {
    const auto now = ScaleOf(arena, *version_, object);
    const auto before = ScaleOf(arena, *version_, old);
    if (!now.ok()) co_return meta::NewPlainError(now.error());
    if (!before.ok()) co_return meta::NewPlainError(before.error());
    co_return co_await validate(now->scale, before->scale);
  }

  const CustomKindPtr kind_;
  const VersionKindPtr version_;
  const std::shared_ptr<const registry::Store> parents_;
  const std::unique_ptr<storage::ResourceCodec> codec_;
  const registry::Strategy row_ = ScaleStrategy();
  const registry::RESTStrategy strategy_{row_};
  std::vector<patch::ReplicasPath> paths_;
};

class ScaleKindCodec final : public endpoints::KindCodec {
 public:
  meta::Result<Value> DecodeRequest(endpoints::Exchange& exchange, const endpoints::Scope& scope,
                                    endpoints::Format format, std::string_view body,
                                    std::string_view field_validation) const override {
    auto decoded = table_->DecodeRequest(exchange, scope, format, body, field_validation);
    if (!decoded.ok()) return meta::NewBadRequest(kUndecodable);
    return decoded;
  }
  void ApplyDefaults(base::Arena& arena, const endpoints::Scope& scope, Value object) const override {
    table_->ApplyDefaults(arena, scope, object);
  }
  Value ToHub(base::Arena& arena, const endpoints::Scope& scope, Value object) const override {
    return table_->ToHub(arena, scope, object);
  }
  Value FromHub(base::Arena& arena, const endpoints::Scope& scope, Value object) const override {
    return table_->FromHub(arena, scope, object);
  }
  meta::Result<Value> ToDocument(base::Arena& arena, const endpoints::Scope& scope, Value object) const override {
    return table_->ToDocument(arena, scope, object);
  }
  Outcome<Document, std::string> FromDocument(base::Arena& arena, const endpoints::Scope& scope, Value document,
                                              Source source, bool strict) const override {
    return table_->FromDocument(arena, scope, document, source, strict);
  }
  bool strategic_merge() const override { return table_->strategic_merge(); }
  bool sorted() const override { return table_->sorted(); }
  bool custom_resource() const override { return table_->custom_resource(); }
  void EncodeJSON(Value object, const endpoints::Scope& scope, std::string& out) const override {
    table_->EncodeJSON(object, scope, out);
  }

 private:
  const endpoints::KindCodecPtr table_ = endpoints::TableCodec();
};

}  // namespace

std::shared_ptr<const registry::REST> NewScaleREST(CustomKindPtr kind, VersionKindPtr version,
                                                   std::shared_ptr<const registry::Store> parents,
                                                   const schema::Struct& type) {
  return std::make_shared<const ScaleREST>(std::move(kind), std::move(version), std::move(parents), type);
}

endpoints::KindCodecPtr ScaleCodec() {
  static const endpoints::KindCodecPtr codec = std::make_shared<const ScaleKindCodec>();
  return codec;
}

std::vector<schema::Column> ScaleColumns() {
  const auto about = [](std::string_view column) {
    return endpoints::ColumnDescription("", "replicationcontrollers", column);
  };
  return {{"Name", "string", "name", 0, about("Name")},
          {"Desired", "integer", "", 0, "Number of desired replicas"},
          {"Available", "integer", "", 0, "Number of actual replicas"},
          {"Age", "date", "", 0, about("Age")}};
}

}  // namespace keelson::apiextensions
