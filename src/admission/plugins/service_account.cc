// ServiceAccount: every pod runs as one, and gets its token.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "admission/plugins/path_segment.h"
#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kVolumePrefix = "kube-api-access-";
constexpr std::string_view kEnforceSecrets = "kubernetes.io/enforce-mountable-secrets";
constexpr std::string_view kEphemeral = "ephemeral container ";
constexpr std::int64_t kTokenSeconds = 3607;

// Secrets in environments of one list of containers.
template <class F>
void ForEachSecretIn(Value containers, std::string_view word, const F& visit) {
  for (const Value container : containers.items()) {
    const std::string who = std::string(word) + std::string(container["name"].as_string());
    for (const Value variable : container["env"].items()) {
      if (const auto name = variable.Get("valueFrom", "secretKeyRef", "name").as_string(); !name.empty()) {
        visit(name, who + " with envVar " + std::string(variable["name"].as_string()) +
                        " referencing secret.secretName=" + base::GoQuote(name) +
                        " is not allowed because service account ");
      }
    }
    for (const Value source : container["envFrom"].items()) {
      if (const auto name = source.Get("secretRef", "name").as_string(); !name.empty()) {
        visit(name, who + " with envFrom referencing secret.secretName=" + base::GoQuote(name) +
                        " is not allowed because service account ");
      }
    }
  }
}

// The names of secrets that a pod's volumes and environments use, with the text that refuses them.
template <class F>
void ForEachSecret(Value pod, const F& visit) {
  for (const Value volume : pod.Get("spec", "volumes").items()) {
    if (const auto name = volume.Get("secret", "secretName").as_string(); !name.empty()) {
      visit(name, "volume with secret.secretName=" + base::GoQuote(name) + " is not allowed because service account ");
    }
  }
  ForEachSecretIn(pod.Get("spec", "initContainers"), "init container ", visit);
  ForEachSecretIn(pod.Get("spec", "containers"), "container ", visit);
  ForEachSecretIn(pod.Get("spec", "ephemeralContainers"), kEphemeral, visit);
}

bool Lists(Value references, std::string_view name) {
  return std::ranges::any_of(references.items(),
                             [&](Value reference) { return reference["name"].as_string() == name; });
}

// The annotation as Go's strconv.ParseBool reads it.
bool EnforcesSecrets(Value account) {
  constexpr std::string_view kTrue[] = {"1", "t", "T", "TRUE", "true", "True"};
  const std::string_view value = account.Get("metadata", "annotations")[kEnforceSecrets].as_string();
  return std::ranges::find(kTrue, value) != std::end(kTrue);
}

std::string RefuseEphemeralSecrets(Value account, Value pod) {
  std::string problem;
  ForEachSecretIn(
      pod.Get("spec", "ephemeralContainers"), kEphemeral, [&](std::string_view name, const std::string& text) {
        if (!problem.empty() || Lists(account["secrets"], name)) return;
        problem = text + std::string(account.Get("metadata", "name").as_string()) + " does not reference that secret";
      });
  return problem;
}

std::string RefuseSecrets(Value account, Value pod) {
  const std::string account_name(account.Get("metadata", "name").as_string());
  std::string problem;
  ForEachSecret(pod, [&](std::string_view name, const std::string& text) {
    if (problem.empty() && !Lists(account["secrets"], name))
      problem = text + account_name + " does not reference that secret";
  });
  if (!problem.empty()) return problem;
  std::int64_t index = 0;
  for (const Value reference : pod.Get("spec", "imagePullSecrets").items()) {
    const std::string_view name = reference["name"].as_string();
    if (!Lists(account["imagePullSecrets"], name)) {
      return "imagePullSecrets[" + std::to_string(index) + "].name=" + base::GoQuote(name) +
             " is not allowed because service account " + account_name + " does not reference that imagePullSecret";
    }
    ++index;
  }
  return problem;
}

Value TokenVolume(base::Arena& arena, std::string_view name) {
  Value volume = Value::Map(arena);
  volume.Set(arena, "name", name);
  Value projected = volume.EnsureMap(arena, "projected");
  Value sources = projected.EnsureList(arena, "sources");
  Value token = Value::Map(arena);
  Value token_source = token.EnsureMap(arena, "serviceAccountToken");
  token_source.Set(arena, "expirationSeconds", kTokenSeconds);
  token_source.Set(arena, "path", "token");
  sources.Append(arena, token);
  Value root = Value::Map(arena);
  Value root_source = root.EnsureMap(arena, "configMap");
  root_source.Set(arena, "name", "kube-root-ca.crt");
  Value root_item = Value::Map(arena);
  root_item.Set(arena, "key", "ca.crt");
  root_item.Set(arena, "path", "ca.crt");
  root_source.EnsureList(arena, "items").Append(arena, root_item);
  sources.Append(arena, root);
  Value downward = Value::Map(arena);
  Value downward_item = Value::Map(arena);
  downward_item.Set(arena, "path", "namespace");
  Value field = downward_item.EnsureMap(arena, "fieldRef");
  field.Set(arena, "apiVersion", "v1");
  field.Set(arena, "fieldPath", "metadata.namespace");
  downward.EnsureMap(arena, "downwardAPI").EnsureList(arena, "items").Append(arena, downward_item);
  sources.Append(arena, downward);
  projected.Set(arena, "defaultMode", 420);
  return volume;
}

void MountToken(base::Arena& arena, base::Random& random, Value pod) {
  Value spec = pod["spec"];
  std::string_view volume_name;
  bool has_volume = false;
  for (const Value volume : spec["volumes"].items()) {
    if (volume["name"].as_string().starts_with(kVolumePrefix)) {
      volume_name = volume["name"].as_string();
      has_volume = true;
      break;
    }
  }
  if (!has_volume) {
    static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
    std::string name(kVolumePrefix);
    for (int i = 0; i < 5; ++i) name += kAlphabet[random.Below(kAlphabet.size())];
    volume_name = arena.Copy(name);
  }
  bool mounted = false;
  for (const std::string_view list : {"initContainers", "containers"}) {
    for (Value container : spec[list].items()) {
      const Value mounts = container["volumeMounts"];
      if (std::ranges::any_of(mounts.items(), [](Value mount) { return mount["mountPath"].as_string() == kMountPath; }))
        continue;
      Value mount = Value::Map(arena);
      mount.Set(arena, "name", volume_name);
      mount.Set(arena, "readOnly", true);
      mount.Set(arena, "mountPath", kMountPath);
      container.EnsureList(arena, "volumeMounts").Append(arena, mount);
      mounted = true;
    }
  }
  if (!has_volume && mounted) spec.EnsureList(arena, "volumes").Append(arena, TokenVolume(arena, volume_name));
}

// The account "default" is made by a controller a moment after its namespace: it is looked for this often, with pauses
// of 100 to 200 ms.
constexpr int kDefaultAccountTries = 10;

Awaitable<void> Pause(base::Random& random) {
  constexpr std::uint64_t kLeastMillis = 100;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_after(std::chrono::milliseconds(kLeastMillis + random.Below(kLeastMillis)));
  co_await timer.async_wait(asio::use_awaitable);
}

Task<Value> FindAccount(ObjectReader& reader, base::Random& random, request::Context& context,
                        const Attributes& attributes, std::string name) {
  const std::string where = attributes.name_space + "/" + name;
  if (const std::string refused = PathSegmentError(name); !refused.empty()) {
    co_return NewForbidden(attributes, "error looking up service account " + where + ": " + refused);
  }
  auto found = co_await reader.Get(context.arena, "", "serviceaccounts", attributes.name_space, name, false);
  for (int tries = name == "default" ? kDefaultAccountTries : 1; !found.ok() && tries > 0; --tries) {
    found = co_await reader.Get(context.arena, "", "serviceaccounts", attributes.name_space, name, true);
    if (!found.ok() && tries > 1) co_await Pause(random);
  }
  if (!found.ok()) {
    co_return NewForbidden(attributes, "error looking up service account " + where + ": serviceaccount " +
                                           base::GoQuote(name) + " not found");
  }
  co_return *found;
}

// Any secret that a pod names, wherever it does (upstream's VisitPodSecretNames).
bool NamesSecret(Value pod) {
  bool found = false;
  ForEachSecret(pod, [&](std::string_view, const std::string&) { found = true; });
  const auto named = [](Value reference) { return !reference["name"].as_string().empty(); };
  for (const Value reference : pod.Get("spec", "imagePullSecrets").items()) found = found || named(reference);
  for (const Value volume : pod.Get("spec", "volumes").items()) {
    for (const std::string_view source : {"cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"})
      found = found || named(volume[source]["secretRef"]);
    found = found || !volume.Get("azureFile", "secretName").as_string().empty();
    found = found || named(volume.Get("csi", "nodePublishSecretRef"));
    for (const Value source : volume.Get("projected", "sources").items()) found = found || named(source["secret"]);
  }
  return found;
}

meta::Result<void> CheckMirrorPod(const Attributes& attributes) {
  const Value pod = attributes.object;
  if (!pod.Get("spec", "serviceAccountName").as_string().empty()) {
    return NewForbidden(attributes, "a mirror pod may not reference service accounts");
  }
  if (NamesSecret(pod)) return NewForbidden(attributes, "a mirror pod may not reference secrets");
  for (const Value volume : pod.Get("spec", "volumes").items()) {
    for (const Value source : volume.Get("projected", "sources").items()) {
      if (!source["serviceAccountToken"].is_null()) {
        return NewForbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections");
      }
    }
  }
  return {};
}

class ServiceAccountPlugin final : public Plugin {
 public:
  explicit ServiceAccountPlugin(const PluginContext& options) : reader_(*options.reader), random_(*options.random) {}
  std::string_view name() const override { return "ServiceAccount"; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Admit(request::Context& context, Attributes& attributes) override {
    if (!Concerns(attributes) || attributes.operation == Operation::kUpdate) co_return meta::Result<void>();
    Value pod = attributes.object;
    if (pod.Get("metadata", "annotations").Has(kMirror)) co_return co_await Validate(context, attributes);
    base::Arena& arena = context.arena;
    Value spec = pod.EnsureMap(arena, "spec");
    if (spec["serviceAccountName"].as_string().empty()) {
      spec.Set(arena, "serviceAccountName", "default");
      spec.Set(arena, "serviceAccount", "default");
    }
    KS_CO_TRY(const Value account, co_await FindAccount(reader_, random_, context, attributes,
                                                        std::string(spec["serviceAccountName"].as_string())));
    Value automount = spec["automountServiceAccountToken"];
    if (automount.is_null()) automount = account["automountServiceAccountToken"];
    if (automount.is_null() || automount.as_bool()) MountToken(arena, random_, pod);
    if (spec["imagePullSecrets"].empty() && !account["imagePullSecrets"].empty()) {
      Value secrets = Value::List(arena);
      for (const Value reference : account["imagePullSecrets"].items()) {
        Value copy = Value::Map(arena);
        copy.Set(arena, "name", reference["name"]);
        secrets.Append(arena, copy);
      }
      spec.Set(arena, "imagePullSecrets", secrets);
    }
    co_return co_await Validate(context, attributes);
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (!Concerns(attributes)) co_return meta::Result<void>();
    const Value pod = attributes.object;
    if (attributes.operation == Operation::kCreate && pod.Get("metadata", "annotations").Has(kMirror)) {
      co_return CheckMirrorPod(attributes);
    }
    const std::string name(pod.Get("spec", "serviceAccountName").as_string());
    if (name.empty()) {
      co_return NewForbidden(attributes, "no service account specified for pod " + attributes.name_space + "/" +
                                             std::string(pod.Get("metadata", "name").as_string()));
    }
    KS_CO_TRY(const Value account, co_await FindAccount(reader_, random_, context, attributes, name));
    if (!EnforcesSecrets(account)) co_return meta::Result<void>();
    if (attributes.operation == Operation::kUpdate) {
      // Upstream's plain error: 500 with this text.
      if (const std::string problem = RefuseEphemeralSecrets(account, pod); !problem.empty())
        co_return meta::NewPlainError(problem);
    } else if (const std::string problem = RefuseSecrets(account, pod); !problem.empty()) {
      co_return NewForbidden(attributes, problem);
    }
    co_return meta::Result<void>();
  }

 private:
  static bool Concerns(const Attributes& attributes) {
    if (!attributes.Is("", "pods")) return false;
    if (attributes.operation == Operation::kUpdate) return attributes.subresource == "ephemeralcontainers";
    return attributes.subresource.empty();
  }

  ObjectReader& reader_;
  base::Random& random_;
};

}  // namespace

std::unique_ptr<Plugin> NewServiceAccount(const PluginContext& options) {
  return std::make_unique<ServiceAccountPlugin>(options);
}

}  // namespace keelson::admission
