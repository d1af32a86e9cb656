#include "apiextensions/strategy.h"

#include <algorithm>

#include "admission/request_interrupt.h"
#include "validation/structural/custom_resource.h"
#include "validation/structural/object_pipeline.h"

namespace keelson::apiextensions {
namespace {

namespace structural = validation::structural;
using object::Member;
using registry::Call;
using registry::Endpoint;
using registry::FieldErrors;

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

// The row that the base class refers to, made before it.
struct RowHolder {
  explicit RowHolder(VersionKindPtr version_in) : version(std::move(version_in)) {
    for (std::size_t i = 0; i < version->selectable.size(); ++i)
      fields.push_back({.name = version->selectable.name(i), .path = version->selectable.name(i)});
    row.group = version->kind.group;
    row.kind = version->kind.kind;
    row.allow_unconditional_update = false;
    row.core_finalizers = false;
    row.generation = registry::Generation::kCustom;
    row.selectable_fields = fields;
    row.selects_namespace = version->namespaced;
    if (version->status) {
      row.update.reset_fields = kMainReset;
      row.status.reset_fields = kStatusReset;
    }
  }

  VersionKindPtr version;
  std::vector<registry::SelectableField> fields;
  registry::Strategy row;
};

bool OnlyMetadataDiffers(const Value& a, const Value& b) {
  const auto covered = [](const Value& one, const Value& other) {
    return std::ranges::all_of(one.members(), [&](const Member& member) {
      if (member.key == "metadata") return true;
      const Value* const found = other.Find(member.key);
      return found != nullptr && *found == member.value;
    });
  };
  return covered(a, b) && covered(b, a);
}

class CustomResourceStrategy final : private RowHolder, public registry::RESTStrategy {
 public:
  explicit CustomResourceStrategy(VersionKindPtr of) : RowHolder(std::move(of)), RESTStrategy(RowHolder::row) {}

  bool has_defaults() const override { return false; }  // the codec defaults what it decodes
  void Default(base::Arena& arena, Value object) const override {
    structural::Default(arena, object, version->schema.root());
  }
  void PrepareForCreate(const Call& call, Value object) const override {
    if (version->status) object.Erase("status");
    object["metadata"].Set(call.arena, "generation", 1);
  }

  void PrepareForUpdate(const Call& call, const Endpoint& endpoint, Value object, Value old) const override {
    if (endpoint.part == Endpoint::Part::kStatus) return KeepAllButStatus(call, object, old);
    if (version->status) {
      if (const Value* const status = old.Find("status")) {
        object.Set(call.arena, "status", *status);
      } else {
        object.Erase("status");
      }
    }
    if (!OnlyMetadataDiffers(object, old))
      object["metadata"].Set(call.arena, "generation", old.Get("metadata", "generation").as_int() + 1);
  }

  void Validate(const Call& call, bool, Value object, FieldErrors& errors) const override {
    const admission::RequestInterrupt interrupt(call.cancellation);
    auto resource = version->ForValidation();
    resource.interrupt = &interrupt;
    Report(call, structural::ValidateCreate(call.arena, resource, object), errors);
  }

  void ValidateUpdate(const Call& call, const Endpoint& endpoint, Value object, Value old,
                      FieldErrors& errors) const override {
    const admission::RequestInterrupt interrupt(call.cancellation);
    auto resource = version->ForValidation();
    resource.interrupt = &interrupt;
    Report(call,
           endpoint.part == Endpoint::Part::kStatus
               ? structural::ValidateStatusUpdate(call.arena, resource, object, old)
               : structural::ValidateUpdate(call.arena, resource, object, old),
           errors);
  }

  void Warnings(const Call& call, const Endpoint& endpoint, Value object, Value old) const override {
    if (endpoint.part == Endpoint::Part::kStatus) return;
    for (std::string& warning : structural::FinalizerWarnings(object, old)) call.warnings.push_back(std::move(warning));
  }

  bool TableRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) const override {
    version->columns.AppendRow(arena, object, clock, cells);
    return true;
  }

 private:
  static void Report(const Call& call, structural::Verdict verdict, FieldErrors& errors) {
    std::ranges::move(verdict.errors, std::back_inserter(errors));
    std::ranges::move(verdict.warnings, std::back_inserter(call.warnings));
  }

  static void KeepAllButStatus(const Call& call, Value object, const Value& old) {
    const Value* const status = object.Find("status");
    const Value kept = status == nullptr ? Value() : *status;
    const bool had = status != nullptr;
    const Value managed = object.Get("metadata", "managedFields");
    object.Clear();
    const Value copy = old.Clone(call.arena);
    for (const Member& member : copy.members()) {
      if (member.key != "status") object.AppendMember(call.arena, member.key, member.value);
    }
    if (had) object.Set(call.arena, "status", kept);
    Value metadata = object.EnsureMap(call.arena, "metadata");
    if (managed.is_null()) {
      metadata.Erase("managedFields");
    } else {
      metadata.Set(call.arena, "managedFields", managed);
    }
  }
};

}  // namespace

std::shared_ptr<const registry::RESTStrategy> NewStrategy(VersionKindPtr version) {
  return std::make_shared<const CustomResourceStrategy>(std::move(version));
}

}  // namespace keelson::apiextensions
