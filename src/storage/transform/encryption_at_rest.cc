#include "storage/transform/encryption_at_rest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "async/deadlines.h"
#include "async/event.h"
#include "base/strings.h"
#include "storage/transform/ciphers.h"
#include "storage/transform/kms.h"
#include "storage/transform/prefix_transformers.h"

namespace keelson::storage {
namespace {

using Kind = EncryptionProvider::Kind;
using base::SharedBytes;

constexpr auto kHealthyWaitMin = std::chrono::seconds(10);
constexpr auto kHealthyPoll = std::chrono::milliseconds(100);
constexpr std::string_view kHealthCheck = "kms-providers";
constexpr std::string_view kHealthCheckOf = "kms-provider-";

meta::GroupResource Parse(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {"", std::string(text)};
  return {std::string(text.substr(dot + 1)), std::string(text.substr(0, dot))};
}

// As it is written in the file: "*." for everything in the core group.
std::string Shown(const meta::GroupResource& resource) {
  return resource.group.empty() && resource.resource == "*" ? "*." : resource.ToString();
}

std::string_view ProviderPrefix(Kind kind) {
  switch (kind) {
    case Kind::kAESGCM:
      return "k8s:enc:aesgcm:v1:";
    case Kind::kAESCBC:
      return "k8s:enc:aescbc:v1:";
    case Kind::kSecretbox:
      return "k8s:enc:secretbox:v1:";
    case Kind::kIdentity:
    case Kind::kKMS:
      break;
  }
  return "";
}

std::unique_ptr<Transformer> NewCipher(Kind kind, const std::string& secret, base::Random& random) {
  switch (kind) {
    case Kind::kAESGCM:
      return NewAESGCMTransformer(secret, random);
    case Kind::kAESCBC:
      return NewAESCBCTransformer(secret, random);
    case Kind::kSecretbox:
      return NewSecretboxTransformer(secret, random);
    case Kind::kIdentity:
    case Kind::kKMS:
      break;
  }
  return nullptr;
}

// Of any provider but KMS.
PrefixTransformers::Entry NewProvider(const EncryptionProvider& provider, base::Random& random) {
  if (provider.kind == Kind::kIdentity) {
    return {"", std::shared_ptr<const Transformer>(&Transformer::Identity(), [](const Transformer*) {})};
  }
  std::vector<PrefixTransformers::Entry> keys;
  for (const EncryptionKey& key : provider.keys)
    keys.push_back({key.name + ":", NewCipher(provider.kind, key.secret, random)});
  return {std::string(ProviderPrefix(provider.kind)), std::make_shared<PrefixTransformers>(std::move(keys))};
}

}  // namespace

struct EncryptionAtRest::Rules : base::RefCounted {
  std::map<meta::GroupResource, PrefixTransformers> transformers;
  std::vector<std::shared_ptr<KMSProvider>> kms;
  bool kms_v1_used = false;
  std::chrono::milliseconds timeouts{0};  // of all plugins, one after the other
  std::string hash;

  // Null: plain.
  const PrefixTransformers* Find(const meta::GroupResource& resource) const {
    for (const meta::GroupResource& rule :
         {resource, meta::GroupResource{resource.group, "*"}, meta::GroupResource{"*", "*"}}) {
      if (const auto found = transformers.find(rule); found != transformers.end()) return &found->second;
    }
    return nullptr;
  }
};

// Looks up the rules each time, so that a reload is seen by the next read and write.
class EncryptionAtRest::Following final : public Transformer {
 public:
  Following(const EncryptionAtRest& owner, meta::GroupResource resource)
      : owner_(owner), resource_(std::move(resource)) {}

  Outcome<Plain, std::string> TransformFromStorage(const SharedBytes& data,
                                                   const TransformContext& context) const override {
    const auto rules = owner_.rules_.Load();
    const PrefixTransformers* const to = rules->Find(resource_);
    if (to == nullptr) return Identity().TransformFromStorage(data, context);
    const auto begun = owner_.options_.clock->Monotonic();
    auto plain = to->TransformFromStorage(data, context);
    const std::string* const prefix = to->PrefixOf(data);
    Count("from_storage", prefix == nullptr ? "unknown" : std::string_view(*prefix), begun, plain.ok());
    return plain;
  }
  Outcome<SharedBytes, std::string> TransformToStorage(const SharedBytes& data,
                                                       const TransformContext& context) const override {
    const auto rules = owner_.rules_.Load();
    const PrefixTransformers* const to = rules->Find(resource_);
    if (to == nullptr) return data;
    const auto begun = owner_.options_.clock->Monotonic();
    auto sealed = to->TransformToStorage(data, context);
    Count("to_storage", to->writer_prefix(), begun, sealed.ok());
    return sealed;
  }
  bool NeedsPrepare(const SharedBytes& data) const override {
    const auto rules = owner_.rules_.Load();
    if (rules->kms.empty()) return false;
    const PrefixTransformers* const to = rules->Find(resource_);
    return to != nullptr && to->NeedsPrepare(data);
  }
  Awaitable<Outcome<void, std::string>> Prepare(SharedBytes data) const override {
    const auto rules = owner_.rules_.Load();  // held until the plugin has answered
    const PrefixTransformers* const to = rules->Find(resource_);
    if (to == nullptr) co_return Outcome<void, std::string>();
    co_return co_await to->Prepare(std::move(data));
  }
  bool WritesElsewhere() const override {
    const auto rules = owner_.rules_.Load();
    if (!rules->kms_v1_used) return false;
    const PrefixTransformers* const to = rules->Find(resource_);
    return to != nullptr && to->WritesElsewhere();
  }
  Awaitable<Outcome<SharedBytes, std::string>> AwaitToStorage(SharedBytes data, std::string key) const override {
    const auto rules = owner_.rules_.Load();
    const PrefixTransformers* const to = rules->Find(resource_);
    if (to == nullptr) co_return data;
    const auto begun = owner_.options_.clock->Monotonic();
    auto sealed = co_await to->AwaitToStorage(std::move(data), std::move(key));
    Count("to_storage", to->writer_prefix(), begun, sealed.ok());
    co_return sealed;
  }

 private:
  void Count(std::string_view type, std::string_view prefix, base::Clock::SteadyTime begun, bool ok) const {
    TransformMetrics* const metrics = owner_.options_.metrics;
    if (metrics == nullptr) return;
    metrics->Transformed(resource_.ToString(), type, prefix.empty() ? "identity" : prefix,
                         owner_.options_.clock->Monotonic() - begun, ok);
  }

  const EncryptionAtRest& owner_;
  const meta::GroupResource resource_;
};

EncryptionAtRest::EncryptionAtRest(Options options) : options_(std::move(options)) {}
EncryptionAtRest::~EncryptionAtRest() = default;

Awaitable<Outcome<base::Ref<const EncryptionAtRest::Rules>, std::string>> EncryptionAtRest::Build(
    std::string text, const Options& options) {
  auto parsed = ParseEncryptionConfiguration(options.path, text, options.reload);
  if (!parsed.ok()) co_return "error while parsing file: " + parsed.error();
  const EncryptionConfiguration config = *std::move(parsed);
  auto rules = base::MakeRef<Rules>();
  std::map<meta::GroupResource, std::vector<PrefixTransformers::Entry>> entries;
  for (const EncryptionResources& item : config.resources) {
    std::vector<PrefixTransformers::Entry> providers;
    for (const EncryptionProvider& provider : item.providers) {
      if (provider.kind != Kind::kKMS) {
        providers.push_back(NewProvider(provider, *options.random));
        continue;
      }
      const bool v1 = provider.api_version == "v1";
      if (v1 && !options.kms_v1) {
        co_return std::string(
            "error while building transformers: KMSv1 is deprecated and will only receive security updates going "
            "forward. Use KMSv2 instead.  Set "
            "--feature-gates=KMSv1=true to use the deprecated KMSv1 feature.");
      }
      rules->kms.push_back(KMSProvider::New(
          {.provider = provider, .clock = options.clock, .random = options.random, .metrics = options.metrics}));
      rules->kms_v1_used = rules->kms_v1_used || v1;
      rules->timeouts += std::chrono::milliseconds(provider.timeout_ms * (v1 ? 2 : 1));
      providers.push_back({"k8s:enc:kms:" + provider.api_version + ":" + provider.name + ":", rules->kms.back()});
    }
    for (const std::string& name : item.resources) {
      const meta::GroupResource resource = Parse(name);
      for (const meta::GroupResource& rule :
           {meta::GroupResource{resource.group, "*"}, meta::GroupResource{"*", "*"}}) {
        if (!entries.contains(rule)) continue;
        co_return "resource " + base::GoQuote(Shown(resource)) + " is masked by earlier rule " +
            base::GoQuote(Shown(rule));
      }
      auto& list = entries[resource];
      list.insert(list.end(), providers.begin(), providers.end());
    }
  }
  for (auto& [resource, list] : entries) rules->transformers.emplace(resource, std::move(list));
  rules->hash = HashIfNotEmpty(text);
  for (const auto& provider : rules->kms) co_await provider->Probe();
  co_return base::Ref<const Rules>(rules);
}

Awaitable<Outcome<std::unique_ptr<EncryptionAtRest>, std::string>> EncryptionAtRest::New(std::string text,
                                                                                         Options options) {
  KS_CO_TRY(base::Ref<const Rules> rules, co_await Build(std::move(text), options));
  std::unique_ptr<EncryptionAtRest> made(new EncryptionAtRest(options));
  if (options.metrics != nullptr) options.metrics->ConfigInUse(rules->hash);
  made->rules_.Store(std::move(rules));
  co_return made;
}

const Transformer& EncryptionAtRest::For(const meta::GroupResource& resource) {
  std::lock_guard lock(mutex_);
  auto& follower = followers_[resource];
  if (!follower) follower = std::make_unique<Following>(*this, resource);
  return *follower;
}

Awaitable<std::optional<std::string>> EncryptionAtRest::WaitUntilHealthy(base::Ref<const Rules> rules) {
  const auto give_up = base::Clock::Real().Monotonic() +
                       std::max<base::Clock::SteadyTime::duration>(kHealthyWaitMin, 2 * rules->timeouts);
  for (const auto& provider : rules->kms) {
    for (;;) {
      auto wrong = co_await provider->Probe();
      if (!wrong) break;
      const auto now = base::Clock::Real().Monotonic();
      if (now >= give_up) co_return wrong;
      async::Event wake;
      const auto entry = async::Deadlines::Global().Add(now + kHealthyPoll, [&wake] { wake.Set(); });
      co_await wake.Wait();
    }
  }
  co_return std::nullopt;
}

Awaitable<Outcome<bool, std::string>> EncryptionAtRest::Reload(std::string text) {
  if (HashIfNotEmpty(text) == hash()) co_return false;
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(options_.clock->Now().time_since_epoch()).count();
  auto built = co_await Build(std::move(text), options_);
  std::optional<std::string> wrong;
  if (!built.ok()) {
    wrong = built.error();
  } else if (auto unhealthy = co_await WaitUntilHealthy(*built)) {
    wrong = "health check for new transformers failed: " + *unhealthy;
  }
  if (options_.metrics != nullptr) options_.metrics->Reloaded(!wrong, now);
  if (wrong) co_return *std::move(wrong);
  if (options_.metrics != nullptr) options_.metrics->ConfigInUse((*built)->hash);
  // Operations in progress hold the old rules, and with them the connections to their plugins, until it is done.
  rules_.Store(*std::move(built));
  co_return true;
}

std::string EncryptionAtRest::hash() const { return rules_.Load()->hash; }

Awaitable<void> EncryptionAtRest::Poll() {
  const auto rules = rules_.Load();
  for (const auto& provider : rules->kms) co_await provider->ProbeWhenDue();
}

std::vector<std::string> EncryptionAtRest::HealthChecks() const {
  const auto rules = rules_.Load();
  if (options_.reload || (!rules->kms.empty() && !rules->kms_v1_used)) return {std::string(kHealthCheck)};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rules->kms.size(); ++i) names.push_back(std::string(kHealthCheckOf) + std::to_string(i));
  return names;
}

std::string EncryptionAtRest::Health(std::string_view name) const {
  const auto rules = rules_.Load();
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < rules->kms.size(); ++i) {
    const std::string own = std::string(kHealthCheckOf) + std::to_string(i);
    if (name != kHealthCheck && name != own) continue;
    if (auto found = rules->kms[i]->Health()) wrong.push_back(name == own ? *found : own + ": " + *found);
  }
  if (wrong.size() <= 1) return wrong.empty() ? "" : wrong[0];
  return "[" + base::Join(wrong, ", ") + "]";
}

}  // namespace keelson::storage
