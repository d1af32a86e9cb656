// Annotations of a request's audit event: written by authentication, authorization and admission while the request is
// served, read when the event is written. Writers need not check whether auditing is on: without it, nothing is kept.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::request {

class AuditAnnotations {
 public:
  static constexpr std::size_t kEntriesMax = 1024;  // per request; admission webhooks can send many

  // From now on nothing is kept, and every Add() succeeds: the server does not audit.
  void Disable() { enabled_ = false; }
  // The first value of a key wins, as upstream: false when the key has one already (or there are kEntriesMax keys).
  bool Add(std::string_view key, std::string_view value);
  // The same for an annotation that is recorded at the levels Request and RequestResponse only.
  bool AddAtRequestLevel(std::string_view key, std::string_view value);
  // In the order of writing.
  const std::vector<std::pair<std::string, std::string>>& entries() const { return entries_; }
  const std::vector<std::pair<std::string, std::string>>& request_level_entries() const { return request_level_; }
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<std::pair<std::string, std::string>> entries_, request_level_;
  bool enabled_ = true;
};

}  // namespace keelson::request
