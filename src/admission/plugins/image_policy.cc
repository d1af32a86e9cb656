// ImagePolicyWebhook: a remote service (ImageReview) decides whether the images of a pod may run. Decisions are cached.
#include <openssl/sha.h>

#include <algorithm>

#include "admission/annotation.h"
#include "admission/plugins/plugins.h"
#include "base/duration.h"
#include "base/expiring_cache.h"
#include "base/strings.h"
#include "object/json_text.h"
#include "telemetry/log.h"
#include "webhook/kubeconfig.h"
#include "webhook/retry.h"
#include "webhook/review_answer.h"

namespace keelson::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::string_view kPlugin = "ImagePolicyWebhook";
constexpr std::string_view kAuditPrefix = "imagepolicywebhook.image-policy.k8s.io/";
constexpr std::size_t kCacheEntriesMax = 1024;

// A duration of the configuration: a number in its unit, 0 for the default, -1 for none.
struct Setting {
  std::string_view field;
  nanoseconds unit, least, most, standard;
};
constexpr Setting kRetryBackoff{"retryBackoff", milliseconds(1), nanoseconds(1), minutes(5), milliseconds(500)};
constexpr Setting kAllowTTL{"allowTTL", seconds(1), seconds(1), minutes(30), minutes(5)};
constexpr Setting kDenyTTL{"denyTTL", seconds(1), seconds(1), minutes(30), seconds(30)};

Outcome<nanoseconds, std::string> DurationOf(Value policy, const Setting& setting) {
  const std::int64_t number = policy[setting.field].as_int();
  if (number == -1) return nanoseconds(0);
  if (number == 0) return setting.standard;
  // Numbers beyond what a Duration holds are out of range all the same.
  const std::int64_t bound = nanoseconds(setting.most).count() / setting.unit.count() + 1;
  const nanoseconds value = setting.unit * std::clamp(number, -bound, bound);
  if (value >= setting.least && value <= setting.most) return value;
  return "valid value is between " + base::FormatDuration(setting.least) + " and " +
         base::FormatDuration(setting.most) + ", got " + base::FormatDuration(value);
}

struct Verdict {
  bool allowed = false;
  std::string reason;
  std::vector<std::pair<std::string, std::string>> audit_annotations;
};

Verdict VerdictOf(Value status) {
  Verdict verdict{.allowed = status["allowed"].as_bool(), .reason = std::string(status["reason"].as_string())};
  for (const auto& member : status["auditAnnotations"].members())
    verdict.audit_annotations.emplace_back(member.key, member.value.as_string());
  return verdict;
}

// ImageReviewSpec as JSON. Upstream leaves the ephemeral containers to their subresource.
std::string SpecOf(const Attributes& attributes) {
  std::string images;
  const auto add = [&](std::string_view list) {
    for (const Value container : attributes.object["spec"][list].items()) {
      images += images.empty() ? "{" : ",{";
      if (const std::string_view image = container["image"].as_string(); !image.empty()) {
        images += "\"image\":";
        object::AppendJSONString(images, image);
      }
      images += '}';
    }
  };
  if (attributes.subresource.empty()) {
    add("containers");
    add("initContainers");
  } else {
    add("ephemeralContainers");
  }
  std::map<std::string_view, std::string_view> annotations;
  for (const auto& member : attributes.object.Get("metadata", "annotations").members()) {
    if (member.key.find(".image-policy.k8s.io/") != std::string_view::npos)
      annotations.emplace(member.key, member.value.as_string());
  }
  std::string spec = "{";
  if (!images.empty()) spec += "\"containers\":[" + images + "],";
  if (!annotations.empty()) {
    spec += "\"annotations\":{";
    for (const auto& [key, value] : annotations) {
      object::AppendJSONString(spec, key);
      spec += ':';
      object::AppendJSONString(spec, value);
      spec += ',';
    }
    spec.back() = '}';
    spec += ',';
  }
  spec += "\"namespace\":";
  object::AppendJSONString(spec, attributes.name_space);
  return spec + "}";
}

std::string DigestOf(std::string_view text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

class ImagePolicyWebhook final : public Plugin {
 public:
  // REQUIRES: CheckImagePolicy() has accepted the configuration.
  explicit ImagePolicyWebhook(const PluginContext& context)
      : ImagePolicyWebhook(context, context.ConfigurationOf(kPlugin)["imagePolicy"]) {}

  std::string_view name() const override { return kPlugin; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    const bool concerned = attributes.subresource.empty() || attributes.subresource == "ephemeralcontainers";
    if (!attributes.Is("", "pods") || !concerned) co_return meta::Result<void>();
    const std::string spec = SpecOf(attributes);
    const std::string key = DigestOf(spec);
    std::optional<Verdict> verdict = allowed_.Get(key);
    if (!verdict) verdict = denied_.Get(key);
    if (!verdict) {
      auto asked = co_await Ask(context, spec);
      if (!asked.ok()) co_return Failed(context, attributes, asked.error());
      verdict = *std::move(asked);
      (verdict->allowed ? allowed_ : denied_).Set(key, *verdict);
    }
    for (const auto& [name, value] : verdict->audit_annotations)
      AddAnnotation(context, std::string(kAuditPrefix) + name, value);
    if (verdict->allowed) co_return meta::Result<void>();
    co_return NewForbidden(attributes,
                           verdict->reason.empty()
                               ? "one or more images rejected by webhook backend"
                               : "image policy webhook backend denied one or more images: " + verdict->reason);
  }

 private:
  ImagePolicyWebhook(const PluginContext& context, Value policy)
      : default_allow_(policy["defaultAllow"].as_bool()),
        allowed_(kCacheEntriesMax, *DurationOf(policy, kAllowTTL), *context.clock),
        denied_(kCacheEntriesMax, *DurationOf(policy, kDenyTTL), *context.clock) {
    backoff_.duration = std::chrono::ceil<milliseconds>(*DurationOf(policy, kRetryBackoff));
    auto config = webhook::LoadKubeconfig(std::string(policy["kubeConfigFile"].as_string()));
    if (!config.ok()) return;
    // Without a client (the file went away since it was checked) every review fails.
    if (auto client = webhook::RESTClient::New(context.transport, *std::move(config)); client.ok()) client_ = *client;
  }

  Awaitable<Outcome<Verdict, std::string>> Ask(request::Context& context, std::string spec) const {
    if (client_ == nullptr) co_return std::string("the image policy webhook cannot be called");
    webhook::Request request;
    request.body = base::SharedBytes::FromString(
        "{\"kind\":\"ImageReview\",\"apiVersion\":\"imagepolicy.k8s.io/v1alpha1\",\"metadata\":{},\"spec\":" + spec +
        ",\"status\":{\"allowed\":false}}");
    request.deadline = context.deadline;
    request.cancellation = context.cancellation;
    request.response_bytes_max = webhook::kReviewAnswerBytesMax;
    auto answer = co_await webhook::WithExponentialBackoff(
        {.backoff = backoff_, .deadline = context.deadline, .cancellation = context.cancellation},
        [client = client_, request] { return client->Call(request); });
    if (!answer.ok()) co_return answer.error().message;
    base::Arena arena;
    const auto review = webhook::DecodeReviewAnswer(arena, *answer, {"imagepolicy.k8s.io", "v1alpha1", "ImageReview"});
    if (!review.ok()) co_return review.error();
    co_return VerdictOf((*review)["status"]);
  }

  meta::Result<void> Failed(request::Context& context, const Attributes& attributes, const std::string& error) const {
    log::V(2).Info("error contacting webhook backend", "err", error);
    if (!default_allow_) return NewForbidden(attributes, error);
    context.audit_annotations.Add(std::string(kAuditPrefix) + "failed-open", "true");
    log::V(2).Info("resource allowed in spite of webhook backend failure");
    return {};
  }

  std::shared_ptr<webhook::RESTClient> client_;
  webhook::Backoff backoff_;
  const bool default_allow_;
  base::ExpiringCache<Verdict> allowed_, denied_;
};

}  // namespace

std::string CheckImagePolicy(Value configuration) {
  if (configuration.is_null()) return "no config specified";
  const Value policy = configuration["imagePolicy"];
  for (const Setting& setting : {kRetryBackoff, kAllowTTL, kDenyTTL}) {
    if (const auto duration = DurationOf(policy, setting); !duration.ok()) return duration.error();
  }
  const auto loaded = webhook::LoadKubeconfig(std::string(policy["kubeConfigFile"].as_string()));
  return loaded.ok() ? "" : loaded.error();
}

std::unique_ptr<Plugin> NewImagePolicyWebhook(const PluginContext& context) {
  return std::make_unique<ImagePolicyWebhook>(context);
}

}  // namespace keelson::admission
