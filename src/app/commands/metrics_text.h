// Prometheus' text format, read back: for `keelson top`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::app {

struct Sample {
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;

  std::string_view Label(std::string_view name) const;  // "" when it has none of that name
};

// Samples by the name of their metric, in the order of the text.
class MetricsText {
 public:
  static constexpr double kValueMax = 1e18;  // larger values are cut, so that sums and differences of them are finite

  // Lines that are not samples are skipped, broken ones and NaN too: a monitor shows what it can.
  static MetricsText Parse(std::string_view text);

  const std::vector<Sample>& Find(std::string_view name) const;
  double Sum(std::string_view name) const;

 private:
  std::map<std::string, std::vector<Sample>, std::less<>> samples_;
};

}  // namespace keelson::app
