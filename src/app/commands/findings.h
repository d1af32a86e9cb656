// Findings of `keelson doctor`: one line each, with advice for each problem.
#pragma once

#include <string>
#include <vector>

namespace keelson::app {

enum class Severity { kOK, kWarning, kFailure };

struct Finding {
  Severity severity = Severity::kOK;
  std::string area;  // "certificates"
  std::string text;
  std::string advice;  // "" for none
};

class Findings {
 public:
  void OK(std::string area, std::string text) { Add({Severity::kOK, std::move(area), std::move(text), ""}); }
  void Warn(std::string area, std::string text, std::string advice) {
    Add({Severity::kWarning, std::move(area), std::move(text), std::move(advice)});
  }
  void Fail(std::string area, std::string text, std::string advice) {
    Add({Severity::kFailure, std::move(area), std::move(text), std::move(advice)});
  }
  const std::vector<Finding>& all() const { return all_; }
  std::size_t Count(Severity severity) const;

 private:
  void Add(Finding finding) { all_.push_back(std::move(finding)); }
  std::vector<Finding> all_;
};

// The report as lines of text.
std::string Report(const Findings& findings);

}  // namespace keelson::app
