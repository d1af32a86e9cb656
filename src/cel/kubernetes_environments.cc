#include "cel/kubernetes_environments.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/hash.h"
#include "cel/cost_estimator.h"
#include "cel/decl_type.h"
#include "cel/expr_builder.h"
#include "cel/literals.h"
#include "cel/program.h"
#include "cel/walk.h"

namespace keelson::cel {
namespace {

// Struct types as rows "type field fieldtype".
constexpr std::string_view kUserInfoRows = R"(
kubernetes.UserInfo username string
kubernetes.UserInfo uid string
kubernetes.UserInfo groups list(string)
kubernetes.UserInfo extra map(string,list(string))
)";

constexpr std::string_view kAdmissionRows = R"(
kubernetes.GroupVersionKind group string
kubernetes.GroupVersionKind version string
kubernetes.GroupVersionKind kind string
kubernetes.GroupVersionResource group string
kubernetes.GroupVersionResource version string
kubernetes.GroupVersionResource resource string
kubernetes.UserInfo username string
kubernetes.UserInfo uid string
kubernetes.UserInfo groups list(string)
kubernetes.UserInfo extra map(string,list(string))
kubernetes.AdmissionRequest kind kubernetes.GroupVersionKind
kubernetes.AdmissionRequest resource kubernetes.GroupVersionResource
kubernetes.AdmissionRequest subResource string
kubernetes.AdmissionRequest requestKind kubernetes.GroupVersionKind
kubernetes.AdmissionRequest requestResource kubernetes.GroupVersionResource
kubernetes.AdmissionRequest requestSubResource string
kubernetes.AdmissionRequest name string
kubernetes.AdmissionRequest namespace string
kubernetes.AdmissionRequest operation string
kubernetes.AdmissionRequest userInfo kubernetes.UserInfo
kubernetes.AdmissionRequest dryRun bool
kubernetes.AdmissionRequest options dyn
kubernetes.NamespaceSpec finalizers list(string)
kubernetes.NamespaceCondition status string
kubernetes.NamespaceCondition type string
kubernetes.NamespaceCondition lastTransitionTime timestamp
kubernetes.NamespaceCondition message string
kubernetes.NamespaceCondition reason string
kubernetes.NamespaceStatus conditions list(kubernetes.NamespaceCondition)
kubernetes.NamespaceStatus phase string
kubernetes.NamespaceMetadata name string
kubernetes.NamespaceMetadata generateName string
kubernetes.NamespaceMetadata namespace string
kubernetes.NamespaceMetadata labels map(string,string)
kubernetes.NamespaceMetadata annotations map(string,string)
kubernetes.NamespaceMetadata UID string
kubernetes.NamespaceMetadata creationTimestamp timestamp
kubernetes.NamespaceMetadata deletionGracePeriodSeconds int
kubernetes.NamespaceMetadata deletionTimestamp timestamp
kubernetes.NamespaceMetadata generation int
kubernetes.NamespaceMetadata resourceVersion string
kubernetes.NamespaceMetadata finalizers list(string)
kubernetes.Namespace metadata kubernetes.NamespaceMetadata
kubernetes.Namespace spec kubernetes.NamespaceSpec
kubernetes.Namespace status kubernetes.NamespaceStatus
)";

constexpr std::string_view kReviewRows = R"(
kubernetes.SelectorRequirement key string
kubernetes.SelectorRequirement operator string
kubernetes.SelectorRequirement values list(string)
kubernetes.FieldSelectorAttributes rawSelector string
kubernetes.FieldSelectorAttributes requirements list(kubernetes.SelectorRequirement)
kubernetes.LabelSelectorAttributes rawSelector string
kubernetes.LabelSelectorAttributes requirements list(kubernetes.SelectorRequirement)
kubernetes.ResourceAttributes namespace string
kubernetes.ResourceAttributes verb string
kubernetes.ResourceAttributes group string
kubernetes.ResourceAttributes version string
kubernetes.ResourceAttributes resource string
kubernetes.ResourceAttributes subresource string
kubernetes.ResourceAttributes name string
kubernetes.ResourceAttributes fieldSelector kubernetes.FieldSelectorAttributes
kubernetes.ResourceAttributes labelSelector kubernetes.LabelSelectorAttributes
kubernetes.NonResourceAttributes path string
kubernetes.NonResourceAttributes verb string
kubernetes.SubjectAccessReviewSpec resourceAttributes kubernetes.ResourceAttributes
kubernetes.SubjectAccessReviewSpec nonResourceAttributes kubernetes.NonResourceAttributes
kubernetes.SubjectAccessReviewSpec user string
kubernetes.SubjectAccessReviewSpec groups list(string)
kubernetes.SubjectAccessReviewSpec extra map(string,list(string))
kubernetes.SubjectAccessReviewSpec uid string
)";

constexpr std::string_view kDeviceRows = R"(
kubernetes.DRADevice driver string
kubernetes.DRADevice attributes map(string,map(string,any))
kubernetes.DRADevice capacity map(string,map(string,kubernetes.Quantity))
)";
constexpr std::string_view kListDeviceRows = R"(
kubernetes.DRADevice driver string
kubernetes.DRADevice attributes map(string,map(string,dyn))
kubernetes.DRADevice capacity map(string,map(string,kubernetes.Quantity))
)";
constexpr std::string_view kConsumableRows = "kubernetes.DRADevice allowMultipleAllocations bool\n";

constexpr std::pair<std::string_view, const Type*> kNamedTypes[] = {
    {"bool", &kBoolType}, {"bytes", &kBytesType},    {"double", &kDoubleType}, {"duration", &kDurationType},
    {"int", &kIntType},   {"null_type", &kNullType}, {"string", &kStringType}, {"timestamp", &kTimestampType},
    {"uint", &kUintType}, {"list", &kListDynType},   {"map", &kMapDynType},
};

// Struct types from rows. Like apiserver's DeclTypeProvider it also has scalars by their declared names
// ("timestamp").
class RowTypes : public TypeProvider {
 public:
  explicit RowTypes(std::initializer_list<std::string_view> tables) {
    for (std::string_view rows : tables) {
      while (!rows.empty()) {
        const auto end = std::min(rows.find('\n'), rows.size());
        AddRow(rows.substr(0, end));
        rows.remove_prefix(std::min(end + 1, rows.size()));
      }
    }
  }

  const Type* FindType(std::string_view name) const override {
    if (const auto found = types_.find(name); found != types_.end()) return found->second;
    for (const auto& [known, type] : kNamedTypes)
      if (known == name) return type;
    return nullptr;
  }

  const Type* FindFieldType(std::string_view type, std::string_view field) const override {
    for (const auto& row : fields_)
      if (row.field == field && row.type == type) return row.field_type;
    return nullptr;
  }

 private:
  struct Field {
    std::string_view type;
    std::string_view field;
    const Type* field_type;
  };

  void AddRow(std::string_view row) {
    const auto first = row.find(' ');
    if (first == row.npos) return;
    const auto second = row.find(' ', first + 1);
    const auto type = row.substr(0, first);
    std::string_view text = row.substr(second + 1);
    fields_.push_back({type, row.substr(first + 1, second - first - 1), ReadType(text)});
    StructType(type);
  }

  const Type* StructType(std::string_view name) {
    auto& slot = types_[name];
    if (slot == nullptr) slot = arena_.New<Type>(Type{.kind = Kind::kStruct, .name = name});
    return slot;
  }

  const Type* ReadType(std::string_view& text) {
    const auto end = std::min(text.find_first_of("(),"), text.size());
    const auto name = text.substr(0, end);
    text.remove_prefix(end);
    if (name == "list" || name == "map") {
      text.remove_prefix(1);
      const Type* first = ReadType(text);
      if (name == "list") {
        text.remove_prefix(1);
        return NewListType(arena_, first);
      }
      text.remove_prefix(1);
      const Type* second = ReadType(text);
      text.remove_prefix(1);
      return NewMapType(arena_, first, second);
    }
    if (name == "dyn") return &kDynType;
    if (name == "any") return &kAnyType;
    if (name == kQuantityType.name) return &kQuantityType;
    for (const auto& [known, type] : kNamedTypes)
      if (known == name) return type;
    return StructType(name);
  }

  base::Arena arena_;
  base::StringViewMap<const Type*> types_;
  std::vector<Field> fields_;
};

// Object{…} with any fields, nested types named by path, and JSONPatch{op, path, from, value}. One per policy: it keeps
// the types that the policy's expressions name.
class PatchTypes : public TypeProvider {
 public:
  const Type* FindType(std::string_view name) const override {
    if (name == kJSONPatchType.name) return &kJSONPatchType;
    if (name == kObjectType.name) return &kObjectType;
    if (!name.starts_with("Object.")) return nullptr;
    auto found = nested_.find(name);
    if (found == nested_.end()) {
      const std::string_view kept = arena_.Copy(name);
      found = nested_.emplace(kept, arena_.New<Type>(Type{.kind = Kind::kStruct, .name = kept})).first;
    }
    return found->second;
  }
  const Type* FindFieldType(std::string_view type, std::string_view field) const override {
    if (type == kJSONPatchType.name) {
      if (field == "op" || field == "path" || field == "from") return &kStringType;
      return field == "value" ? &kDynType : &kUnspecifiedType;  // unknown fields exist, with no type
    }
    return type == kObjectType.name || type.starts_with("Object.") ? &kDynType : nullptr;
  }

 private:
  mutable base::Arena arena_;
  mutable base::StringViewMap<const Type*> nested_;
};

std::vector<Variable> AdmissionVariableList(AdmissionVariables variables, const RowTypes& types) {
  std::vector<Variable> list{{"object", &kDynType},
                             {"oldObject", &kDynType},
                             {"namespaceObject", types.FindType("kubernetes.Namespace")},
                             {"request", types.FindType("kubernetes.AdmissionRequest")}};
  if (variables.params) list.push_back({"params", &kDynType});
  if (variables.authorizer) {
    list.push_back({"authorizer", &kAuthorizerType});
    list.push_back({"authorizer.requestResource", &kResourceCheckType});
  }
  return list;
}

const std::shared_ptr<const RowTypes>& AdmissionTypes() {
  static const auto types = std::make_shared<const RowTypes>(std::initializer_list<std::string_view>{kAdmissionRows});
  return types;
}

EnvironmentPtr MakeAdmissionEnvironment(ExpressionMode mode, AdmissionVariables variables) {
  const auto& types = AdmissionTypes();
  auto env = BaseEnvironment(mode)->Extend(
      {.variables = AdmissionVariableList(variables, *types), .types = types, .permanent = true});
  return variables.patch_types ? env->Extend({.libraries = {Library::kJSONPatch}}) : env;
}

std::string TypeList(std::span<const Type* const> types) {
  std::string out = "[";
  for (const Type* type : types) {
    if (out.size() > 1) out += ' ';
    out += ToString(*type);
  }
  return out + "]";
}

// A place in a device and the size of its value.
struct Place {
  std::uint64_t max = 0;
  const Place* key = nullptr;
  const Place* element = nullptr;
};
constexpr std::uint64_t kAttributeBytesMax = 64;  // also above the 48 values of a list
constexpr Place kDomain{63}, kIdentifier{32}, kDriver{63}, kMultiple{1}, kAttribute{kAttributeBytesMax}, kQuantity{0};
constexpr Place kAttributes{32, &kIdentifier, &kAttribute};
constexpr Place kAttributeDomains{32, &kDomain, &kAttributes};
constexpr Place kCapacities{32, &kIdentifier, &kQuantity};
constexpr Place kCapacityDomains{32, &kDomain, &kCapacities};
constexpr Place kDevice{0};

// Sizes of a device: names, values and counts are limited by the API.
class DeviceSizes : public SizeEstimator {
 public:
  std::optional<Estimate> EstimateSize(std::span<const std::string_view> path, const Type&) const override {
    if (path.empty() || path[0] != "device") return std::nullopt;
    const Place* place = &kDevice;
    for (const auto part : path.subspan(1)) {
      place = Step(*place, part);
      if (place == nullptr) return std::nullopt;
    }
    return Estimate{0, place->max};
  }

 private:
  static const Place* Step(const Place& place, std::string_view part) {
    if (part == "@items" || part == "@values") return place.element;
    if (part == "@keys") return place.key;
    if (&place == &kDevice) {
      if (part == "driver") return &kDriver;
      if (part == "allowMultipleAllocations") return &kMultiple;
      if (part == "attributes") return &kAttributeDomains;
      if (part == "capacity") return &kCapacityDomains;
      return nullptr;
    }
    return place.element == &kAttribute ? &kAttribute : nullptr;
  }
};

}  // namespace

Outcome<CompilationPtr, std::string> CompileExpression(const EnvironmentPtr& env, std::string_view expression,
                                                       std::span<const Type* const> results, ResultWording wording) {
  CompilationPtr compiled = CompileShared(env, expression);
  if (compiled->ast == nullptr) return compiled->error;
  const Type& got = compiled->ast->result_type();
  const auto fits = [&got](const Type* result) { return result->kind == Kind::kAny || IsExactType(*result, got); };
  if (std::ranges::any_of(results, fits)) return compiled;
  std::string reason = results.size() == 1 ? "must evaluate to " + ToString(*results[0])
                                           : "must evaluate to one of " + TypeList(results);
  if (wording == ResultWording::kGot) reason += " but got " + ToString(got);
  return reason;
}

Outcome<CompilationPtr, std::string> CompileExpression(const EnvironmentPtr& env, std::string_view expression,
                                                       std::initializer_list<const Type*> results,
                                                       ResultWording wording) {
  return CompileExpression(env, expression, std::span<const Type* const>(results.begin(), results.size()), wording);
}

EnvironmentPtr AdmissionEnvironment(ExpressionMode mode, AdmissionVariables variables) {
  static std::mutex mutex;
  static std::array<EnvironmentPtr, 16> made;
  const std::size_t index = (mode == ExpressionMode::kStored ? 8 : 0) + (variables.params ? 4 : 0) +
                            (variables.authorizer ? 2 : 0) + (variables.patch_types ? 1 : 0);
  const std::lock_guard lock(mutex);
  if (!made[index]) made[index] = MakeAdmissionEnvironment(mode, variables);
  return variables.patch_types ? made[index]->Extend({.types = std::make_shared<const PatchTypes>()}) : made[index];
}

EnvironmentPtr TypeCheckEnvironment(const Type& object, const Type* params,
                                    const std::vector<std::shared_ptr<const TypeProvider>>& types) {
  const auto& rows = AdmissionTypes();
  std::vector<Variable> variables{{"namespaceObject", rows->FindType("kubernetes.Namespace")},
                                  {"request", rows->FindType("kubernetes.AdmissionRequest")},
                                  {"object", &object},
                                  {"oldObject", &object},
                                  {"authorizer", &kAuthorizerType}};
  if (params != nullptr) variables.push_back({"params", params});
  auto env = BaseEnvironment(ExpressionMode::kStored)->Extend({.variables = std::move(variables), .types = rows});
  for (const auto& provider : types) env = env->Extend({.types = provider});
  return env;
}

// kubernetes.variables, whose fields are added as the policy's variables compile.
class PolicyCompiler::VariableTypes : public TypeProvider {
 public:
  static constexpr Type kVariables{.kind = Kind::kStruct, .name = "kubernetes.variables"};

  const Type* FindType(std::string_view name) const override { return name == kVariables.name ? &kVariables : nullptr; }
  const Type* FindFieldType(std::string_view type, std::string_view field) const override {
    if (type != kVariables.name) return nullptr;
    const auto found = fields_.find(field);
    return found == fields_.end() ? nullptr : found->second;
  }
  void Add(std::string_view name, const Type& type) { fields_.insert_or_assign(std::string(name), Keep(type)); }

 private:
  // Basic types, lists and maps keep their type; everything else is dyn.
  const Type* Keep(const Type& type) {
    switch (type.kind) {
      case Kind::kAny:
        return &kAnyType;
      case Kind::kBool:
      case Kind::kBytes:
      case Kind::kDouble:
      case Kind::kDuration:
      case Kind::kInt:
      case Kind::kNull:
      case Kind::kString:
      case Kind::kTimestamp:
      case Kind::kUint:
        return type.wrapper ? &kDynType : arena_.New<Type>(type);
      case Kind::kList:
        return NewListType(arena_, Keep(type.param(0)));
      case Kind::kMap:
        return NewMapType(arena_, Keep(type.param(0)), Keep(type.param(1)));
      default:
        return &kDynType;
    }
  }
  base::Arena arena_;
  std::map<std::string, const Type*, std::less<>> fields_;
};

PolicyCompiler::PolicyCompiler(ExpressionMode mode, bool params, bool composition)
    : mode_(mode), params_(params), types_(composition ? std::make_shared<VariableTypes>() : nullptr) {}

PolicyCompiler::PolicyCompiler(const EnvironmentPtr& base)
    : mode_(ExpressionMode::kStored), params_(false), types_(std::make_shared<VariableTypes>()) {
  const auto env = base->Extend({.variables = {{"variables", &VariableTypes::kVariables}}, .types = types_});
  for (EnvironmentPtr& made : made_) made = env;
}

PolicyCompiler::~PolicyCompiler() = default;

EnvironmentPtr PolicyCompiler::environment(bool authorizer, bool patch_types) {
  auto& made = made_[(authorizer ? 2 : 0) + (patch_types ? 1 : 0)];
  if (made) return made;
  made = AdmissionEnvironment(mode_, {.params = params_, .authorizer = authorizer, .patch_types = patch_types});
  if (types_) made = made->Extend({.variables = {{"variables", &VariableTypes::kVariables}}, .types = types_});
  return made;
}

Outcome<CompilationPtr, std::string> PolicyCompiler::AddVariable(std::string_view name, std::string_view expression) {
  auto compiled = CompileExpression(environment(true), expression, {&kAnyType});
  const bool usable = compiled.ok() && (*compiled)->program != nullptr;
  types_->Add(name, usable ? (*compiled)->ast->result_type() : kDynType);
  return compiled;
}

EnvironmentPtr ClaimsEnvironment() {
  static constexpr const Type* kParams[] = {&kStringType, &kAnyType};
  static constexpr Type kClaims{.kind = Kind::kMap, .param_count = 2, .name = "map", .params = kParams};
  static const EnvironmentPtr env =
      BaseEnvironment(ExpressionMode::kStored)
          ->Extend({.variables = {{"claims", &kClaims}},
                    .types = std::make_shared<const RowTypes>(std::initializer_list<std::string_view>{}),
                    .permanent = true});
  return env;
}

EnvironmentPtr UserEnvironment() {
  static const auto types = std::make_shared<const RowTypes>(std::initializer_list<std::string_view>{kUserInfoRows});
  static const EnvironmentPtr env =
      BaseEnvironment(ExpressionMode::kStored)
          ->Extend(
              {.variables = {{"user", types->FindType("kubernetes.UserInfo")}}, .types = types, .permanent = true});
  return env;
}

EnvironmentPtr SubjectAccessReviewEnvironment() {
  static const auto types = std::make_shared<const RowTypes>(std::initializer_list<std::string_view>{kReviewRows});
  static const EnvironmentPtr env =
      BaseEnvironment(ExpressionMode::kStored)
          ->Extend({.variables = {{"request", types->FindType("kubernetes.SubjectAccessReviewSpec")}},
                    .types = types,
                    .permanent = true});
  return env;
}

SelectorUse FindSelectorUse(const Expr& e) {
  SelectorUse use;
  std::string_view field;
  if (e.kind == ExprKind::kSelect) field = e.text;
  if (e.kind == ExprKind::kCall && e.text == operators::kOptSelect && e.count == 2) field = e.args[1]->text;
  use.field_selector = field == "fieldSelector";
  use.label_selector = field == "labelSelector";
  ForEachChild(e, [&use](const Expr& child) {
    const SelectorUse inner = FindSelectorUse(child);
    use.field_selector |= inner.field_selector;
    use.label_selector |= inner.label_selector;
  });
  return use;
}

EnvironmentPtr DeviceEnvironment(ExpressionMode mode, DeviceFeatures features) {
  static std::mutex mutex;
  static std::array<EnvironmentPtr, 8> made;
  const std::size_t index = (mode == ExpressionMode::kStored ? 4 : 0) + (features.consumable_capacity ? 2 : 0) +
                            (features.list_type_attributes ? 1 : 0);
  const std::lock_guard lock(mutex);
  if (made[index]) return made[index];
  // Stored expressions see everything, whatever gates are on.
  const bool stored = mode == ExpressionMode::kStored;
  const std::string_view rows = features.list_type_attributes ? kListDeviceRows : kDeviceRows;
  const auto types = std::make_shared<const RowTypes>(std::initializer_list<std::string_view>{
      rows, stored || features.consumable_capacity ? kConsumableRows : std::string_view()});
  EnvironmentOptions more{.libraries = {Library::kBindings},
                          .variables = {{"device", types->FindType("kubernetes.DRADevice")}},
                          .types = types,
                          .permanent = true};
  if (stored) more.libraries.push_back(Library::kDeviceLists);
  made[index] = BaseEnvironment(mode)->Extend(std::move(more));
  return made[index];
}

Outcome<DeviceSelector, std::string> CompileDeviceSelector(std::string_view expression, ExpressionMode mode,
                                                           DeviceFeatures features) {
  const auto env = DeviceEnvironment(mode, features);
  const CompilationPtr compiled = CompileShared(env, expression);
  if (compiled->ast == nullptr) return compiled->error;
  const Type& got = compiled->ast->result_type();
  const bool fits = (got.kind == Kind::kBool && !got.wrapper) || got.kind == Kind::kAny ||
                    (features.list_type_attributes && got.kind == Kind::kDyn);
  if (!fits) return "must evaluate to bool or the unknown type, not " + ToString(got);
  const DeviceSizes sizes;
  const std::uint64_t max_cost = EstimateCost(*compiled->ast, {.sizes = &sizes}).max;
  return DeviceSelector{compiled->ast, compiled->program, compiled->program ? "" : compiled->error, max_cost};
}

}  // namespace keelson::cel
