#include "registry/autoscaling/rest/scale.h"

#include <vector>

#include "meta/selector.h"
#include "patch/managed_fields.h"
#include "registry/cells.h"
#include "storage/schema_codec.h"
#include "validation/errors.h"

namespace keelson::registry::autoscaling {
namespace {

// The selector as the text of a list's labelSelector.
std::string SelectorText(Value selector, SelectorForm form) {
  std::vector<meta::LabelSelector::Requirement> requirements;
  using Operator = meta::LabelSelector::Operator;
  const Value labels = form == SelectorForm::kMap ? selector : selector["matchLabels"];
  for (const auto& label : labels.members()) {
    requirements.push_back({std::string(label.key), Operator::kEquals, {std::string(label.value.as_string())}});
  }
  for (const Value expression : selector["matchExpressions"].items()) {
    const std::string_view op = expression["operator"].as_string();
    const Operator kind = op == "In"       ? Operator::kIn
                          : op == "NotIn"  ? Operator::kNotIn
                          : op == "Exists" ? Operator::kExists
                                           : Operator::kDoesNotExist;
    std::vector<std::string> values;
    for (const Value value : expression["values"].items()) values.emplace_back(value.as_string());
    requirements.push_back({std::string(expression["key"].as_string()), kind, std::move(values)});
  }
  return meta::LabelSelector::Of(std::move(requirements)).ToString();
}

Value ScaleOf(base::Arena& arena, Value parent, SelectorForm form) {
  Value scale = Value::Map(arena);
  scale.Set(arena, "kind", "Scale");
  scale.Set(arena, "apiVersion", "autoscaling/v1");
  Value metadata = Value::Map(arena);
  for (const std::string_view key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Value value = parent["metadata"][key]; !value.is_null()) metadata.Set(arena, key, value);
  }
  scale.Set(arena, "metadata", metadata);
  Value spec = Value::Map(arena);
  if (const auto replicas = parent.Get("spec", "replicas").as_int(); replicas != 0)
    spec.Set(arena, "replicas", replicas);
  scale.Set(arena, "spec", spec);
  Value status = Value::Map(arena);
  if (const auto replicas = parent.Get("status", "replicas").as_int(); replicas != 0)
    status.Set(arena, "replicas", replicas);
  const std::string selector = SelectorText(parent.Get("spec", "selector"), form);
  if (!selector.empty()) status.Set(arena, "selector", Value::String(arena, selector));
  scale.Set(arena, "status", status);
  return scale;
}

void ScaleRow(base::Arena& arena, const base::Clock& clock, Value scale, Value cells) {
  cells.Append(arena, scale.Get("metadata", "name"));
  cells.Append(arena, scale.Get("spec", "replicas").as_int());
  cells.Append(arena, scale.Get("status", "replicas").as_int());
  cells.Append(arena, Value::String(arena, Age(clock, scale.Get("metadata", "creationTimestamp"))));
}

const Strategy& ScaleStrategy() {
  static const Strategy strategy = [] {
    Strategy row;
    row.group = "autoscaling";
    row.kind = "Scale";
    row.table_row = ScaleRow;
    return row;
  }();
  return strategy;
}

class ScaleREST final : public REST, public Getter, public Updater {
 public:
  ScaleREST(std::shared_ptr<const Store> workloads, SelectorForm form, const schema::Struct& type)
      : workloads_(std::move(workloads)),
        form_(form),
        codec_(storage::NewSchemaCodec(
            {.resource = workloads_->options().resource, .storage = {"autoscaling", "v1", "Scale"}, .type = &type})) {}

  const storage::ResourceCodec& codec() const override { return *codec_; }
  const RESTStrategy& rest_strategy() const override { return strategy_; }
  const Getter* getter() const override { return this; }
  const Updater* updater() const override { return this; }

  Task<ObjectPtr> Get(std::string name_space, std::string name, std::string resource_version,
                      telemetry::Caller caller) const override {
    KS_CO_TRY(const ObjectPtr workload,
              co_await workloads_->Get(std::move(name_space), std::move(name), std::move(resource_version), caller));
    co_return ToScale(workload);
  }

  Task<WriteResult> Update(request::Context& context, std::string name, UpdatedObject updated, ValidateObject,
                           ValidateObjectUpdate validate_update, UpdateParameters parameters) const override {
    ValidateObjectUpdate validate;
    if (validate_update) {
      validate = [this, &context, validate_update](Value object, Value old) {
        return validate_update(ScaleOf(context.arena, object, form_), ScaleOf(context.arena, old, form_));
      };
    }
    const UpdatedObject updated_workload = [this, &context, &name, &updated](Value existing) {
      return UpdatedWorkload(context, name, updated, existing);
    };
    parameters.endpoint = {};  // a change of the workload's spec
    KS_CO_TRY(WriteResult written, co_await workloads_->Update(context, name, updated_workload, nullptr,
                                                               std::move(validate), std::move(parameters)));
    KS_CO_TRY(written.object, ToScale(written.object));
    co_return written;
  }

 private:
  meta::Result<ObjectPtr> ToScale(const ObjectPtr& workload) const {
    base::Arena arena;
    KS_TRY(const Value parent, workloads_->Decode(arena, workload));
    auto scale = storage::NewUnstoredObject(*codec_, std::string(workload->key()), ScaleOf(arena, parent, form_),
                                            workload->resource_version());
    if (!scale.ok()) return meta::NewPlainError(scale.error());
    return *std::move(scale);
  }

  // The workload with the replicas of what `updated` makes of its Scale.
  Task<Value> UpdatedWorkload(request::Context& context, std::string name, const UpdatedObject& updated,
                              Value existing) const {
    base::Arena& arena = context.arena;
    Value parent = existing.Clone(arena);
    const std::string& group = workloads_->options().resource.group;
    const std::string parent_version = group.empty() ? "v1" : group + "/v1";
    const patch::ReplicasPath paths[] = {{parent_version, "spec.replicas"}};
    const Value live = ScaleOf(arena, parent, form_);
    if (auto fields = patch::ToScaleManagedFields(arena, parent.Get("metadata", "managedFields"), paths);
        fields.ok() && !fields->is_null()) {
      live["metadata"].Set(arena, "managedFields", *fields);
    }
    KS_CO_TRY(const Value scale, co_await updated(live));
    auto tracked = patch::FromScaleManagedFields(arena, parent.Get("metadata", "managedFields"),
                                                 scale.Get("metadata", "managedFields"), parent_version, paths);
    if (tracked.ok() && !tracked->is_null()) parent["metadata"].Set(arena, "managedFields", *tracked);
    KS_CO_RETURN_IF_ERROR(Check(name, scale, parent));
    const Value version = scale.Get("metadata", "resourceVersion");
    if (version.is_null()) {
      parent["metadata"].Erase("resourceVersion");
    } else {
      parent["metadata"].Set(arena, "resourceVersion", version);
    }
    parent.EnsureMap(arena, "spec").Set(arena, "replicas", scale.Get("spec", "replicas").as_int());
    co_return parent;
  }

  meta::Result<void> Check(const std::string& name, Value scale, Value parent) const {
    const std::string_view uid = scale.Get("metadata", "uid").as_string();
    const std::string_view own = parent.Get("metadata", "uid").as_string();
    if (!uid.empty() && uid != own) {
      const meta::GroupResource& resource = workloads_->options().resource;
      return meta::NewConflict({resource.group, resource.resource + "/scale"}, name,
                               "Precondition failed: UID in precondition: " + std::string(uid) +
                                   ", UID in object meta: " + std::string(own));
    }
    if (const std::int64_t replicas = scale.Get("spec", "replicas").as_int(); replicas < 0) {
      const meta::FieldErrors errors = {
          validation::Invalid(FieldPath("spec.replicas"), Value(replicas), "must be greater than or equal to 0")};
      return meta::NewInvalid({"autoscaling", "Scale"}, name, errors);
    }
    return {};
  }

  const std::shared_ptr<const Store> workloads_;
  const SelectorForm form_;
  const std::unique_ptr<storage::ResourceCodec> codec_;
  const RESTStrategy strategy_{ScaleStrategy()};
};

}  // namespace

std::shared_ptr<const REST> NewScaleREST(std::shared_ptr<const Store> workloads, SelectorForm form,
                                         const schema::Struct& type) {
  return std::make_shared<const ScaleREST>(std::move(workloads), form, type);
}

std::span<const schema::Column> ScaleColumns() {
  static constexpr schema::Column kColumns[] = {
      {.name = "Name", .type = "string", .format = "", .priority = 0},
      {.name = "Desired",
       .type = "integer",
       .format = "",
       .priority = 0,
       .description = "replicas is the desired number of instances for the scaled object."},
      {.name = "Available",
       .type = "integer",
       .format = "",
       .priority = 0,
       .description = "replicas is the actual number of observed instances of the scaled object."},
      {.name = "Age", .type = "string", .format = "", .priority = 0},
  };
  return kColumns;
}

}  // namespace keelson::registry::autoscaling
