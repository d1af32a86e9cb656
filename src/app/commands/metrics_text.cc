#include "app/commands/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/strings.h"

namespace keelson::app {
namespace {

std::optional<double> ParseValue(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);  // "+Inf"
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return std::clamp(value, -MetricsText::kValueMax, MetricsText::kValueMax);
}

// {a="b",c="d\"e"} from `text`, which begins after the brace; what follows the closing one is left in `text`.
bool ParseLabels(std::string_view& text, Sample& sample) {
  while (!text.starts_with('}')) {
    const auto equals = text.find("=\"");
    if (equals == std::string_view::npos) return false;
    std::string value;
    std::size_t at = equals + 2;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] != '\\') {
        value.push_back(text[at]);
        continue;
      }
      if (++at == text.size()) return false;
      value.push_back(text[at] == 'n' ? '\n' : text[at]);
    }
    if (at >= text.size()) return false;
    sample.labels[std::string(text.substr(0, equals))] = std::move(value);
    text.remove_prefix(at + 1);
    if (text.starts_with(',')) text.remove_prefix(1);
    if (text.empty()) return false;
  }
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string_view Sample::Label(std::string_view name) const {
  const auto found = labels.find(name);
  return found == labels.end() ? std::string_view() : found->second;
}

MetricsText MetricsText::Parse(std::string_view text) {
  MetricsText parsed;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.starts_with('#')) continue;
    const auto end = line.find_first_of("{ ");
    if (end == std::string_view::npos || end == 0) continue;
    const std::string name(line.substr(0, end));
    const bool labelled = line[end] == '{';
    line.remove_prefix(end + 1);
    Sample sample;
    if (labelled && !ParseLabels(line, sample)) continue;
    line = base::Trim(line);
    const auto value = ParseValue(line.substr(0, line.find(' ')));
    if (!value) continue;
    sample.value = *value;
    parsed.samples_[name].push_back(std::move(sample));
  }
  return parsed;
}

const std::vector<Sample>& MetricsText::Find(std::string_view name) const {
  static const std::vector<Sample> none;
  const auto found = samples_.find(name);
  return found == samples_.end() ? none : found->second;
}

double MetricsText::Sum(std::string_view name) const {
  double sum = 0;
  for (const Sample& sample : Find(name)) sum += sample.value;
  return sum;
}

}  // namespace keelson::app
