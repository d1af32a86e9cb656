#include "console/audit_pages.h"

#include <string>

#include "console/paths.h"
#include "endpoints/page.h"

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
  const std::unique_ptr<endpoints::WatchGroup::Member> member_;  // null: not ended by the server
  std::unique_ptr<audit::Tail::Follower> follower_;
  std::uint64_t seen_ = 0;
};

meta::Result<endpoints::Page> Show(const std::shared_ptr<audit::Tail>& tail, const endpoints::Exchange& exchange) {
  if (tail->full()) {
    endpoints::Page page = endpoints::TextPage("too many pages follow the audit events\n");
    page.status = 429;
    return page;
  }
  const auto text = [&](std::string_view name) { return std::string(exchange.query.Get(name)); };
  endpoints::Page page{.media_type = "application/x-ndjson",
                       .stream = std::make_unique<TailSource>(
                           tail, Filter{.user = text("user"), .verb = text("verb"), .resource = text("resource")},
                           exchange.watches ? exchange.watches->Join() : nullptr)};
  page.headers.Add("X-Content-Type-Options", "nosniff");
  return page;
}

}  // namespace

void InstallAudit(server::PathMux& mux, std::shared_ptr<audit::Tail> tail) {
  mux.Unlisted(std::string(kAPIPrefix) + "audit",
               endpoints::ServePage([tail](const endpoints::Exchange& exchange) { return Show(tail, exchange); },
                                    {.method = "GET"}));
}

}  // namespace keelson::console
