#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "registry/coordination/lease_strategy_name.h"
#include "registry/coordination/strategies.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT: the vocabulary of every rule here
using validation::Invalid;
using validation::Required;

// semver.org 2.0.0, as far as two of them are compared: what follows a plus does not count.
struct Version {
  std::array<std::uint64_t, 3> numbers{};
  std::vector<std::string_view> prerelease;
};

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool AreIdentifiers(const std::vector<std::string_view>& parts, bool numbers_count) {
  return std::ranges::all_of(parts, [&](std::string_view part) {
    const bool plain = std::ranges::all_of(part, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    });
    return plain && !part.empty() && !(numbers_count && IsNumber(part) && part.size() > 1 && part[0] == '0');
  });
}

std::optional<Version> ParseVersion(std::string_view text) {
  Version version;
  if (const auto plus = text.find('+'); plus != std::string_view::npos) {
    if (!AreIdentifiers(base::Split(text.substr(plus + 1), '.'), false)) return std::nullopt;
    text = text.substr(0, plus);
  }
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    version.prerelease = base::Split(text.substr(dash + 1), '.');
    if (!AreIdentifiers(version.prerelease, true)) return std::nullopt;
    text = text.substr(0, dash);
  }
  const auto parts = base::Split(text, '.');
  if (parts.size() != version.numbers.size()) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (!IsNumber(part) || (part.size() > 1 && part[0] == '0')) return std::nullopt;
    if (std::from_chars(part.data(), part.data() + part.size(), version.numbers[i]).ec != std::errc()) {
      return std::nullopt;
    }
  }
  return version;
}

// Semver pre-release order: numbers before words, compared by value.
bool IdentifierLess(std::string_view a, std::string_view b) {
  const bool a_number = IsNumber(a), b_number = IsNumber(b);
  if (a_number != b_number) return a_number;
  if (a_number && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

bool Less(const Version& a, const Version& b) {
  if (a.numbers != b.numbers) return a.numbers < b.numbers;
  if (a.prerelease.empty() || b.prerelease.empty()) return !a.prerelease.empty() && b.prerelease.empty();
  return std::ranges::lexicographical_compare(a.prerelease, b.prerelease, IdentifierLess);
}

// The zero version where there is none, or none that can be read.
Version CheckVersion(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.empty()) return {};
  auto version = ParseVersion(text);
  if (!version) errors.push_back(Invalid(path, text, "must be a valid semantic version"));
  return version.value_or(Version());
}

void ValidateSpec(const Value& spec, FieldErrors& errors) {
  const FieldPath path("spec");
  if (spec["leaseName"].as_string().empty()) errors.push_back(Required(path.Child("leaseName"), ""));
  const std::string_view emulation = spec["emulationVersion"].as_string();
  const std::string_view binary = spec["binaryVersion"].as_string();
  const Version emulated = CheckVersion(emulation, path.Child("emulationVersion"), errors);
  if (binary.empty()) errors.push_back(Required(path.Child("binaryVersion"), ""));
  const Version built = CheckVersion(binary, path.Child("binaryVersion"), errors);
  if (!binary.empty() && !emulation.empty() && Less(built, emulated)) {
    errors.push_back(
        Invalid(path.Child("binaryVersion"), binary, "must be greater than or equal to `emulationVersion`"));
  }
  const std::string_view strategy = spec["strategy"].as_string();
  if (strategy.empty()) {
    errors.push_back(Required(path.Child("strategy"), ""));
    return;
  }
  if (strategy == kOldestEmulationVersion && emulated.numbers == Version().numbers && emulated.prerelease.empty()) {
    errors.push_back(
        Required(path.Child("emulationVersion"), "must be specified when `strategy` is 'OldestEmulationVersion'"));
  }
  ValidateStrategyName(strategy, path.Child("strategy"), errors);
}

validation::Messages IsCandidateName(std::string_view name, bool) { return validation::IsConfigMapKey(name); }

void ValidateCandidate(const Call&, Value object, Value, FieldErrors& errors) { ValidateSpec(object["spec"], errors); }

void ValidateCandidateUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors, false);
  ValidateSpec(object["spec"], errors);
  validation::ValidateImmutableField(object["spec"]["leaseName"], old["spec"]["leaseName"],
                                     FieldPath("spec").Child("leaseName"), errors);
}

void CandidateRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  for (const std::string_view field : {"leaseName", "binaryVersion", "emulationVersion"}) {
    cells.Append(arena, object["spec"][field].as_string());
  }
  cells.Append(arena, Age(arena, clock, object));
}

}  // namespace

const Strategy& LeaseCandidateStrategy() {
  static constexpr Strategy kStrategy{
      .group = "coordination.k8s.io",
      .kind = "LeaseCandidate",
      .name_rule = IsCandidateName,
      .allow_create_on_update = true,
      .allow_unconditional_update = false,
      .core_finalizers = false,
      .validate = ValidateCandidate,
      .update = {.validate_update = ValidateCandidateUpdate},
      .table_row = CandidateRow,
  };
  return kStrategy;
}

}  // namespace keelson::registry
