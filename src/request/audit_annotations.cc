#include "request/audit_annotations.h"

#include "telemetry/log.h"

namespace keelson::request {

namespace {

bool AddTo(std::vector<std::pair<std::string, std::string>>& entries, std::string_view key, std::string_view value) {
  for (const auto& [known, first] : entries) {
    if (known != key) continue;
    if (first != value) {
      log::Info("Audit annotation is already set", "key", key, "value", first, "ignored", value);
    }
    return false;
  }
  if (entries.size() >= AuditAnnotations::kEntriesMax) return false;
  entries.emplace_back(key, value);
  return true;
}

}  // namespace

bool AuditAnnotations::Add(std::string_view key, std::string_view value) {
  return !enabled_ || AddTo(entries_, key, value);
}

bool AuditAnnotations::AddAtRequestLevel(std::string_view key, std::string_view value) {
  return !enabled_ || AddTo(request_level_, key, value);
}

}  // namespace keelson::request
