// Semantic versions as github.com/blang/semver/v4 reads them, with its error texts.
#include <charconv>

#include "base/strings.h"
#include "cel/library_values.h"

namespace keelson::cel {
namespace {

constexpr std::string_view kNumbers = "0123456789";
constexpr std::string_view kAlphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789";

bool ContainsOnly(std::string_view text, std::string_view set) {
  return text.find_first_not_of(set) == std::string_view::npos;
}

bool HasLeadingZeroes(std::string_view text) { return text.size() > 1 && text[0] == '0'; }

// strconv.ParseUint(text, 10, 64) with its error texts. REQUIRES: digits only.
Outcome<std::uint64_t, std::string> ParseUint(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  (void)end;
  const std::string prefix = "strconv.ParseUint: parsing " + base::GoQuote(text);
  if (text.empty()) return prefix + ": invalid syntax";
  if (error != std::errc()) return prefix + ": value out of range";
  return value;
}

Outcome<std::uint64_t, std::string> ParseNumber(std::string_view text, std::string_view lower, std::string_view upper) {
  if (!ContainsOnly(text, kNumbers))
    return "Invalid character(s) found in " + std::string(lower) + " number " + base::GoQuote(text);
  if (HasLeadingZeroes(text))
    return std::string(upper) + " number must not contain leading zeroes " + base::GoQuote(text);
  return ParseUint(text);
}

// strings.SplitN(text, ".", 3).
std::vector<std::string_view> SplitThree(std::string_view text) {
  std::vector<std::string_view> parts;
  for (int i = 0; i < 2; ++i) {
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos) break;
    parts.push_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  parts.push_back(text);
  return parts;
}

Outcome<Semver::Identifier, std::string> ParseIdentifier(std::string_view text) {
  if (text.empty()) return std::string("Prerelease is empty");
  if (ContainsOnly(text, kNumbers)) {
    if (HasLeadingZeroes(text))
      return "Numeric PreRelease version must not contain leading zeroes " + base::GoQuote(text);
    const auto number = ParseUint(text);
    if (!number.ok()) return number.error();
    return Semver::Identifier{.number = *number};
  }
  if (!ContainsOnly(text, kAlphanumeric)) return "Invalid character(s) found in prerelease " + base::GoQuote(text);
  return Semver::Identifier{.text = text};
}

std::string ParseTail(Arena& arena, std::string_view prerelease, bool has_prerelease, std::string_view build,
                      bool has_build, Semver& out) {
  if (has_prerelease) {
    const auto pieces = base::Split(prerelease, '.');
    auto* list = arena.NewArray<Semver::Identifier>(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto identifier = ParseIdentifier(pieces[i]);
      if (!identifier.ok()) return identifier.error();
      list[i] = *identifier;
    }
    out.prerelease = {list, pieces.size()};
  }
  if (has_build) {
    const auto pieces = base::Split(build, '.');
    auto* list = arena.NewArray<std::string_view>(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].empty()) return "Build meta data is empty";
      if (!ContainsOnly(pieces[i], kAlphanumeric))
        return "Invalid character(s) found in build meta data " + base::GoQuote(pieces[i]);
      list[i] = pieces[i];
    }
    out.build = {list, pieces.size()};
  }
  return {};
}

int CompareIdentifiers(const Semver::Identifier& a, const Semver::Identifier& b) {
  const bool a_number = a.text.empty(), b_number = b.text.empty();
  if (a_number != b_number) return a_number ? -1 : 1;
  if (a_number) return a.number == b.number ? 0 : a.number > b.number ? 1 : -1;
  const int order = a.text.compare(b.text);
  return order == 0 ? 0 : order > 0 ? 1 : -1;
}

}  // namespace

Outcome<Semver, std::string> ParseSemver(Arena& arena, std::string_view text) {
  if (text.empty()) return std::string("Version string empty");
  const auto parts = SplitThree(text);
  if (parts.size() != 3) return std::string("No Major.Minor.Patch elements found");
  Semver out;
  const auto major = ParseNumber(parts[0], "major", "Major");
  if (!major.ok()) return major.error();
  const auto minor = ParseNumber(parts[1], "minor", "Minor");
  if (!minor.ok()) return minor.error();
  std::string_view patch = parts[2], prerelease, build;
  const std::size_t plus = patch.find('+');
  if (plus != std::string_view::npos) {
    build = patch.substr(plus + 1);
    patch = patch.substr(0, plus);
  }
  const std::size_t dash = patch.find('-');
  if (dash != std::string_view::npos) {
    prerelease = patch.substr(dash + 1);
    patch = patch.substr(0, dash);
  }
  const auto number = ParseNumber(patch, "patch", "Patch");
  if (!number.ok()) return number.error();
  out.major = *major;
  out.minor = *minor;
  out.patch = *number;
  if (std::string error =
          ParseTail(arena, prerelease, dash != std::string_view::npos, build, plus != std::string_view::npos, out);
      !error.empty())
    return error;
  return out;
}

Outcome<Semver, std::string> ParseSemverNormalized(Arena& arena, std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  std::vector<std::string> parts;
  for (std::string_view part : SplitThree(text)) {
    std::string piece(part);
    if (part.size() > 1) {
      part.remove_prefix(std::min(part.find_first_not_of('0'), part.size()));
      piece = part;
      if (part.empty() || part[0] < '0' || part[0] > '9') piece = "0" + piece;
    }
    parts.push_back(std::move(piece));
  }
  if (parts.size() < 3 && parts.back().find_first_of("+-") != std::string::npos)
    return std::string("short version cannot contain PreRelease/Build meta data");
  while (parts.size() < 3) parts.emplace_back("0");
  return ParseSemver(arena, arena.Copy(base::Join(parts, ".")));
}

int CompareSemver(const Semver& a, const Semver& b) {
  const std::uint64_t left[] = {a.major, a.minor, a.patch}, right[] = {b.major, b.minor, b.patch};
  for (int i = 0; i < 3; ++i) {
    if (left[i] != right[i]) return left[i] > right[i] ? 1 : -1;
  }
  if (a.prerelease.empty() || b.prerelease.empty())
    return a.prerelease.empty() == b.prerelease.empty() ? 0 : a.prerelease.empty() ? 1 : -1;
  for (std::size_t i = 0; i < a.prerelease.size() && i < b.prerelease.size(); ++i) {
    if (const int order = CompareIdentifiers(a.prerelease[i], b.prerelease[i]); order != 0) return order;
  }
  if (a.prerelease.size() == b.prerelease.size()) return 0;
  return a.prerelease.size() < b.prerelease.size() ? -1 : 1;
}

std::string SemverText(const Semver& version) {
  std::string out =
      std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
  for (std::size_t i = 0; i < version.prerelease.size(); ++i) {
    out += i == 0 ? '-' : '.';
    const Semver::Identifier& identifier = version.prerelease[i];
    out += identifier.text.empty() ? std::to_string(identifier.number) : std::string(identifier.text);
  }
  for (std::size_t i = 0; i < version.build.size(); ++i) {
    out += i == 0 ? '+' : '.';
    out += version.build[i];
  }
  return out;
}

}  // namespace keelson::cel
