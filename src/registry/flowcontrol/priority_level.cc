#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "registry/flowcontrol/bootstrap.h"
#include "registry/flowcontrol/conditions.h"
#include "registry/flowcontrol/strategies.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Forbidden;
using validation::Invalid;
using validation::Required;
using Zero = GoField::Zero;

constexpr std::int64_t kDefaultShares = 30;
constexpr std::int64_t kQueuesMax = 10'000'000;
constexpr int kHashBitsMax = 60;
constexpr std::string_view kPreserveZeroAnnotation = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

constexpr GoField kQueuing[] = {{"queues", "Queues", Zero::kNumber},
                                {"handSize", "HandSize", Zero::kNumber},
                                {"queueLengthLimit", "QueueLengthLimit", Zero::kNumber}};
constexpr GoField kLimitResponse[] = {{"type", "Type"}, {"queuing", "Queuing", Zero::kNull, kQueuing}};
constexpr GoField kLimited[] = {{"nominalConcurrencyShares", "NominalConcurrencyShares", Zero::kNumber},
                                {"limitResponse", "LimitResponse", Zero::kStruct, kLimitResponse},
                                {"lendablePercent", "LendablePercent", Zero::kNull},
                                {"borrowingLimitPercent", "BorrowingLimitPercent", Zero::kNull}};
constexpr GoField kExempt[] = {{"nominalConcurrencyShares", "NominalConcurrencyShares", Zero::kNull},
                               {"lendablePercent", "LendablePercent", Zero::kNull}};
constexpr GoField kSpec[] = {
    {"type", "Type"}, {"limited", "Limited", Zero::kNull, kLimited}, {"exempt", "Exempt", Zero::kNull, kExempt}};

void SetDefaults(base::Arena& arena, Value object) {
  const Value spec = object["spec"];
  if (Value exempt = spec["exempt"]; exempt.is_map()) {
    Default(arena, exempt, "nominalConcurrencyShares", 0);
    Default(arena, exempt, "lendablePercent", 0);
  }
  Value limited = spec["limited"];
  if (!limited.is_map()) return;
  Default(arena, limited, "nominalConcurrencyShares", kDefaultShares);
  Default(arena, limited, "lendablePercent", 0);
  if (Value queuing = limited["limitResponse"]["queuing"]; queuing.is_map()) {
    DefaultIfZero(arena, queuing, "handSize", 8);
    DefaultIfZero(arena, queuing, "queues", 64);
    DefaultIfZero(arena, queuing, "queueLengthLimit", 50);
  }
}

// Bits a hash needs to deal a hand from the deck without favour: the sum of log2 of the choices at each card, rounded
// up.
int RequiredEntropyBits(std::int64_t deck, std::int64_t hand) {
  double bits = 0;
  for (std::int64_t i = 0; i < hand && bits <= kHashBitsMax; ++i) bits += std::log2(static_cast<double>(deck - i));
  return static_cast<int>(std::ceil(bits));
}

void ValidateQueuing(const Value& queuing, const FieldPath& path, FieldErrors& errors) {
  const std::int64_t limit = queuing["queueLengthLimit"].as_int();
  const std::int64_t queues = queuing["queues"].as_int();
  const std::int64_t hand = queuing["handSize"].as_int();
  if (limit <= 0) errors.push_back(Invalid(path.Child("queueLengthLimit"), Value(limit), "must be positive"));
  if (queues <= 0) {
    errors.push_back(Invalid(path.Child("queues"), Value(queues), "must be positive"));
  } else if (queues > kQueuesMax) {
    errors.push_back(Invalid(path.Child("queues"), Value(queues), "must not be greater than 10000000"));
  }
  if (hand <= 0) {
    errors.push_back(Invalid(path.Child("handSize"), Value(hand), "must be positive"));
  } else if (hand > queues) {
    errors.push_back(Invalid(path.Child("handSize"), Value(hand),
                             "should not be greater than queues (" + std::to_string(queues) + ")"));
  } else if (RequiredEntropyBits(queues, hand) > kHashBitsMax) {
    errors.push_back(Invalid(path.Child("handSize"), Value(hand),
                             "required entropy bits of deckSize " + std::to_string(queues) + " and handSize " +
                                 std::to_string(hand) + " should not be greater than 60"));
  }
}

void ValidateLimitResponse(const Value& response, const FieldPath& path, FieldErrors& errors) {
  const std::string_view type = response["type"].as_string();
  const Value queuing = response["queuing"];
  if (type == "Reject") {
    if (!queuing.is_null())
      errors.push_back(Forbidden(path.Child("queuing"), "must be nil if limited.limitResponse.type is not Limited"));
  } else if (type == "Queue") {
    if (queuing.is_null()) {
      errors.push_back(Required(path.Child("queuing"), "must not be empty if limited.limitResponse.type is Limited"));
    } else {
      ValidateQueuing(queuing, path.Child("queuing"), errors);
    }
  } else {
    RequireOneOf(type, {"Queue", "Reject"}, path.Child("type"), errors);
  }
}

void ValidateLendable(const Value& percent, const FieldPath& path, FieldErrors& errors) {
  if (percent.is_null() || (percent.as_int() >= 0 && percent.as_int() <= 100)) return;
  errors.push_back(Invalid(path.Child("lendablePercent"), percent, "must be between 0 and 100, inclusive"));
}

void ValidateShares(const Value& shares, const FieldPath& path, FieldErrors& errors) {
  if (shares.as_int() < 0)
    errors.push_back(Invalid(path.Child("nominalConcurrencyShares"), shares, "must be a non-negative integer"));
}

void ValidateLimited(const Value& limited, const FieldPath& path, FieldErrors& errors) {
  ValidateShares(limited["nominalConcurrencyShares"], path, errors);
  ValidateLimitResponse(limited["limitResponse"], path.Child("limitResponse"), errors);
  ValidateLendable(limited["lendablePercent"], path, errors);
  if (const Value borrowing = limited["borrowingLimitPercent"]; !borrowing.is_null() && borrowing.as_int() < 0) {
    errors.push_back(
        Invalid(path.Child("borrowingLimitPercent"), borrowing, "if specified, must be a non-negative integer"));
  }
}

void ValidateSpec(const Value& spec, std::string_view name, FieldErrors& errors) {
  const FieldPath path("spec");
  const std::string_view type = spec["type"].as_string();
  const Value limited = spec["limited"];
  const Value exempt = spec["exempt"];
  if ((name == "exempt") != (type == "Exempt")) {
    errors.push_back(Invalid(path.Child("type"), type, "must be 'Exempt' if and only if `name` is 'exempt'"));
  }
  if (type == "Exempt") {
    if (!limited.is_null())
      errors.push_back(Forbidden(path.Child("limited"), "must be nil if the type is not Limited"));
    if (!exempt.is_null()) {
      const FieldPath exempt_path = path.Child("exempt");
      ValidateShares(exempt["nominalConcurrencyShares"], exempt_path, errors);
      ValidateLendable(exempt["lendablePercent"], exempt_path, errors);
    }
  } else if (type == "Limited") {
    if (!exempt.is_null()) errors.push_back(Forbidden(path.Child("exempt"), "must be nil if the type is Limited"));
    if (limited.is_null()) {
      errors.push_back(Required(path.Child("limited"), "must not be empty when type is Limited"));
    } else {
      ValidateLimited(limited, path.Child("limited"), errors);
    }
  } else {
    RequireOneOf(type, {"Exempt", "Limited"}, path.Child("type"), errors);
  }
}

void ValidateMandatory(const Call& call, const Value& object, FieldErrors& errors) {
  const std::string_view name = object["metadata"]["name"].as_string();
  Value fixed = MandatoryPriorityLevelConfigurationSpec(call.arena, name);
  if (fixed.is_null()) return;
  const Value spec = object["spec"];
  Value have = Value::Map(call.arena);
  for (const auto& member : spec.members()) have.Set(call.arena, member.key, member.value);
  std::string what = "spec of '" + std::string(name) + "'";
  if (name == "exempt") {
    have.Erase("exempt");
    fixed.Erase("exempt");
    what += " except the 'spec.exempt' field";
  }
  if (!SemanticEqual(have, fixed)) {
    errors.push_back(
        InvalidRendered(FieldPath("spec"), RenderGoStruct(spec, kSpec), what + " must equal the fixed value"));
  }
}

void ValidatePriorityLevel(const Call& call, Value object, Value, FieldErrors& errors) {
  if (object["metadata"]["annotations"].Has(kPreserveZeroAnnotation)) {
    const FieldPath metadata("metadata");
    errors.push_back(Forbidden(metadata.Child("annotations"),
                               "annotation '" + std::string(kPreserveZeroAnnotation) + "' is forbidden"));
  }
  ValidateSpec(object["spec"], object["metadata"]["name"].as_string(), errors);
  ValidateMandatory(call, object, errors);
  ValidateFlowControlConditions(object, errors);
}

void ValidatePriorityLevelUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors);
  ValidatePriorityLevel(call, object, old, errors);
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value limited = object["spec"]["limited"];
  const Value queuing = limited["limitResponse"]["queuing"];
  cells.Append(arena, NameCell(object));
  cells.Append(arena, object["spec"]["type"].as_string());
  cells.Append(arena, limited.is_null() ? Value("<none>") : Value(limited["nominalConcurrencyShares"].as_int()));
  for (const std::string_view field : {"queues", "handSize", "queueLengthLimit"}) {
    cells.Append(arena, queuing.is_null() ? Value("<none>") : Value(queuing[field].as_int()));
  }
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

}  // namespace

void ValidateFlowControlConditions(const Value& object, FieldErrors& errors) {
  const FieldPath status("status");
  const FieldPath path = status.Child("conditions");
  std::set<std::string_view> types;
  std::int64_t index = 0;
  for (const Value& condition : object["status"]["conditions"].items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view type = condition["type"].as_string();
    if (!types.insert(type).second) errors.push_back(Duplicate(at.Child("type"), Value(type)));
    if (type.empty()) errors.push_back(Required(at.Child("type")));
  }
}

void ValidateFlowControlStatusUpdate(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateFlowControlConditions(object, errors);
}

void RestoreFlowControlMetadata(const Call& call, Value object, Value old) {
  Value metadata = old["metadata"].Clone(call.arena);
  CopyMember(call.arena, metadata, object["metadata"], "managedFields");
  object.Set(call.arena, "metadata", metadata);
}

constexpr Strategy kPriorityLevelConfigurationStrategy = {
    .group = "flowcontrol.apiserver.k8s.io",
    .kind = "PriorityLevelConfiguration",
    .generation = Generation::kSpec,
    .has_status = true,
    .defaults = SetDefaults,
    .validate = ValidatePriorityLevel,
    .update = {.validate_update = ValidatePriorityLevelUpdate, .reset_fields = kMainReset},
    .status = {.prepare_for_update = RestoreFlowControlMetadata,
               .validate_update = ValidateFlowControlStatusUpdate,
               .reset_fields = kStatusReset},
    .table_row = Row,
};

std::span<const Strategy> FlowcontrolStrategies() {
  static const Strategy kStrategies[] = {kFlowSchemaStrategy, kPriorityLevelConfigurationStrategy};
  return kStrategies;
}

}  // namespace keelson::registry
