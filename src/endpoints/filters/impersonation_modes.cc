#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <optional>

#include "auth/subject.h"
#include "base/expiring_cache.h"
#include "base/hash.h"
#include "base/strings.h"
#include "endpoints/filters/impersonation.h"
#include "validation/primitives.h"

namespace keelson::endpoints::filters {
namespace {

using auth::Attributes;
using auth::Subject;
using auth::SubjectOf;
using request::User;

constexpr std::string_view kAuthentication = "authentication.k8s.io";
constexpr std::size_t kManyChecks = 4;  // from here on one check for all is tried first
constexpr std::size_t kModeCacheMax = 10'000, kUserCacheMax = 4096;
constexpr std::chrono::seconds kCacheFor{10};

// In the order in which they are tried. The last is the legacy mode.
constexpr std::string_view kModes[] = {"associated-node", "arbitrary-node", "serviceaccount", "user-info", "legacy"};
constexpr std::size_t kAssociatedNode = 0, kArbitraryNode = 1, kServiceAccount = 2, kUserInfo = 3, kLegacy = 4;

bool OnlyName(const User& wanted) { return wanted.uid.empty() && wanted.groups.empty() && wanted.extra.empty(); }

const std::vector<std::string>* ExtraOf(const User& user, std::string_view key) {
  const auto found = std::ranges::find(user.extra, key, &std::pair<std::string, std::vector<std::string>>::first);
  return found == user.extra.end() ? nullptr : &found->second;
}

bool Applies(std::size_t mode, const User& wanted, const User& requester) {
  const Subject subject = SubjectOf(wanted.name);
  switch (mode) {
    case kAssociatedNode: {
      const auto* own = ExtraOf(requester, "authentication.kubernetes.io/node-name");
      return OnlyName(wanted) && subject.kind == Subject::Kind::kNode &&
             SubjectOf(requester.name).kind == Subject::Kind::kServiceAccount && own != nullptr && own->size() == 1 &&
             own->front() == subject.name;
    }
    case kArbitraryNode:
      return OnlyName(wanted) && subject.kind == Subject::Kind::kNode;
    case kServiceAccount:
      return OnlyName(wanted) && subject.kind == Subject::Kind::kServiceAccount;
    case kUserInfo:
      return subject.kind == Subject::Kind::kUser;
    default:
      return true;
  }
}

// "" or what constrained modes object to in the extra values.
std::string ExtraProblem(const User& wanted) {
  for (const auto& [key, values] : wanted.extra) {
    if (key.empty()) return "impersonating the empty string key in extra is not allowed";
    meta::FieldErrors errors;
    validation::ValidateDomainPrefixedPath(key, object::FieldPath("extra").Child("key"), errors);
    if (!errors.empty())
      return "impersonating an invalid key in extra is not allowed: " + meta::AggregateMessage(errors);
    if (key != base::ToLower(key))
      return "impersonating a non-lowercase key in extra is not allowed: " + base::GoQuote(key);
    if (values.empty()) return "impersonating empty values in extra is not allowed";
    if (std::ranges::find(values, "") != values.end())
      return "impersonating the empty string value in extra is not allowed";
  }
  return {};
}

bool HasManyExtra(const User& wanted) {
  std::size_t count = 0;
  for (const auto& entry : wanted.extra) count += entry.second.size();
  return wanted.extra.size() >= kManyChecks || count >= kManyChecks;
}

// Text with the length of each part in front, so that no two lists of parts are the same text.
class KeyBuilder {
 public:
  KeyBuilder& Add(std::string_view text) {
    Size(text.size());
    text_ += text;
    return *this;
  }
  KeyBuilder& Add(const User& user) {
    Add(user.name).Add(user.uid).Size(user.groups.size());
    for (const auto& group : user.groups) Add(group);
    Size(user.extra.size());
    for (const auto& [key, values] : user.extra) {
      Add(key).Size(values.size());
      for (const auto& value : values) Add(value);
    }
    return *this;
  }
  KeyBuilder& Add(const Attributes& attributes) {
    text_ += attributes.resource_request ? '1' : '0';
    Add(attributes.verb)
        .Add(attributes.name_space)
        .Add(attributes.resource)
        .Add(attributes.subresource)
        .Add(attributes.name)
        .Add(attributes.api_group)
        .Add(attributes.api_version)
        .Add(attributes.path)
        .Size(attributes.field_requirements.size());
    for (const auto& requirement : attributes.field_requirements)
      Add(requirement.field).Size(requirement.equal ? 1 : 0).Add(requirement.value);
    Size(attributes.label_requirements.size());
    for (const auto& requirement : attributes.label_requirements) {
      Add(requirement.key).Size(static_cast<std::size_t>(requirement.op)).Size(requirement.values.size());
      for (const auto& value : requirement.values) Add(value);
    }
    return *this;
  }
  std::string Digest() const {
    std::string digest(SHA256_DIGEST_LENGTH, '\0');
    SHA256(reinterpret_cast<const unsigned char*>(text_.data()), text_.size(),
           reinterpret_cast<unsigned char*>(digest.data()));
    return digest;
  }

 private:
  KeyBuilder& Size(std::size_t size) {
    for (int shift = 24; shift >= 0; shift -= 8) text_ += static_cast<char>((size >> shift) & 0xff);
    return *this;
  }
  std::string text_;
};

// The mode that last worked for a requester.
class ModeCache {
 public:
  std::optional<std::size_t> Get(const std::string& requester) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(requester);
    if (found == entries_.end()) return std::nullopt;
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return found->second->second;
  }
  void Set(const std::string& requester, std::size_t mode) {
    std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(requester); found != entries_.end()) {
      found->second->second = mode;
      by_use_.splice(by_use_.begin(), by_use_, found->second);
      return;
    }
    by_use_.emplace_front(requester, mode);
    entries_.emplace(requester, by_use_.begin());
    if (entries_.size() <= kModeCacheMax) return;
    entries_.erase(by_use_.back().first);
    by_use_.pop_back();
  }

 private:
  std::mutex mutex_;
  std::list<std::pair<std::string, std::size_t>> by_use_;
  base::StringMap<std::list<std::pair<std::string, std::size_t>>::iterator> entries_;
};

// The requesting user, and the cancellation of the request: checks that call out end with it.
struct Requester {
  request::SharedUser user;
  async::CancellationPtr cancellation;
};

using Refusal = std::optional<meta::Status>;  // nothing: allowed

meta::Status Forbidden(const Attributes& attributes, std::string_view reason) {
  return meta::NewForbidden({attributes.api_group, attributes.resource}, attributes.name,
                            auth::ForbiddenMessage(attributes, reason));
}

}  // namespace

struct Impersonator::Impl {
  using UserCache = base::ExpiringCache<ImpersonatedUser>;
  struct ModeState {
    explicit ModeState(const base::Clock& clock)
        : by_request(kUserCacheMax, kCacheFor, clock), by_user(kUserCacheMax, kCacheFor, clock) {}
    UserCache by_request, by_user;
  };

  std::shared_ptr<auth::Authorizer> authorizer;
  Modes modes;
  ImpersonationMetrics* metrics;
  const base::Clock& clock;
  ModeCache last_mode;
  std::array<std::unique_ptr<ModeState>, kLegacy> states;

  Awaitable<Refusal> May(std::size_t mode, Attributes attributes) {
    const auto started = clock.Monotonic();
    const auth::Authorization answer = co_await authorizer->Authorize(attributes);
    const bool allowed = answer.decision == auth::Decision::kAllow;
    if (metrics != nullptr && modes == Modes::kConstrained) {
      const std::string_view decision = allowed ? "allowed" : "denied";
      const std::chrono::duration<double> took = clock.Monotonic() - started;
      metrics->authorizations.With({kModes[mode], decision}).Inc();
      metrics->authorization_durations.With({kModes[mode], decision}).Observe(took.count());
    }
    if (allowed) co_return std::nullopt;
    std::string reason = answer.reason;
    if (!answer.error.empty() && modes == Modes::kConstrained)
      reason = reason.empty() ? answer.error : answer.error + ": " + reason;
    co_return Forbidden(attributes, reason);
  }

  static Attributes Asked(std::size_t mode, const Requester& requester, std::string_view group, std::string resource) {
    return {.user = requester.user,
            .verb = mode == kLegacy ? "impersonate" : "impersonate:" + std::string(kModes[mode]),
            .resource_request = true,
            .api_group = std::string(group),
            .api_version = "v1",
            .resource = std::move(resource),
            .cancellation = requester.cancellation};
  }
  static std::string_view NameGroup(std::size_t mode) { return mode == kLegacy ? std::string_view() : kAuthentication; }

  // Users, nodes and service accounts; sets the groups that go with the latter two.
  Awaitable<Refusal> CheckName(std::size_t mode, const Requester& requester, const User& wanted, User& actual) {
    Subject subject = SubjectOf(wanted.name);
    const bool node = subject.kind == Subject::Kind::kNode;
    // The legacy mode has no node subjects.
    if (node && mode == kLegacy) subject = {.name_space = {}, .name = wanted.name, .groups = {}};
    Attributes attributes = Asked(mode, requester, NameGroup(mode), std::string(subject.resource));
    attributes.name_space = subject.name_space;
    attributes.name = mode == kAssociatedNode ? "*" : subject.name;
    if (!subject.groups.empty() && (node || wanted.groups.empty())) actual.groups = std::move(subject.groups);
    co_return co_await May(mode, std::move(attributes));
  }

  Awaitable<Refusal> CheckUID(std::size_t mode, const Requester& requester, const User& wanted) {
    if (wanted.uid.empty()) co_return std::nullopt;
    Attributes attributes = Asked(mode, requester, kAuthentication, "uids");
    attributes.name = wanted.uid;
    co_return co_await May(mode, std::move(attributes));
  }

  Awaitable<Refusal> CheckGroups(std::size_t mode, const Requester& requester, const User& wanted) {
    if (wanted.groups.empty()) co_return std::nullopt;
    Attributes attributes = Asked(mode, requester, NameGroup(mode), "groups");
    if (mode != kLegacy) {
      if (wanted.InGroup("")) co_return Forbidden(attributes, "impersonating the empty string group is not allowed");
      if (wanted.InGroup(request::kSystemMasters)) {
        attributes.name = request::kSystemMasters;
        co_return Forbidden(attributes, "impersonating the system:masters group is not allowed");
      }
      attributes.name = "*";
      if (wanted.groups.size() >= kManyChecks && !co_await May(mode, attributes)) co_return std::nullopt;
    }
    for (const std::string& group : wanted.groups) {
      attributes.name = group;
      if (Refusal refusal = co_await May(mode, attributes)) co_return refusal;
    }
    co_return std::nullopt;
  }

  Awaitable<Refusal> CheckExtra(std::size_t mode, const Requester& requester, const User& wanted) {
    if (wanted.extra.empty()) co_return std::nullopt;
    Attributes attributes = Asked(mode, requester, kAuthentication, "userextras");
    if (mode != kLegacy) {
      if (std::string problem = ExtraProblem(wanted); !problem.empty()) co_return Forbidden(attributes, problem);
      attributes.subresource = attributes.name = "*";
      if (HasManyExtra(wanted) && !co_await May(mode, attributes)) co_return std::nullopt;
    }
    for (const auto& [key, values] : wanted.extra) {
      attributes.subresource = key;
      for (const std::string& value : values) {
        attributes.name = value;
        if (Refusal refusal = co_await May(mode, attributes)) co_return refusal;
      }
    }
    co_return std::nullopt;
  }

  // Whether the requester may be `wanted` at all, whatever the request.
  Awaitable<Outcome<ImpersonatedUser, meta::Status>> CheckUser(std::size_t mode, Requester requester, User wanted) {
    ImpersonatedUser result{.user = wanted};
    if (mode != kLegacy) result.constraint = "impersonate:" + std::string(kModes[mode]);
    User& actual = result.user;
    if (Refusal refusal = co_await CheckName(mode, requester, wanted, actual)) co_return *refusal;
    // With the gate off the uid comes last.
    const bool uid_last = modes == Modes::kLegacy;
    if (!uid_last) {
      if (Refusal refusal = co_await CheckUID(mode, requester, wanted)) co_return *refusal;
    }
    if (Refusal refusal = co_await CheckGroups(mode, requester, wanted)) co_return *refusal;
    if (Refusal refusal = co_await CheckExtra(mode, requester, wanted)) co_return *refusal;
    if (uid_last) {
      if (Refusal refusal = co_await CheckUID(mode, requester, wanted)) co_return *refusal;
    }
    if (actual.name == request::kAnonymous) {
      if (!actual.InGroup(request::kUnauthenticated)) actual.groups.emplace_back(request::kUnauthenticated);
    } else if (!actual.InGroup(request::kUnauthenticated) && !actual.InGroup(request::kAuthenticated)) {
      actual.groups.emplace_back(request::kAuthenticated);
    }
    co_return result;
  }

  // A constrained mode: impersonation of this request must be allowed, then of that user.
  Awaitable<Outcome<ImpersonatedUser, meta::Status>> CheckConstrained(std::size_t mode, User wanted,
                                                                      Attributes request) {
    ModeState& state = *states[mode];
    User keyed = wanted;
    if (mode == kAssociatedNode) {
      // All nodes of a requester share the decision, so authorizers do not see the node's name either.
      keyed.name = "system:node:*";
      std::vector<std::string> keys;
      User requester = *request.user;
      for (const auto& entry : requester.extra) keys.push_back(entry.first);
      std::ranges::sort(keys);
      requester.extra = {{"authentication.kubernetes.io/associated-node-keys", std::move(keys)}};
      request.user = std::move(requester);
    }
    const std::string by_user = KeyBuilder().Add(keyed).Add(*request.user).Digest();
    const std::string by_request = KeyBuilder().Add(keyed).Add(*request.user).Add(request).Digest();
    if (auto known = state.by_request.Get(by_request)) {
      known->user.name = wanted.name;
      co_return *std::move(known);
    }
    Attributes on = request;
    on.verb = "impersonate-on:" + std::string(kModes[mode]) + ":" + request.verb;
    if (Refusal refusal = co_await May(mode, std::move(on))) co_return *refusal;
    auto known = state.by_user.Get(by_user);
    if (!known) {
      auto checked = co_await CheckUser(mode, {request.user, request.cancellation}, wanted);
      if (!checked.ok()) co_return checked.error();
      known = *std::move(checked);
      state.by_user.Set(by_user, *known);
    }
    state.by_request.Set(by_request, *known);
    known->user.name = wanted.name;
    co_return *std::move(known);
  }

  Awaitable<Outcome<ImpersonatedUser, meta::Status>> Check(std::size_t mode, User wanted, Attributes request) {
    if (mode == kLegacy)
      return CheckUser(kLegacy, {std::move(request.user), std::move(request.cancellation)}, std::move(wanted));
    return CheckConstrained(mode, std::move(wanted), std::move(request));
  }

  Awaitable<Outcome<ImpersonatedUser, meta::Status>> TryModes(User wanted, Attributes request) {
    const std::string requester = request.user->name;
    const std::optional<std::size_t> last = last_mode.Get(requester);
    Refusal first;
    if (last && Applies(*last, wanted, *request.user)) {
      auto result = co_await Check(*last, wanted, request);
      if (result.ok()) co_return result;
      first = result.error();
    }
    for (std::size_t mode = 0; mode < std::size(kModes); ++mode) {
      if (mode == last || !Applies(mode, wanted, *request.user)) continue;
      auto result = co_await Check(mode, wanted, request);
      if (result.ok()) {
        last_mode.Set(requester, mode);
        co_return result;
      }
      if (!first) first = result.error();
    }
    co_return first ? *first : meta::NewInternalError("all impersonation modes failed");
  }
};

Impersonator::Impersonator(std::shared_ptr<auth::Authorizer> authorizer, Modes modes, ImpersonationMetrics* metrics,
                           const base::Clock& clock)
    : impl_(new Impl{.authorizer = std::move(authorizer), .modes = modes, .metrics = metrics, .clock = clock}) {
  for (auto& state : impl_->states) state = std::make_unique<Impl::ModeState>(clock);
}
Impersonator::~Impersonator() = default;

bool Impersonator::constrained() const { return impl_->modes == Modes::kConstrained; }

Awaitable<Outcome<ImpersonatedUser, meta::Status>> Impersonator::Impersonate(request::User wanted,
                                                                             auth::Attributes request) {
  if (!constrained()) co_return co_await impl_->Check(kLegacy, std::move(wanted), std::move(request));
  const auto started = impl_->clock.Monotonic();
  auto result = co_await impl_->TryModes(std::move(wanted), std::move(request));
  if (impl_->metrics != nullptr) {
    const std::string_view prefix = "impersonate:";
    const std::string_view mode = !result.ok() ? std::string_view()
                                  : result->constraint.empty()
                                      ? kModes[kLegacy]
                                      : std::string_view(result->constraint).substr(prefix.size());
    const std::string_view decision = result.ok() ? "allowed" : "denied";
    const std::chrono::duration<double> took = impl_->clock.Monotonic() - started;
    impl_->metrics->attempts.With({mode, decision}).Inc();
    impl_->metrics->attempt_durations.With({mode, decision}).Observe(took.count());
  }
  co_return result;
}

namespace {

telemetry::MetricOptions Metric(std::string_view name, std::string_view help) {
  return {.name = name,
          .help = help,
          .stability = telemetry::Stability::kAlpha,
          .labels = {"mode", "decision"},
          .buckets = telemetry::ExponentialBuckets(0.001, 2, 15)};
}

}  // namespace

ImpersonationMetrics::ImpersonationMetrics(telemetry::MetricsRegistry& registry)
    : attempts(registry.Counters(Metric("apiserver_impersonation_attempts_total",
                                        "Total number of impersonation attempts split by mode and decision."))),
      attempt_durations(
          registry.Histograms(Metric("apiserver_impersonation_attempts_duration_seconds",
                                     "Latency of impersonation attempts in seconds split by mode and decision."))),
      authorizations(registry.Counters(Metric(
          "apiserver_impersonation_authorization_attempts_total",
          "Total number of authorization checks made by the impersonation handler split by mode and decision."))),
      authorization_durations(
          registry.Histograms(Metric("apiserver_impersonation_authorization_attempts_duration_seconds",
                                     "Latency of authorization checks made by the impersonation handler in seconds "
                                     "split by mode and decision."))) {}

}  // namespace keelson::endpoints::filters
