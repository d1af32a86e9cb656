#include "controllers/legacy_token_cleaner.h"

#include <map>
#include <optional>
#include <set>

#include "base/url.h"
#include "object/json_text.h"
#include "registry/store.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

using Time = base::Clock::SystemTime;
constexpr std::chrono::hours kSyncInterval{24}, kCleanUpPeriod{365 * 24};
constexpr std::string_view kTokenType = "kubernetes.io/service-account-token";
constexpr std::string_view kLastUsed = "kubernetes.io/legacy-token-last-used",
                           kInvalidSince = "kubernetes.io/legacy-token-invalid-since";
constexpr std::string_view kTracking = "kube-apiserver-legacy-service-account-token-tracking";

std::optional<Time> ParseDate(std::string_view date) { return registry::ParseTime(std::string(date) + "T00:00:00Z"); }
std::string Date(Time time) { return registry::FormatTime(time).substr(0, 10); }

// Secrets that a pod's volumes, environments and image pulls name.
void CollectSecretNames(Value pod, std::set<std::string>& names) {
  const auto add = [&](Value name) {
    if (!name.as_string().empty()) names.emplace(name.as_string());
  };
  const Value spec = pod["spec"];
  for (const Value reference : spec["imagePullSecrets"].items()) add(reference["name"]);
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value container : spec[list].items()) {
      for (const Value variable : container["env"].items()) add(variable.Get("valueFrom", "secretKeyRef", "name"));
      for (const Value source : container["envFrom"].items()) add(source.Get("secretRef", "name"));
    }
  }
  for (const Value volume : spec["volumes"].items()) {
    for (const std::string_view kind : {"cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"})
      add(volume.Get(kind, "secretRef", "name"));
    add(volume.Get("azureFile", "secretName"));
    add(volume.Get("secret", "secretName"));
    add(volume.Get("csi", "nodePublishSecretRef", "name"));
    for (const Value source : volume.Get("projected", "sources").items()) add(source.Get("secret", "name"));
  }
}

class LegacyTokenCleaner final : public Controller, public std::enable_shared_from_this<LegacyTokenCleaner> {
 public:
  explicit LegacyTokenCleaner(ControllerContext context) : context_(std::move(context)) {}

  void Start() override {
    auto options = context_.QueueOptions("", 1);
    options.metrics = nullptr;  // upstream has no queue here
    timer_ = WorkQueue::New(context_.executor, std::move(options),
                            [weak = weak_from_this()](std::string) { return Evaluate(weak.lock()); });
    timer_->Open();
    secrets_ = context_.informers->Find("", "secrets");
    accounts_ = context_.informers->Find("", "serviceaccounts");
    pods_ = context_.informers->Find("", "pods");
    if (secrets_ && accounts_ && pods_) timer_->Add("evaluate");
  }

  void Stop() override { timer_->ShutDown(); }

 private:
  using UsedSecrets = std::map<std::string, std::set<std::string>>;  // by namespace

  static Awaitable<WorkQueue::Result> Evaluate(std::shared_ptr<LegacyTokenCleaner> self) {
    if (!self) co_return WorkQueue::Result::Done();
    const Time now = self->context_.clock->Now();
    const auto since = co_await self->TrackedSince();
    if (!since || now < *since + kCleanUpPeriod) co_return WorkQueue::Result::After(kSyncInterval);
    auto list = co_await self->secrets_->List("", {.resource_version = "0"});
    if (!list.ok()) co_return WorkQueue::Result::After(kSyncInterval);
    UsedSecrets used;
    for (const storage::ObjectPtr& item : list->items) {
      base::Arena arena;
      auto secret = self->secrets_->Decode(arena, item);
      if (secret.ok() && (*secret)["type"].as_string() == kTokenType) co_await self->EvaluateSecret(*secret, now, used);
    }
    co_return WorkQueue::Result::After(kSyncInterval);
  }

  // The day after uses began to be recorded; nothing when that is not known.
  Awaitable<std::optional<Time>> TrackedSince() {
    auto got = co_await context_.client->Do(
        {.method = "GET", .target = APIPath("v1", "kube-system", "configmaps/" + std::string(kTracking))});
    if (!got.ok()) {
      log::Error("Getting latest possible tracked_since time", "err", got.error());
      co_return std::nullopt;
    }
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, *got);
    const auto since = parsed ? ParseDate(parsed->Get("data", "since").as_string()) : std::nullopt;
    if (!since) co_return std::nullopt;
    co_return *since + std::chrono::hours(24);
  }

  Awaitable<void> EvaluateSecret(Value secret, Time now, UsedSecrets& used) {
    const Value metadata = secret["metadata"];
    const std::string name_space(metadata["namespace"].as_string()), name(metadata["name"].as_string());
    const auto created = registry::ParseTime(metadata["creationTimestamp"].as_string());
    if (!created || *created >= now - kCleanUpPeriod || metadata["deletionTimestamp"].is_string()) co_return;
    const std::string keep_from = Date(now - kCleanUpPeriod);
    if (const Value last_used = metadata["labels"][kLastUsed]; last_used.is_string()) {
      if (!ParseDate(last_used.as_string()) || last_used.as_string() >= keep_from) co_return;
    }
    if (!co_await IsAutomatic(metadata) || co_await IsUsed(name_space, name, used)) co_return;
    const std::string path = APIPath("v1", name_space, "secrets/" + base::PathEscape(name));
    const std::string_view invalid_since = metadata["labels"][kInvalidSince].as_string();
    if (!ParseDate(invalid_since)) {
      log::Info("Mark the auto-generated service account token as invalid", "invalidSince", Date(now), "secret",
                name_space + "/" + name);
      const std::string patch = R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":")" + name +
                                R"(","namespace":")" + name_space + R"(","uid":")" +
                                std::string(metadata["uid"].as_string()) + R"(","labels":{")" +
                                std::string(kInvalidSince) + "\":\"" + Date(now) + "\"}}}";
      const auto patched =
          co_await context_.client->Do({.method = "PATCH", .target = path, .body = patch, .content_type = kMergePatch});
      if (!patched.ok())
        log::Error("Failed to label legacy service account token secret with invalid since date", "err",
                   patched.error());
      co_return;
    }
    if (invalid_since >= keep_from) co_return;
    log::Info("Delete auto-generated service account token", "secret", name_space + "/" + name, "invalidSince",
              invalid_since);
    const std::string body = R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":")" +
                             std::string(metadata["resourceVersion"].as_string()) + "\"}}";
    const auto deleted = co_await context_.client->Do({.method = "DELETE", .target = path, .body = body});
    if (!deleted.ok() && deleted.error().reason() != meta::StatusReason::kConflict &&
        deleted.error().reason() != meta::StatusReason::kNotFound) {
      log::Error("Deleting legacy service account token", "secret", name_space + "/" + name, "err", deleted.error());
    }
  }

  // Listed by the service account it is for: otherwise it was created by hand.
  Awaitable<bool> IsAutomatic(Value metadata) {
    const Value annotations = metadata["annotations"];
    const std::string account(annotations["kubernetes.io/service-account.name"].as_string());
    const std::string_view uid = annotations["kubernetes.io/service-account.uid"].as_string();
    if (account.empty()) co_return false;
    auto found = co_await accounts_->Get(std::string(metadata["namespace"].as_string()), account, "0");
    if (!found.ok()) co_return false;
    base::Arena arena;
    auto value = accounts_->Decode(arena, *found);
    if (!value.ok() || (!uid.empty() && value->Get("metadata", "uid").as_string() != uid)) co_return false;
    for (const Value reference : (*value)["secrets"].items()) {
      if (reference["name"] == metadata["name"]) co_return true;
    }
    co_return false;
  }

  Awaitable<bool> IsUsed(std::string name_space, std::string name, UsedSecrets& used) {
    if (!used.contains(name_space)) {
      auto list = co_await pods_->List(name_space, {.resource_version = "0"});
      if (!list.ok()) co_return true;
      std::set<std::string>& names = used[name_space];
      for (const storage::ObjectPtr& item : list->items) {
        base::Arena arena;
        auto pod = pods_->Decode(arena, item);
        if (pod.ok()) CollectSecretNames(*pod, names);
      }
    }
    co_return used[name_space].contains(name);
  }

  const ControllerContext context_;
  std::shared_ptr<WorkQueue> timer_;
  std::shared_ptr<registry::Store> secrets_, accounts_, pods_;
};

}  // namespace

std::shared_ptr<Controller> NewLegacyTokenCleaner(ControllerContext context) {
  return std::make_shared<LegacyTokenCleaner>(std::move(context));
}

}  // namespace keelson::controllers
