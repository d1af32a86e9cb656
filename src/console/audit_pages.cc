#include "console/audit_pages.h"

#include <string>

#include "console/paths.h"
#include "endpoints/answering.h"
#include "endpoints/api_group_version.h"
#include "endpoints/responses.h"
#include "endpoints/static_file.h"

namespace keelson::console {
namespace {

constexpr std::size_t kBatch = 64;  // events looked at in one turn

struct Filter {
  std::string user, verb, resource;
  bool Wants(const audit::Tail::Entry& entry) const {
    const auto fits = [](const std::string& wanted, const std::string& is) { return wanted.empty() || wanted == is; };
    return fits(user, entry.user) && fits(verb, entry.verb) && fits(resource, entry.resource);
  }
};

class TailSource final : public http::BodySource {
 public:
  TailSource(std::shared_ptr<audit::Tail> tail, Filter filter, std::unique_ptr<endpoints::WatchGroup::Member> member)
      : tail_(std::move(tail)), filter_(std::move(filter)), member_(std::move(member)) {}

  void Start(std::function<void()> wake) override {
    if (member_) member_->OnEnding(wake);
    follower_ = tail_->Follow(std::move(wake));
  }
  State Pull(std::size_t budget, std::vector<http::SharedBytes>& out) override {
    if (!follower_ || (member_ && member_->ending())) return State::kDone;
    std::size_t bytes = 0;
    const auto entries = follower_->After(seen_, kBatch);
    for (const auto& entry : entries) {
      if (bytes >= budget) return State::kMore;
      seen_ = entry->number;
      if (!filter_.Wants(*entry)) continue;
      bytes += entry->line.size();
      out.push_back(entry->line);
    }
    return entries.size() == kBatch ? State::kMore : State::kPending;
  }

 private:
  const std::shared_ptr<audit::Tail> tail_;
  const Filter filter_;
  const std::unique_ptr<endpoints::WatchGroup::Member> member_;  // null: nobody ends it
  std::unique_ptr<audit::Tail::Follower> follower_;
  std::uint64_t seen_ = 0;
};

http::Response Serve(const std::shared_ptr<audit::Tail>& tail, endpoints::Exchange& exchange) {
  if (exchange.http.method != "GET") return endpoints::NoMethod(exchange);
  if (tail->full()) return endpoints::Text(429, "too many pages follow the audit events\n");
  const auto text = [&](std::string_view name) { return std::string(exchange.query.Get(name)); };
  return endpoints::Streamed("application/x-ndjson",
                             std::make_unique<TailSource>(
                                 tail, Filter{.user = text("user"), .verb = text("verb"), .resource = text("resource")},
                                 exchange.watches ? exchange.watches->Join() : nullptr));
}

}  // namespace

void InstallAudit(server::PathMux& mux, std::shared_ptr<audit::Tail> tail) {
  mux.Unlisted(std::string(kAPIPrefix) + "audit",
               endpoints::Answering([tail](endpoints::Exchange& exchange) { return Serve(tail, exchange); }));
}

}  // namespace keelson::console
