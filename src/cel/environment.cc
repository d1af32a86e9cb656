#include "cel/environment.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "base/arena.h"
#include "base/check.h"
#include "base/hash.h"

namespace keelson::cel {
namespace {

// Reads types and overloads from the rows of a library.
class RowReader {
 public:
  RowReader(std::string_view row, base::Arena& arena) : rest_(row), arena_(arena) {}

  Overload Read() {
    Overload overload;
    overload.id = Word();
    overload.member = Word() == ".";
    overload.function = Word();
    Expect('(');
    std::vector<const Type*> args;
    while (!Accept(')')) {
      args.push_back(ReadType());
      Accept(' ');
    }
    Expect(' ');
    overload.result = ReadType();
    auto** list = arena_.NewArray<const Type*>(args.size());
    std::copy(args.begin(), args.end(), list);
    overload.args = {list, args.size()};
    overload.type_param_count = static_cast<std::uint8_t>(params_.size());
    return overload;
  }

 private:
  std::string_view Word() {
    const auto end = rest_.find(' ');
    const auto word = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return word;
  }
  bool Accept(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void Expect(char c) { KS_CHECK(Accept(c)); }

  const Type* ReadType() {
    const auto end = rest_.find_first_of("(), ");
    const auto name = rest_.substr(0, end);
    rest_.remove_prefix(name.size());
    if (name == "list") {
      Expect('(');
      const Type* element = ReadType();
      Expect(')');
      return NewListType(arena_, element);
    }
    if (name == "map") {
      Expect('(');
      const Type* key = ReadType();
      Expect(',');
      const Type* value = ReadType();
      Expect(')');
      return NewMapType(arena_, key, value);
    }
    if (name == "optional_type" || (name == "type" && !rest_.empty() && rest_.front() == '(')) {
      Expect('(');
      const Type* param = ReadType();
      Expect(')');
      return name == "type" ? NewTypeTypeWithParam(arena_, param) : NewOptionalType(arena_, param);
    }
    if (name.size() == 1) return Param(name);
    return Named(name);
  }

  const Type* Param(std::string_view name) {
    for (const Type* param : params_)
      if (param->name == name) return param;
    params_.push_back(arena_.New<Type>(
        Type{.kind = Kind::kTypeParam, .var = static_cast<std::uint32_t>(params_.size() + 1), .name = name}));
    return params_.back();
  }

  static const Type* Named(std::string_view name);

  std::string_view rest_;
  base::Arena& arena_;
  std::vector<const Type*> params_;
};

// `list` and `map` as names: their parameters are free and never bound.
constexpr Type kParamA{.kind = Kind::kTypeParam, .name = "A"};
constexpr Type kParamB{.kind = Kind::kTypeParam, .name = "B"};
constexpr const Type* kParamsAB[] = {&kParamA, &kParamB};
constexpr Type kListNameType{.kind = Kind::kList, .param_count = 1, .name = "list", .params = kParamsAB};
constexpr Type kMapNameType{.kind = Kind::kMap, .param_count = 2, .name = "map", .params = kParamsAB};

constexpr const Type* kLanguageTypes[] = {&kBoolType,   &kBytesType,     &kDoubleType,  &kDurationType,
                                          &kIntType,    &kListNameType,  &kMapNameType, &kNullType,
                                          &kStringType, &kTimestampType, &kTypeType,    &kUintType};

struct LibraryType {
  Library library;
  const Type* type;
  bool named = false;  // expressions may name the type
};
constexpr Type kOptionalName{.kind = Kind::kOpaque, .name = "optional_type"};  // without its parameter
constexpr LibraryType kLibraryTypes[] = {
    {Library::kURLs, &kURLType},         {Library::kQuantity, &kQuantityType},
    {Library::kIP, &kIPType, true},      {Library::kCIDR, &kCIDRType, true},
    {Library::kSemver, &kSemverType},    {Library::kFormat, &kFormatType},
    {Library::kAuthz, &kAuthorizerType}, {Library::kAuthz, &kPathCheckType},
    {Library::kAuthz, &kGroupCheckType}, {Library::kAuthz, &kResourceCheckType},
    {Library::kAuthz, &kDecisionType},   {Library::kOptionals, &kOptionalName, true},
};

const Type* RowReader::Named(std::string_view name) {
  if (name == "timestamp") return &kTimestampType;
  if (name == "duration") return &kDurationType;
  if (name == "dyn") return &kDynType;
  for (const Type* type : kLanguageTypes)
    if (type->name == name) return type;
  for (const auto& row : kLibraryTypes)
    if (row.type->name == name) return row.type;
  KS_CHECK(false);
  return nullptr;
}

// Fields of the well-known protobuf messages that expressions may build.
struct MessageField {
  std::string_view message;
  std::string_view field;
  const Type* type;
};
constexpr MessageField kMessageFields[] = {
    {"google.protobuf.Any", "type_url", &kStringType},
    {"google.protobuf.Any", "value", &kBytesType},
    {"google.protobuf.BoolValue", "value", &kBoolType},
    {"google.protobuf.BytesValue", "value", &kBytesType},
    {"google.protobuf.DoubleValue", "value", &kDoubleType},
    {"google.protobuf.Duration", "seconds", &kIntType},
    {"google.protobuf.Duration", "nanos", &kIntType},
    {"google.protobuf.FloatValue", "value", &kDoubleType},
    {"google.protobuf.Int32Value", "value", &kIntType},
    {"google.protobuf.Int64Value", "value", &kIntType},
    {"google.protobuf.ListValue", "values", &kListDynType},
    {"google.protobuf.StringValue", "value", &kStringType},
    {"google.protobuf.Struct", "fields", &kMapStringDynType},
    {"google.protobuf.Timestamp", "seconds", &kIntType},
    {"google.protobuf.Timestamp", "nanos", &kIntType},
    {"google.protobuf.UInt32Value", "value", &kUintType},
    {"google.protobuf.UInt64Value", "value", &kUintType},
    {"google.protobuf.Value", "null_value", &kIntType},
    {"google.protobuf.Value", "number_value", &kDoubleType},
    {"google.protobuf.Value", "string_value", &kStringType},
    {"google.protobuf.Value", "bool_value", &kBoolType},
    {"google.protobuf.Value", "struct_value", &kMapStringDynType},
    {"google.protobuf.Value", "list_value", &kListDynType},
};
constexpr Type kEmptyMessage{.kind = Kind::kStruct, .name = "google.protobuf.Empty"};

}  // namespace

struct Environment::Functions {
  base::Arena arena;
  base::StringViewMap<Function> by_name;

  void Add(const std::vector<Library>& libraries) {
    base::StringViewMap<std::vector<const Overload*>> overloads;
    for (const Library library : libraries) {
      std::string_view rows = LibraryRows(library);
      while (!rows.empty()) {
        const auto end = rows.find('\n');
        const auto row = rows.substr(0, end);
        rows.remove_prefix(end == rows.npos ? rows.size() : end + 1);
        if (row.empty()) continue;
        const auto* overload = arena.New<Overload>(RowReader(row, arena).Read());
        overloads[overload->function].push_back(overload);
      }
    }
    for (auto& [name, list] : overloads) {
      auto** copy = arena.NewArray<const Overload*>(list.size());
      std::copy(list.begin(), list.end(), copy);
      by_name[name] = {name, {copy, list.size()}};
    }
  }
};

EnvironmentPtr Environment::New(EnvironmentOptions options) {
  std::shared_ptr<Environment> env(new Environment());
  env->library_order_ = {Library::kStandard};
  for (const Library library : options.libraries)
    if (library != Library::kStandard) env->library_order_.push_back(library);
  for (const Library library : env->library_order_) env->libraries_ |= 1u << static_cast<unsigned>(library);
  auto functions = std::make_shared<Functions>();
  functions->Add(env->library_order_);
  env->functions_ = std::move(functions);
  env->variables_ = std::move(options.variables);
  if (options.types) env->types_.push_back(std::move(options.types));
  env->literal_validators_ = options.literal_validators;
  env->permanent_ = options.permanent;
  env->macros_ = options.macros;
  return env;
}

EnvironmentPtr Environment::Extend(EnvironmentOptions more) const {
  std::shared_ptr<Environment> env(new Environment(*this));
  bool changed = false;
  for (const Library library : more.libraries) {
    if (env->has(library)) continue;
    env->library_order_.push_back(library);
    env->libraries_ |= 1u << static_cast<unsigned>(library);
    changed = true;
  }
  if (changed) {
    auto functions = std::make_shared<Functions>();
    functions->Add(env->library_order_);
    env->functions_ = std::move(functions);
  }
  for (auto& variable : more.variables) {
    auto same = std::ranges::find(env->variables_, variable.name, &Variable::name);
    if (same != env->variables_.end()) {
      *same = std::move(variable);
    } else {
      env->variables_.push_back(std::move(variable));
    }
  }
  if (more.types) env->types_.insert(env->types_.begin(), std::move(more.types));
  env->permanent_ = more.permanent;
  return env;
}

const Function* Environment::FindFunction(std::string_view name) const {
  const auto found = functions_->by_name.find(name);
  return found == functions_->by_name.end() ? nullptr : &found->second;
}

const Type* Environment::FindStructType(std::string_view name) const {
  for (const auto& provider : types_)
    if (const Type* type = provider->FindType(name)) return type;
  if (name == kEmptyMessage.name) return &kEmptyMessage;
  if (name == "google.protobuf.NullValue") return nullptr;  // an enum, not a message
  return FindWellKnownType(name);
}

const std::int64_t* Environment::FindConstant(std::string_view name) const {
  static constexpr std::int64_t kNullValue = 0;
  return name == "google.protobuf.NullValue.NULL_VALUE" ? &kNullValue : nullptr;
}

const Type* Environment::FindType(std::string_view name) const {
  for (const Type* type : kLanguageTypes)
    if (type->name == name) return type;
  for (const auto& row : kLibraryTypes)
    if (row.named && row.type->name == name && has(row.library)) return row.type;
  return FindStructType(name);
}

const Type* Environment::FindFieldType(std::string_view type, std::string_view field) const {
  for (const auto& provider : types_)
    if (const Type* found = provider->FindFieldType(type, field)) return found;
  for (const auto& row : kMessageFields)
    if (row.message == type && row.field == field) return row.type;
  return nullptr;
}

EnvironmentPtr BaseEnvironment(ExpressionMode mode, int minor) {
  struct Introduced {
    int minor;
    Library library;
  };
  static constexpr Introduced kIntroduced[] = {
      {0, Library::kURLs},
      {0, Library::kRegex},
      {0, Library::kLists},
      {27, Library::kAuthz},
      {28, Library::kOptionals},
      {28, Library::kQuantity},
      {29, Library::kStrings},
      {29, Library::kSets},
      {30, Library::kIP},
      {30, Library::kCIDR},
      {31, Library::kFormat},
      {31, Library::kAuthzSelectors},
      {32, Library::kTwoVarComprehensions},
      {33, Library::kSemver},
      {34, Library::kExtLists},
  };
  static constexpr int kEverything = 1000;
  if (mode == ExpressionMode::kStored) minor = kEverything;
  static std::mutex mutex;
  static std::vector<std::pair<int, EnvironmentPtr>> made;
  const std::lock_guard lock(mutex);
  for (const auto& [version, env] : made)
    if (version == minor) return env;
  EnvironmentOptions options;
  for (const auto& [since, library] : kIntroduced)
    if (since <= minor) options.libraries.push_back(library);
  made.emplace_back(minor, Environment::New(std::move(options)));
  return made.back().second;
}

}  // namespace keelson::cel
