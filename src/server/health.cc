#include "server/health.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::server {

void HealthChecks::Add(std::string name, Check check, On on, std::string group) {
  std::lock_guard lock(mutex_);
  entries_.push_back({std::move(name), std::move(check), on, std::move(group)});
}

std::vector<HealthChecks::Entry> HealthChecks::ChecksOf(std::string_view endpoint) const {
  std::lock_guard lock(mutex_);
  std::vector<Entry> checks;
  for (const Entry& entry : entries_) {
    const bool here = endpoint == "healthz" ? entry.on.healthz : endpoint == "livez" ? entry.on.livez : entry.on.readyz;
    if (here) checks.push_back(entry);
  }
  return checks;
}

std::vector<std::string> HealthChecks::Names(std::string_view endpoint) const {
  std::vector<std::string> names;
  for (const Entry& entry : ChecksOf(endpoint)) names.push_back(entry.name);
  return names;
}

bool HealthChecks::Ready() const {
  return std::ranges::all_of(ChecksOf("readyz"), [](const Entry& entry) { return entry.check().empty(); });
}

std::string HealthChecks::Run(std::string_view endpoint, const Entry& entry) const {
  std::string wrong = entry.check();
  if (observer_) observer_(endpoint, entry.name, wrong.empty());
  return wrong;
}

endpoints::Page HealthChecks::Show(std::string_view endpoint, std::string_view check, const base::Query& query) const {
  const std::vector<Entry> checks = ChecksOf(endpoint);
  if (!check.empty()) {
    const auto found = std::ranges::find(checks, check, &Entry::name);
    if (found == checks.end()) return endpoints::NotFoundPage();
    const std::string wrong = Run(endpoint, *found);
    if (!wrong.empty()) return endpoints::ErrorPage(500, "internal server error: " + wrong);
    return endpoints::TextPage("ok");
  }

  std::set<std::string, std::less<>> excluded;
  for (const std::string_view name : query.Values("exclude")) excluded.emplace(name);
  std::set<std::string, std::less<>> unused = excluded;
  std::string lines;
  std::vector<std::string> failed;
  for (const Entry& entry : checks) {
    if (excluded.contains(entry.name)) {
      unused.erase(entry.name);
      lines += "[+]" + entry.name + " excluded: ok\n";
      continue;
    }
    if (!entry.group.empty() && excluded.contains(entry.group)) {
      unused.erase(entry.group);
      lines += "[+]" + entry.name + " excluded with " + entry.group + ": ok\n";
      continue;
    }
    const std::string wrong = Run(endpoint, entry);
    if (wrong.empty()) {
      lines += "[+]" + entry.name + " ok\n";
    } else {
      // The reason is for the log: this endpoint is public.
      lines += "[-]" + entry.name + " failed: reason withheld\n";
      failed.push_back(entry.name + ": " + wrong);
    }
  }
  if (!unused.empty()) {
    std::vector<std::string> quoted;
    for (const auto& name : unused) quoted.push_back(base::GoQuote(name));
    lines += "warn: some health checks cannot be excluded: no matches for " + base::Join(quoted, ",") + "\n";
  }
  if (!failed.empty()) {
    log::V(2).Info("Health check failed", "endpoint", endpoint, "checks", base::Join(failed, "; "));
    return endpoints::ErrorPage(500, lines + std::string(endpoint) + " check failed");
  }
  const bool verbose = query.Has("verbose");
  endpoints::Page page = endpoints::TextPage(verbose ? lines + std::string(endpoint) + " check passed\n" : "ok");
  page.headers.Add("X-Content-Type-Options", "nosniff");
  return page;
}

}  // namespace keelson::server
