#include "cel/cost_estimator.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "cel/cost_calls.h"
#include "cel/declarations.h"
#include "cel/expr_builder.h"

namespace keelson::cel {
namespace {

std::uint64_t AddSaturated(std::uint64_t a, std::uint64_t b) { return a > kCostMax - b ? kCostMax : a + b; }

std::uint64_t MultiplySaturated(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kCostMax / b ? kCostMax : a * b;
}

std::uint64_t ScaleSaturated(std::uint64_t value, double factor) {
  const auto x = static_cast<double>(value);
  if (x > 0 && factor > 0 && x > 18446744073709551615.0 / factor) return kCostMax;
  const double scaled = std::ceil(x * factor);
  return scaled >= 18446744073709551616.0 ? kCostMax : static_cast<std::uint64_t>(scaled);
}

constexpr std::uint64_t kIdentCost = 1;
constexpr std::uint64_t kListCost = 10;
constexpr std::uint64_t kMapCost = 30;
constexpr std::uint64_t kStructCost = 40;

// A path with the sharing of a Go slice: appending writes in place where the backing array has room, which is visible
// through other paths that share it, as in the reference.
struct Path {
  std::string_view* parts = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;
  std::span<const std::string_view> view() const { return {parts, size}; }
};

struct EntrySize {
  Kind container = Kind::kUnspecified;
  Estimate key;
  Estimate value;
};

struct LocalVariable {
  std::string_view name;
  Path path;
  std::optional<Estimate> size;
  std::optional<EntrySize> entry_size;
};

std::int64_t RuneCount(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

bool IsScalar(const Type& type) {
  switch (type.kind) {
    case Kind::kBool:
    case Kind::kDouble:
    case Kind::kDuration:
    case Kind::kInt:
    case Kind::kTimestamp:
    case Kind::kUint:
      return true;
    default:
      return type.is_optional() && IsScalar(type.param(0));
  }
}

std::optional<Estimate> LiteralSize(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kLiteral:
      if (e.literal == LiteralKind::kString) return Estimate::Fixed(static_cast<std::uint64_t>(RuneCount(e.text)));
      if (e.literal == LiteralKind::kBytes) return Estimate::Fixed(e.text.size());
      return Estimate::Fixed(1);
    case ExprKind::kList:
    case ExprKind::kMap:
      return Estimate::Fixed(e.count);
    default:
      return std::nullopt;
  }
}

std::optional<EntrySize> Union(const std::optional<EntrySize>& a, const std::optional<EntrySize>& b) {
  if (!a || !b) return std::nullopt;
  return EntrySize{a->container, a->key.Union(b->key), a->value.Union(b->value)};
}

class Coster {
 public:
  Coster(const Ast& ast, const CostOptions& options)
      : options_(options), paths_(ast.id_count()), sizes_(ast.id_count()), entry_sizes_(ast.id_count()) {}

  Estimate Cost(const Expr& e);

 private:
  Estimate CostIdent(const Expr& e);
  Estimate CostSelect(const Expr& e);
  Estimate CostCall(const Expr& e);
  Estimate CostDyn(const Expr& e);
  Estimate CostList(const Expr& e);
  Estimate CostMap(const Expr& e);
  Estimate CostComprehension(const Expr& e);
  Estimate CostBind(const Expr& e);
  CallEstimate FunctionCost(const Expr& e, const Overload& overload, const CallNode* target,
                            std::span<const CallNode> args, std::span<const Estimate> arg_costs);
  CallEstimate StandardCost(const Expr& e, std::string_view overload, const CallNode* target,
                            std::span<const CallNode> args, std::span<const Estimate> arg_costs, Estimate sum);
  CallEstimate ConditionalCost(const Expr& e, std::span<const CallNode> args, std::span<const Estimate> arg_costs);
  CallEstimate AddCost(const Expr& e, std::string_view overload, std::span<const CallNode> args, Estimate sum);

  void PushIteration(std::string_view name, const Expr& range, bool key);
  void PushIterationSingle(std::string_view name, const Expr& range);
  void PushLocal(std::string_view name, const Expr& e);
  void Pop(std::string_view name);
  const LocalVariable* Local(std::string_view name) const;

  Path PathOf(const Expr& e) const;
  Path Append(Path path, std::string_view part);
  CallNode NodeOf(const Expr& e);
  std::optional<Estimate> SizeOf(const Expr& e);
  Estimate SizeOrUnknown(const Expr& e) { return SizeOf(e).value_or(Estimate::Unknown()); }
  std::optional<EntrySize> EntrySizeOf(const Expr& e) const;
  void SetSize(const Expr& e, std::optional<Estimate> size) {
    if (size) sizes_[e.id] = size;
  }
  void SetEntrySize(const Expr& e, std::optional<EntrySize> size) {
    if (size) entry_sizes_[e.id] = size;
  }

  const CostOptions& options_;
  base::Arena arena_;
  std::vector<Path> paths_;  // by expression id, as the next two
  std::vector<std::optional<Estimate>> sizes_;
  std::vector<std::optional<EntrySize>> entry_sizes_;
  std::vector<LocalVariable> locals_;
};

Estimate Coster::Cost(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kIdent:
      return CostIdent(e);
    case ExprKind::kSelect:
      return CostSelect(e);
    case ExprKind::kCall:
      return e.text == "dyn" && e.operand == nullptr ? CostDyn(e) : CostCall(e);
    case ExprKind::kList:
      return CostList(e);
    case ExprKind::kMap:
      return CostMap(e);
    case ExprKind::kStruct: {
      Estimate sum = Estimate::Fixed(kStructCost);
      for (const Entry& entry : e.elements()) sum = sum.Add(Cost(*entry.value));
      return sum;
    }
    case ExprKind::kComprehension: {
      const Comprehension& fold = *e.fold;
      const bool bind = fold.range->kind == ExprKind::kList && fold.range->count == 0 &&
                        fold.condition->kind == ExprKind::kLiteral && fold.condition->literal == LiteralKind::kBool &&
                        !fold.condition->bool_value && fold.accu_var != "__result__";
      return bind ? CostBind(e) : CostComprehension(e);
    }
    default:
      return {};
  }
}

Estimate Coster::CostIdent(const Expr& e) {
  if (const LocalVariable* local = Local(e.text)) {
    paths_[e.id] = local->path;
  } else {
    paths_[e.id] = Append({}, e.text);
  }
  return Estimate::Fixed(kIdentCost);
}

Estimate Coster::CostSelect(const Expr& e) {
  if (e.test_only) return Estimate::Fixed(options_.presence_test_cost).Add(Cost(*e.operand));
  Estimate sum = Cost(*e.operand);
  const Kind kind = e.operand->type->kind;
  if (kind == Kind::kMap || kind == Kind::kStruct || kind == Kind::kTypeParam)
    sum = sum.Add(Estimate::Fixed(kIdentCost));
  paths_[e.id] = Append(PathOf(*e.operand), e.text);
  return sum;
}

Estimate Coster::CostDyn(const Expr& e) {
  const Expr& arg = *e.args[0];
  const Estimate cost = Cost(arg);
  SetSize(e, SizeOf(arg));
  SetEntrySize(e, EntrySizeOf(arg));
  return Estimate::Fixed(1).Add(cost);
}

Estimate Coster::CostCall(const Expr& e) {
  std::vector<CallNode> args;
  std::vector<Estimate> arg_costs;
  args.reserve(e.count);
  arg_costs.reserve(e.count);
  for (const Expr* arg : e.arguments()) {
    arg_costs.push_back(Cost(*arg));
    args.push_back(NodeOf(*arg));
  }
  if (e.reference == nullptr || e.reference->overloads.empty()) return {};
  Estimate sum;
  std::optional<CallNode> target;
  if (e.operand != nullptr) {
    sum = sum.Add(Cost(*e.operand));
    target = NodeOf(*e.operand);
  }
  Estimate call{kCostMax, 0};
  std::optional<Estimate> result_size;
  for (const Overload* overload : e.reference->overloads) {
    const CallEstimate estimate = FunctionCost(e, *overload, target ? &*target : nullptr, args, arg_costs);
    call = call.Union(estimate.cost);
    if (estimate.result_size)
      result_size = result_size ? result_size->Union(*estimate.result_size) : estimate.result_size;
    const bool list = overload->id == "index_list";
    if ((list || overload->id == "index_map") && e.count > 0) {
      const auto entry = EntrySizeOf(*e.args[0]);
      result_size = entry ? std::optional(entry->value) : std::nullopt;
      paths_[e.id] = Append(PathOf(*e.args[0]), list ? "@items" : "@values");
    }
    if (!result_size) result_size = SizeOf(e);
  }
  SetSize(e, result_size);
  return sum.Add(call);
}

Estimate Coster::CostList(const Expr& e) {
  Estimate sum;
  Estimate item{e.count == 0 ? 0 : kCostMax, 0};
  for (const Entry& entry : e.elements()) {
    sum = sum.Add(Cost(*entry.value));
    item = item.Union(SizeOrUnknown(*entry.value));
  }
  SetEntrySize(e, EntrySize{Kind::kList, Estimate::Fixed(1), item});
  return sum.Add(Estimate::Fixed(kListCost));
}

Estimate Coster::CostMap(const Expr& e) {
  Estimate sum;
  Estimate key{e.count == 0 ? 0 : kCostMax, 0};
  Estimate value = key;
  for (const Entry& entry : e.elements()) {
    sum = sum.Add(Cost(*entry.key));
    sum = sum.Add(Cost(*entry.value));
    key = key.Union(SizeOrUnknown(*entry.key));
    value = value.Union(SizeOrUnknown(*entry.value));
  }
  SetEntrySize(e, EntrySize{Kind::kMap, key, value});
  return sum.Add(Estimate::Fixed(kMapCost));
}

Estimate Coster::CostComprehension(const Expr& e) {
  const Comprehension& fold = *e.fold;
  Estimate sum = Cost(*fold.range).Add(Cost(*fold.init));
  PushLocal(fold.accu_var, *fold.init);
  const bool two = !fold.iter_var2.empty();
  if (two) {
    PushIteration(fold.iter_var, *fold.range, true);
    PushIteration(fold.iter_var2, *fold.range, false);
  } else {
    PushIterationSingle(fold.iter_var, *fold.range);
  }
  const Estimate condition = Cost(*fold.condition);
  const Estimate step = Cost(*fold.step);
  Pop(fold.iter_var);
  if (two) Pop(fold.iter_var2);
  sum = sum.Add(Cost(*fold.result));
  Pop(fold.accu_var);
  const Estimate count = SizeOrUnknown(*fold.range);
  sum = sum.Add(count.Multiply(step.Add(condition)));
  if (fold.init->kind == ExprKind::kLiteral) {
    SetSize(e, SizeOf(*fold.init));
  } else if (fold.init->kind == ExprKind::kList || fold.init->kind == ExprKind::kMap) {
    SetSize(e, count);
    SetEntrySize(e, EntrySizeOf(*fold.step));
  }
  return sum;
}

Estimate Coster::CostBind(const Expr& e) {
  const Comprehension& fold = *e.fold;
  Estimate sum = Cost(*fold.range).Add(Cost(*fold.init));
  PushLocal(fold.accu_var, *fold.init);
  sum = sum.Add(Cost(*fold.result));
  Pop(fold.accu_var);
  SetSize(e, SizeOf(*fold.result));
  SetEntrySize(e, EntrySizeOf(*fold.result));
  return sum;
}

CallEstimate Coster::FunctionCost(const Expr& e, const Overload& overload, const CallNode* target,
                                  std::span<const CallNode> args, std::span<const Estimate> arg_costs) {
  Estimate sum;
  for (const Estimate& cost : arg_costs) sum = sum.Add(cost);
  if (auto estimate = EstimateLibraryCall(overload.function, overload.id, target, args, options_.sizes)) {
    estimate->cost = estimate->cost.Add(sum);
    return *estimate;
  }
  return StandardCost(e, overload.id, target, args, arg_costs, sum);
}

CallEstimate Coster::ConditionalCost(const Expr& e, std::span<const CallNode> args,
                                     std::span<const Estimate> arg_costs) {
  const Estimate size = args[1].size.value_or(Estimate::Unknown()).Union(args[2].size.value_or(Estimate::Unknown()));
  SetEntrySize(e, Union(EntrySizeOf(*args[1].expr), EntrySizeOf(*args[2].expr)));
  return {arg_costs[0].Add(arg_costs[1].Union(arg_costs[2])), size};
}

CallEstimate Coster::AddCost(const Expr& e, std::string_view overload, std::span<const CallNode> args, Estimate sum) {
  const Estimate size = args[0].size.value_or(Estimate::Unknown()).Add(args[1].size.value_or(Estimate::Unknown()));
  SetEntrySize(e, Union(EntrySizeOf(*args[0].expr), EntrySizeOf(*args[1].expr)));
  const Estimate cost = overload == "add_list" ? Estimate::Fixed(1) : size.Scale(kStringTraversalFactor);
  return {cost.Add(sum), size};
}

CallEstimate Coster::StandardCost(const Expr& e, std::string_view overload, const CallNode* target,
                                  std::span<const CallNode> args, std::span<const Estimate> arg_costs, Estimate sum) {
  const auto size = [](const CallNode& node) { return node.size.value_or(Estimate::Unknown()); };
  if (overload == "logical_or" || overload == "logical_and")
    return {{arg_costs[0].min, arg_costs[0].Add(arg_costs[1]).max}, std::nullopt};
  if (overload == "conditional") return ConditionalCost(e, args, arg_costs);
  if (overload == "string_format" && target != nullptr)
    return {size(*target).Scale(kStringTraversalFactor).Add(sum), std::nullopt};
  if (args.size() == 1) {
    const Estimate arg = size(args[0]);
    const Estimate traversal = arg.Scale(kStringTraversalFactor);
    if (overload == "string_to_bytes") return {traversal.Add(sum), Estimate{arg.min, arg.max * 4}};
    if (overload == "bytes_to_string") return {traversal.Add(sum), Estimate{arg.min / 4, arg.max}};
    if (overload == "strings_quote") return {traversal.Add(sum), Estimate{arg.min + 2, arg.max * 2 + 2}};
    if (overload == "starts_with_string" || overload == "ends_with_string") return {traversal.Add(sum), std::nullopt};
    if (overload == "matches_string" && target != nullptr) {
      const Estimate text = size(*target).Add(Estimate::Fixed(1)).Scale(kStringTraversalFactor);
      return {text.Multiply(arg.Scale(kRegexLengthFactor)).Add(sum), std::nullopt};
    }
    if (overload == "contains_string" && target != nullptr)
      return {size(*target).Scale(kStringTraversalFactor).Multiply(traversal).Add(sum), std::nullopt};
  }
  if (args.size() == 2) {
    if (overload == "in_list") return {size(args[1]).Scale(1).Add(sum), std::nullopt};
    if (overload == "add_string" || overload == "add_bytes" || overload == "add_list")
      return AddCost(e, overload, args, sum);
    static constexpr std::string_view kComparisons[] = {"equals",         "not_equals",
                                                        "less_string",    "less_equals_string",
                                                        "greater_string", "greater_equals_string",
                                                        "less_bytes",     "less_equals_bytes",
                                                        "greater_bytes",  "greater_equals_bytes"};
    if (std::ranges::find(kComparisons, overload) != std::end(kComparisons)) {
      const std::uint64_t smallest = std::min(size(args[0]).max, size(args[1]).max);
      const Estimate compared{smallest > 0 ? 1u : 0u, smallest};
      return {compared.Scale(kStringTraversalFactor).Add(sum), std::nullopt};
    }
  }
  return {Estimate::Fixed(1).Add(sum), std::nullopt};
}

void Coster::PushIteration(std::string_view name, const Expr& range, bool key) {
  const auto entry = EntrySizeOf(range);
  std::optional<Estimate> size;
  if (entry) size = key ? entry->key : entry->value;
  const bool list = (entry ? entry->container : range.type->kind) == Kind::kList;
  const std::string_view part = key ? (list ? "@indices" : "@keys") : (list ? "@items" : "@values");
  locals_.push_back({name, Append(PathOf(range), part), size, std::nullopt});
}

void Coster::PushIterationSingle(std::string_view name, const Expr& range) {
  const auto entry = EntrySizeOf(range);
  const bool list = (entry ? entry->container : range.type->kind) == Kind::kList;
  PushIteration(name, range, !list);
}

void Coster::PushLocal(std::string_view name, const Expr& e) {
  locals_.push_back({name, PathOf(e), SizeOf(e), EntrySizeOf(e)});
}

void Coster::Pop(std::string_view name) {
  for (std::size_t i = locals_.size(); i-- > 0;) {
    if (locals_[i].name != name) continue;
    locals_.erase(locals_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

const LocalVariable* Coster::Local(std::string_view name) const {
  for (std::size_t i = locals_.size(); i-- > 0;)
    if (locals_[i].name == name) return &locals_[i];
  return nullptr;
}

Path Coster::PathOf(const Expr& e) const {
  if (e.kind == ExprKind::kIdent)
    if (const LocalVariable* local = Local(e.text)) return local->path;
  return paths_[e.id];
}

Path Coster::Append(Path path, std::string_view part) {
  if (path.size == path.capacity) {
    const std::uint32_t capacity = path.capacity == 0 ? 1 : path.capacity * 2;
    auto* parts = arena_.NewArray<std::string_view>(capacity);
    std::copy_n(path.parts, path.size, parts);
    path.parts = parts;
    path.capacity = capacity;
  }
  path.parts[path.size++] = part;
  return path;
}

CallNode Coster::NodeOf(const Expr& e) {
  Path path = PathOf(e);
  if (path.size > 0 && (path.parts[0] == kAccumulator || path.parts[0] == "__result__")) path = {};
  return {path.view(), e.type, &e, SizeOf(e)};
}

std::optional<Estimate> Coster::SizeOf(const Expr& e) {
  if (sizes_[e.id]) return sizes_[e.id];
  if (const auto size = LiteralSize(e)) return size;
  if (options_.sizes != nullptr) {
    if (const auto size = options_.sizes->EstimateSize(PathOf(e).view(), *e.type)) {
      sizes_[e.id] = size;
      return size;
    }
  }
  if (IsScalar(*e.type)) return Estimate::Fixed(1);
  if (e.kind == ExprKind::kIdent)
    if (const LocalVariable* local = Local(e.text)) return local->size;
  return std::nullopt;
}

std::optional<EntrySize> Coster::EntrySizeOf(const Expr& e) const {
  if (entry_sizes_[e.id]) return entry_sizes_[e.id];
  if (e.kind == ExprKind::kIdent)
    if (const LocalVariable* local = Local(e.text)) return local->entry_size;
  return std::nullopt;
}

}  // namespace

Estimate Estimate::Add(Estimate other) const { return {AddSaturated(min, other.min), AddSaturated(max, other.max)}; }

Estimate Estimate::Multiply(Estimate other) const {
  return {MultiplySaturated(min, other.min), MultiplySaturated(max, other.max)};
}

Estimate Estimate::Scale(double factor) const { return {ScaleSaturated(min, factor), ScaleSaturated(max, factor)}; }

Estimate Estimate::Union(Estimate other) const { return {std::min(min, other.min), std::max(max, other.max)}; }

Estimate EstimateCost(const Ast& ast, const CostOptions& options) { return Coster(ast, options).Cost(ast.root()); }

}  // namespace keelson::cel
