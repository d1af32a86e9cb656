#include "cel/cost_calls.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace keelson::cel {
namespace {

constexpr std::uint64_t kCheckCost = 350'000;  // two authorization checks fit in the cost limit of an expression
constexpr double kFormatRegexSize = 128;
constexpr std::uint64_t kFormatSizeMax = 64;
constexpr double kRequirementsPerByte = 0.5;  // the shortest requirement of a selector is "k,"
constexpr double kRequirementCost = 50;       // a struct and its list of values
constexpr std::uint64_t kListCreateCost = 10;
constexpr std::uint64_t kAttributeValuesMax = 48;  // of a device

constexpr std::string_view kNominal[] = {"serviceAccount",
                                         "path",
                                         "group",
                                         "resource",
                                         "subresource",
                                         "namespace",
                                         "name",
                                         "allowed",
                                         "reason",
                                         "error",
                                         "errored",
                                         "masked",
                                         "prefixLength",
                                         "family",
                                         "isUnspecified",
                                         "isLoopback",
                                         "isLinkLocalMulticast",
                                         "isLinkLocalUnicast",
                                         "isGlobalUnicast",
                                         "format.named",
                                         "sign",
                                         "asInteger",
                                         "isInteger",
                                         "asApproximateFloat",
                                         "isGreaterThan",
                                         "isLessThan",
                                         "compareTo",
                                         "add",
                                         "sub",
                                         "major",
                                         "minor",
                                         "patch",
                                         "getScheme",
                                         "getHostname",
                                         "getHost",
                                         "getPort",
                                         "getEscapedPath",
                                         "getQuery"};
constexpr std::string_view kListTraversals[] = {"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"};
constexpr std::string_view kTextCopies[] = {"lowerAscii", "upperAscii", "substring", "trim"};
constexpr std::string_view kTextParsers[] = {"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"};

template <std::size_t N>
bool In(std::string_view name, const std::string_view (&names)[N]) {
  return std::ranges::find(names, name) != std::end(names);
}

class CallCoster {
 public:
  CallCoster(std::string_view overload, const CallNode* target, std::span<const CallNode> args,
             const SizeEstimator* sizes)
      : overload_(overload), target_(target), args_(args), sizes_(sizes) {}

  std::optional<CallEstimate> Lists();
  std::optional<CallEstimate> Kubernetes(std::string_view function);

 private:
  Estimate Size(const CallNode& node) const {
    if (node.size) return *node.size;
    if (sizes_ != nullptr)
      if (const auto size = sizes_->EstimateSize(node.path, *node.type)) return *size;
    return Estimate::Unknown();
  }
  // Size of the elements of a list; nothing for types without parameters.
  const Type* ElementType(const CallNode& list) const {
    return list.type->param_count > 0 ? list.type->params[0] : nullptr;
  }
  Estimate ElementSize(const CallNode& list, const Type& type) const {
    std::vector<std::string_view> path(list.path.begin(), list.path.end());
    if (!path.empty()) path.push_back("@items");
    return Size({.path = path, .type = &type, .expr = nullptr, .size = std::nullopt});
  }
  static std::uint64_t IntLiteral(const CallNode& node, std::uint64_t fallback) {
    const Expr& e = *node.expr;
    if (e.kind != ExprKind::kLiteral || e.literal != LiteralKind::kInt) return fallback;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(e.int_value, 0));
  }
  static CallEstimate Allocating(double factor, Estimate size) {
    return {size.Scale(factor).Add(Estimate::Fixed(1)).Add(Estimate::Fixed(kListCreateCost)), size};
  }
  static CallEstimate Cost(Estimate cost) { return {cost, std::nullopt}; }

  CallEstimate Traversal() const;
  CallEstimate Replace() const;
  CallEstimate Split() const;
  CallEstimate Join() const;
  CallEstimate ContainsAddress(bool cidr) const;
  std::optional<CallEstimate> Equals() const;

  std::string_view overload_;
  const CallNode* target_;
  std::span<const CallNode> args_;
  const SizeEstimator* sizes_;
};

// The lists and sets extensions of cel-go.
std::optional<CallEstimate> CallCoster::Lists() {
  if (overload_.starts_with("list_sets_")) {
    const double factor = overload_ == "list_sets_equivalent_list" ? 2 : 1;
    return Cost(Size(args_[0]).Multiply(Size(args_[1])).Scale(factor).Add(Estimate::Fixed(1)));
  }
  if (overload_ == "lists_range") return Allocating(1, Estimate::Fixed(IntLiteral(args_[0], kCostMax)));
  if (!overload_.starts_with("list_") || target_ == nullptr) return std::nullopt;
  if (overload_ == "list_slice") {
    const std::uint64_t start = IntLiteral(args_[0], 0);
    const std::uint64_t end = IntLiteral(args_[1], Size(*target_).max);
    return Allocating(1, Estimate::Fixed(end - start));
  }
  if (overload_ == "list_reverse") return Allocating(1, Size(*target_));
  if (overload_ == "list_flatten" || overload_ == "list_flatten_int") {
    const std::uint64_t depth = args_.empty() ? 1 : IntLiteral(args_[0], kCostMax);
    return Allocating(static_cast<double>(depth), Size(*target_));
  }
  const bool by_keys = overload_.ends_with("_sortByAssociatedKeys");
  if (overload_ != "list_distinct" && !overload_.ends_with("_sort") && !by_keys) return std::nullopt;
  const Estimate size = Size(by_keys ? args_[0] : *target_);
  const bool texts = overload_.starts_with("list_string_") || overload_.starts_with("list_bytes_");
  return Allocating(texts ? 2 + kStringTraversalFactor : 2, size.Multiply(size));
}

std::optional<CallEstimate> CallCoster::Kubernetes(std::string_view function) {
  if (function == "_==_") return Equals();
  if (overload_ == "dra_includes_dyn_dyn") return Cost(Estimate{0, kAttributeValuesMax});
  if (function == "check") return Cost(Estimate::Fixed(kCheckCost));
  if (In(function, kNominal)) return Cost(Estimate::Fixed(1));
  if (target_ != nullptr) {
    if (In(function, kListTraversals)) return Traversal();
    if (In(function, kTextCopies)) return CallEstimate{Size(*target_).Scale(kStringTraversalFactor), Size(*target_)};
    if (function == "replace" && args_.size() >= 2) return Replace();
    if (function == "split") return Split();
    if (function == "join") return Join();
    if ((function == "find" || function == "findAll") && !args_.empty()) {
      const Estimate size = Size(*target_);
      const Estimate text = size.Add(Estimate::Fixed(1)).Scale(kStringTraversalFactor);
      return CallEstimate{text.Multiply(Size(args_[0]).Scale(kRegexLengthFactor)), Estimate{0, size.max}};
    }
  }
  if (function == "ip" && overload_ == "cidr_ip") return Cost(Estimate::Fixed(1));
  if (args_.empty()) return std::nullopt;
  if ((function == "fieldSelector" || function == "labelSelector") && args_.size() == 1) {
    const Estimate size = Size(args_[0]);
    const Estimate requirements = size.Scale(kRequirementsPerByte).Scale(kRequirementCost);
    return Cost(Estimate::Fixed(kListCreateCost).Add(size.Scale(kStringTraversalFactor)).Add(requirements));
  }
  if ((function == "url" || function == "jsonpatch.escapeKey") && args_.size() == 1)
    return CallEstimate{Size(args_[0]).Scale(kStringTraversalFactor), Size(args_[0])};
  if (In(function, kTextParsers) || function == "ip") return Cost(Size(args_[0]).Scale(kStringTraversalFactor));
  if (function == "ip.isCanonical") return Cost(Size(args_[0]).Scale(2 * kStringTraversalFactor));
  if (function == "containsIP") return ContainsAddress(false);
  if (function == "containsCIDR") return ContainsAddress(true);
  if (function == "validate")
    return Cost(Size(args_[0]).Scale(kStringTraversalFactor).Scale(kFormatRegexSize * kRegexLengthFactor));
  return std::nullopt;
}

CallEstimate CallCoster::Traversal() const {
  const Type* element = ElementType(*target_);
  if (element == nullptr) return Cost(Size(*target_).Scale(kStringTraversalFactor));  // indexOf in a string
  Estimate each = Estimate::Fixed(1);
  if (element->kind == Kind::kString || element->kind == Kind::kBytes)
    each = each.Add(ElementSize(*target_, *element).Scale(kStringTraversalFactor));
  return Cost(Size(*target_).Multiply(each));
}

CallEstimate CallCoster::Replace() const {
  const Estimate size = Size(*target_);
  const Estimate old_size = Size(args_[0]);
  const Estimate new_size = Size(args_[1]);
  const auto plus_one = [](std::uint64_t n) { return n < kCostMax ? n + 1 : n; };
  const auto divided = [](std::uint64_t n, std::uint64_t by) {
    // Go converts to uint64 with the range of amd64: values from 2^63 up wrap as hardware does.
    return static_cast<std::uint64_t>(std::ceil(static_cast<double>(n) / static_cast<double>(by)));
  };
  Estimate count, retained;
  if (old_size.min == 0) {
    count.max = plus_one(size.max);
    retained.max = size.max;
  } else if (new_size.max <= old_size.min) {
    retained.max = size.max;
  } else {
    count.max = size.max == kCostMax && old_size.min == 1 ? std::uint64_t{1} << 63 : divided(size.max, old_size.min);
  }
  if (old_size.max == 0) {
    count.min = plus_one(size.min);
    retained.min = size.min;
  } else if (old_size.max <= new_size.min) {
    retained.min = size.min;
  } else {
    count.min = divided(size.min, old_size.max);
  }
  return {size.Scale(2 * kStringTraversalFactor), count.Multiply(new_size).Add(retained)};
}

CallEstimate CallCoster::Split() const {
  const Estimate size = Size(*target_);
  std::uint64_t max = size.max;
  if (args_.size() > 1) {
    const Expr& limit = *args_[1].expr;
    if (limit.kind == ExprKind::kLiteral && limit.literal == LiteralKind::kInt)
      max = static_cast<std::uint64_t>(limit.int_value);
  }
  return {size.Scale(2 * kStringTraversalFactor), Estimate{0, max}};
}

CallEstimate CallCoster::Join() const {
  Estimate size;
  const Estimate list = Size(*target_);
  if (const Type* element = ElementType(*target_)) size = list.Multiply(ElementSize(*target_, *element));
  if (!args_.empty()) {
    const Estimate separators{list.min > 0 ? list.min - 1 : 0, list.max > 0 ? list.max - 1 : 0};
    size = size.Add(Size(args_[0]).Multiply(separators));
  }
  return {size.Scale(kStringTraversalFactor), size};
}

CallEstimate CallCoster::ContainsAddress(bool cidr) const {
  const Estimate bytes{4, 16};
  Estimate cost = bytes.Add(bytes).Scale(kStringTraversalFactor);
  if (cidr) cost = cost.Add(bytes.Scale(kStringTraversalFactor)).Add(Estimate::Fixed(1));
  if (overload_.ends_with("_string")) cost = cost.Add(Size(args_[0]).Scale(kStringTraversalFactor));
  return Cost(cost);
}

std::optional<CallEstimate> CallCoster::Equals() const {
  if (args_.size() != 2 || args_[0].type->name != args_[1].type->name) return std::nullopt;
  const Type& type = *args_[0].type;
  for (const Type* constant : {&kIPType, &kCIDRType, &kQuantityType, &kAuthorizerType, &kPathCheckType,
                               &kGroupCheckType, &kResourceCheckType, &kDecisionType, &kSemverType})
    if (type.kind == constant->kind && type.name == constant->name) return Cost(Estimate::Fixed(1));
  if (type.name == kFormatType.name) return Cost(Estimate{1, kFormatSizeMax}.Scale(kStringTraversalFactor));
  if (type.name == kURLType.name) {
    const std::uint64_t max = args_[1].size ? args_[1].size->max : 1;
    return Cost(Estimate{1, max}.Scale(kStringTraversalFactor));
  }
  return std::nullopt;
}

}  // namespace

std::optional<CallEstimate> EstimateLibraryCall(std::string_view function, std::string_view overload,
                                                const CallNode* target, std::span<const CallNode> args,
                                                const SizeEstimator* sizes) {
  CallCoster coster(overload, target, args, sizes);
  if (auto estimate = coster.Lists()) return estimate;
  return coster.Kubernetes(function);
}

}  // namespace keelson::cel
