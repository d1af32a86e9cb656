#include "controlplane/service_account_tokens.h"

#include <algorithm>
#include <mutex>

#include "base/strings.h"
#include "controlplane/bootstrap.h"
#include "controlplane/custom_routes.h"
#include "endpoints/custom.h"
#include "endpoints/page.h"
#include "patch/field_manager.h"
#include "registry/authentication/strategies.h"
#include "registry/catalog.h"
#include "registry/fields.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

using endpoints::ScopePtr;
using endpoints::Task;
using registry::Text;
using std::chrono::seconds;

constexpr seconds kWarnOnlyBoundToken{3607};  // the lifetime that admission requests for projected tokens

constexpr std::string_view kLastUsed = "kubernetes.io/legacy-token-last-used";

class StoredTokenObjects final : public auth::TokenObjects {
 public:
  explicit StoredTokenObjects(ResourceStorage& storage) : storage_(storage) {}

  Awaitable<Outcome<std::optional<auth::TokenObject>, std::string>> Get(std::string resource, std::string name_space,
                                                                        std::string name) override {
    const auto store = storage_.Find("", resource);
    if (!store) co_return "the server has no " + resource;
    if (name.empty()) co_return std::optional<auth::TokenObject>();
    // The cache may not have seen a young object yet.
    auto object = co_await store->Get(name_space, name, "0");
    if (!object.ok()) object = co_await store->Get(name_space, name, "");
    if (!object.ok()) {
      if (object.error().reason() == meta::StatusReason::kNotFound) co_return std::optional<auth::TokenObject>();
      co_return std::string(object.error().message());
    }
    base::Arena arena;
    auto value = store->Decode(arena, *object);
    if (!value.ok()) co_return std::string(value.error().message());
    const Value metadata = (*value)["metadata"];
    auth::TokenObject facts{.uid = std::string(Text(metadata, "uid"))};
    if (metadata["deletionTimestamp"].is_string())
      facts.deleted_at = registry::ParseTime(Text(metadata, "deletionTimestamp"));
    if (resource == "secrets") {
      facts.token = base::Base64Decode(Text((*value)["data"], "token")).value_or("");
      facts.invalid_since = Text(metadata["labels"], "kubernetes.io/legacy-token-invalid-since");
      facts.last_used = Text(metadata["labels"], kLastUsed);
    }
    for (const Value secret : (*value)["secrets"].items()) facts.secrets.emplace_back(Text(secret, "name"));
    co_return std::optional<auth::TokenObject>(std::move(facts));
  }

  Awaitable<void> RecordUse(std::string name_space, std::string secret, std::string uid, std::string date) override {
    const auto store = storage_.Find("", "secrets");
    if (!store) co_return;
    const MakeObject make = [&](base::Arena& arena, Value existing) -> std::optional<Value> {
      if (existing.is_null() || Text(existing["metadata"], "uid") != uid) return std::nullopt;
      Value labelled = existing.Clone(arena);
      labelled["metadata"].EnsureMap(arena, "labels").Set(arena, kLastUsed, Value::String(arena, date));
      return labelled;
    };
    auto written = co_await UpsertObject(store, name_space, secret, make);
    if (!written.ok()) {
      log::Error("Could not label a token's secret", "namespace", name_space, "name", secret, "err", written.error());
    }
  }

 private:
  ResourceStorage& storage_;
};

class StoredBootstrapSecrets final : public auth::BootstrapSecrets {
 public:
  explicit StoredBootstrapSecrets(ResourceStorage& storage) : storage_(storage) {}

  Awaitable<Outcome<std::optional<auth::BootstrapSecret>, std::string>> Get(std::string name) override {
    const auto store = storage_.Find("", "secrets");
    if (!store) co_return std::string("the server has no secrets");
    auto object = co_await store->Get("kube-system", name, "0");
    if (!object.ok()) {
      if (object.error().reason() == meta::StatusReason::kNotFound) co_return std::optional<auth::BootstrapSecret>();
      co_return std::string(object.error().message());
    }
    base::Arena arena;
    auto value = store->Decode(arena, *object);
    if (!value.ok()) co_return std::string(value.error().message());
    auth::BootstrapSecret secret{.type = std::string(Text(*value, "type")),
                                 .deleting = (*value)["metadata"]["deletionTimestamp"].is_string()};
    for (const auto& member : (*value)["data"].members())
      secret.data.emplace(member.key, base::Base64Decode(member.value.as_string()).value_or(""));
    co_return std::optional<auth::BootstrapSecret>(std::move(secret));
  }

 private:
  ResourceStorage& storage_;
};

const meta::GroupKind kTokenRequest{"authentication.k8s.io", "TokenRequest"};

struct TokenService {
  TokenIssuer issuer;
  const registry::Strategy& strategy;  // of TokenRequest
  std::shared_ptr<registry::Store> accounts, pods, secrets, nodes;
};

Task<Value> Read(const std::shared_ptr<registry::Store>& store, request::Context& context, std::string name_space,
                 std::string name) {
  if (!store) co_return meta::NewInternalError("the resource is not served");
  KS_CO_TRY(const storage::ObjectPtr object,
            co_await store->Get(std::move(name_space), std::move(name), "", context.caller()));
  co_return store->Decode(context.arena, object);
}

auth::ObjectClaim ClaimOf(Value object) {
  return {.name = std::string(Text(object["metadata"], "name")), .uid = std::string(Text(object["metadata"], "uid"))};
}

// The object a token is bound to, checked, as claims.
Task<void> Bind(std::shared_ptr<TokenService> service, request::Context& context, std::string name_space,
                std::string account, Value ref, auth::TokenClaims& claims) {
  const std::string_view api_version = Text(ref, "apiVersion"), kind = Text(ref, "kind");
  const bool core = api_version.find('/') == std::string_view::npos;  // of any version, also of none
  const std::string name(Text(ref, "name"));
  std::string uid;
  if (core && kind == "Pod") {
    KS_CO_TRY(const Value pod, co_await Read(service->pods, context, name_space, name));
    if (Text(pod["spec"], "serviceAccountName") != account) {
      co_return meta::NewBadRequest("cannot bind token for serviceaccount " + base::GoQuote(account) +
                                    " to pod running with different serviceaccount name.");
    }
    claims.pod = ClaimOf(pod);
    uid = claims.pod->uid;
    if (const std::string node(Text(pod["spec"], "nodeName")); !node.empty()) {
      auto found = co_await Read(service->nodes, context, "", node);
      if (!found.ok() && found.error().reason() != meta::StatusReason::kNotFound) co_return found.error();
      claims.node = found.ok() ? ClaimOf(*found) : auth::ObjectClaim{.name = node};
    }
  } else if (core && kind == "Secret") {
    KS_CO_TRY(const Value secret, co_await Read(service->secrets, context, name_space, name));
    claims.secret = ClaimOf(secret);
    uid = claims.secret->uid;
  } else if (core && kind == "Node") {
    KS_CO_TRY(const Value node, co_await Read(service->nodes, context, "", name));
    claims.node = ClaimOf(node);
    uid = claims.node->uid;
  } else {
    const auto slash = api_version.find('/');
    const std::string version =
        slash == std::string_view::npos ? "/" + std::string(api_version) : std::string(api_version);
    co_return meta::NewBadRequest("cannot bind token to object of type " + version + ", Kind=" + std::string(kind));
  }
  const std::string_view wanted = Text(ref, "uid");
  if (!wanted.empty() && wanted != uid) {
    const auto slash = api_version.find('/');
    const std::string group(slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash));
    co_return meta::NewConflict(
        {group, std::string(kind)}, name,
        "the UID in the bound object reference (" + std::string(wanted) +
            ") does not match the UID in record. The object might have been deleted and then recreated");
  }
  co_return meta::Result<void>();
}

Task<Value> IssueToken(std::shared_ptr<TokenService> service, request::Context& context, Value request,
                       registry::Reviewer::Options options) {
  base::Arena& arena = context.arena;
  const TokenIssuer& issuer = service->issuer;
  const std::string name = context.info.name, name_space = context.info.name_space;
  const registry::Strategy& strategy = service->strategy;
  Value metadata = request.EnsureMap(arena, "metadata");
  const auto now = std::chrono::floor<seconds>(base::Clock::Real().Now());
  const std::string_view now_text = arena.Copy(registry::FormatTime(now));

  const auto must_match = [&](std::string_view key, std::string_view wanted,
                              std::string_view what) -> meta::Result<void> {
    const std::string_view sent = Text(metadata, key);
    if (sent.empty() || sent == wanted) return {};
    const FieldPath path("metadata");
    return meta::NewInvalid(kTokenRequest, name, {validation::Invalid(path.Child(key), sent, what)});
  };
  KS_CO_RETURN_IF_ERROR(must_match("name", name, "must match the service account name if specified"));
  KS_CO_RETURN_IF_ERROR(must_match("namespace", name_space, "must match the service account namespace if specified"));
  KS_CO_TRY(const Value account, co_await Read(service->accounts, context, name_space, name));
  const std::string_view uid = Text(account["metadata"], "uid"), sent_uid = Text(metadata, "uid");
  if (!sent_uid.empty() && sent_uid != uid) {
    co_return meta::NewConflict({kTokenRequest.group, kTokenRequest.kind}, name,
                                "the UID in the token request (" + std::string(sent_uid) +
                                    ") does not match the UID of the service account (" + std::string(uid) + ")");
  }
  Value spec = request["spec"];
  if (spec["audiences"].empty()) {
    Value audiences = Value::List(arena);
    for (const std::string& audience : issuer.api_audiences) audiences.Append(arena, std::string_view(audience));
    spec.Set(arena, "audiences", audiences);
  }
  metadata.Set(arena, "name", Value::String(arena, name));
  metadata.Set(arena, "namespace", Value::String(arena, name_space));
  metadata.Set(arena, "uid", uid);
  metadata.Set(arena, "creationTimestamp", now_text);
  request.Erase("status");
  std::vector<std::string> warnings;
  const registry::Call call{.arena = arena,
                            .clock = base::Clock::Real(),
                            .random = base::Random::Real(),
                            .warnings = warnings,
                            .name_space = name_space,
                            .feature_enabled = nullptr};
  meta::FieldErrors errors;
  strategy.validate(call, request, Value(), errors);
  if (!errors.empty()) co_return meta::NewInvalid(kTokenRequest, "", errors);
  KS_CO_RETURN_IF_ERROR(co_await options.Validate(request));

  auth::TokenClaims claims;
  if (const Value ref = spec["boundObjectRef"]; ref.is_map()) {
    KS_CO_RETURN_IF_ERROR(co_await Bind(service, context, name_space, name, ref, claims));
  }
  if (const auto limit = issuer.max_expiration;
      limit.count() > 0 && spec["expirationSeconds"].as_int() > limit.count()) {
    context.warnings.Add("requested expiration of " + std::to_string(spec["expirationSeconds"].as_int()) +
                         " seconds shortened to " + std::to_string(limit.count()) + " seconds");
    spec.Set(arena, "expirationSeconds", Value(static_cast<std::int64_t>(limit.count())));
  }
  const seconds asked(spec["expirationSeconds"].as_int());
  const auto since = now.time_since_epoch();
  const bool for_api = std::ranges::all_of(spec["audiences"].items(), [&](Value audience) {
    return std::ranges::find(issuer.api_audiences, audience.as_string()) != issuer.api_audiences.end();
  });
  const bool extended = issuer.extend_expiration && claims.pod && asked == kWarnOnlyBoundToken && for_api;
  claims.issuer = issuer.issuer;
  claims.subject = auth::ServiceAccountUserName(name_space, name);
  for (const Value audience : spec["audiences"].items()) claims.audiences.emplace_back(audience.as_string());
  claims.issued_at = claims.not_before = since.count();
  claims.expires = (since + (extended ? issuer.max_extended_expiration : asked)).count();
  if (extended) claims.warn_after = (since + asked).count();
  claims.id = base::Random::Real().UUID();
  claims.name_space = name_space;
  claims.service_account = {.name = name, .uid = std::string(uid)};
  auto token = co_await issuer.generator->GenerateToken(claims.ToJSON());
  if (!token.ok()) co_return meta::NewInternalError("failed to generate token: " + token.error().message);
  context.audit_annotations.Add("authentication.kubernetes.io/issued-credential-id", "JTI=" + claims.id);
  Value status = Value::Map(arena);
  status.Set(arena, "token", Value::String(arena, *token));
  status.Set(arena, "expirationTimestamp", Value::String(arena, registry::FormatTime(now + asked)));
  request.Set(arena, "status", status);
  co_return request;
}

// serviceaccounts/token (upstream's TokenREST).
class TokenREST final : public registry::Reviewer {
 public:
  explicit TokenREST(std::shared_ptr<TokenService> service) : service_(std::move(service)) {}
  Task<Value> Create(request::Context& context, Value request, Options options) const override {
    return IssueToken(service_, context, request, std::move(options));
  }

 private:
  const std::shared_ptr<TokenService> service_;
};

// The issuer's discovery documents for the keys of the moment.
class TokenDocuments {
 public:
  struct Texts {
    std::string configuration, key_set;
  };
  TokenDocuments(std::string issuer, std::string jwks_uri, std::shared_ptr<const auth::PublicKeysGetter> keys)
      : issuer_(std::move(issuer)), jwks_uri_(std::move(jwks_uri)), keys_(std::move(keys)) {}

  // Null when no key was ever published; the last texts when none is published any more.
  std::shared_ptr<const Texts> Get() {
    auto keys = keys_->Current();
    std::lock_guard lock(mutex_);
    if (keys == made_for_) return texts_;
    made_for_ = keys;
    if (keys->published.empty()) {
      log::Error("Could not update the openid config metadata", "err", "no keys provided for validating keyset");
      return texts_;
    }
    texts_ = std::make_shared<const Texts>(
        Texts{.configuration = auth::DiscoveryDocument(issuer_, jwks_uri_, keys->published),
              .key_set = auth::KeySetDocument(keys->published)});
    return texts_;
  }
  std::chrono::seconds max_age() const { return keys_->CacheAgeMax(); }

 private:
  const std::string issuer_, jwks_uri_;
  const std::shared_ptr<const auth::PublicKeysGetter> keys_;
  std::mutex mutex_;
  std::shared_ptr<const auth::VerificationKeys> made_for_;
  std::shared_ptr<const Texts> texts_;
};

endpoints::Handler ServeDocument(std::shared_ptr<TokenDocuments> documents, std::string TokenDocuments::Texts::* which,
                                 std::string_view type) {
  const auto show = [documents = std::move(documents), which,
                     type](const endpoints::Exchange&) -> meta::Result<endpoints::Page> {
    const auto texts = documents->Get();
    endpoints::Page page{.media_type = std::string(type),
                         .body = base::SharedBytes::FromString(std::string((*texts).*which))};
    page.headers.Add("Cache-Control", "public, max-age=" + std::to_string(documents->max_age().count()));
    return page;
  };
  return endpoints::ServePage(show, {.method = "GET", .produces = {type}});
}

}  // namespace

std::shared_ptr<auth::TokenObjects> NewTokenObjects(ResourceStorage& storage) {
  return std::make_shared<StoredTokenObjects>(storage);
}

std::shared_ptr<auth::BootstrapSecrets> NewBootstrapSecrets(ResourceStorage& storage) {
  return std::make_shared<StoredBootstrapSecrets>(storage);
}

void InstallTokenDiscovery(server::GenericAPIServer& server, const std::string& issuer, const std::string& jwks_uri,
                           std::shared_ptr<const auth::PublicKeysGetter> keys) {
  if (!issuer.starts_with("https://") || issuer.find_first_of("?#") != std::string::npos) return;
  const auto documents = std::make_shared<TokenDocuments>(issuer, jwks_uri, std::move(keys));
  if (!documents->Get()) return;
  server.mux().Handle("/.well-known/openid-configuration",
                      ServeDocument(documents, &TokenDocuments::Texts::configuration, "application/json"));
  server.mux().Handle("/openid/v1/jwks",
                      ServeDocument(documents, &TokenDocuments::Texts::key_set, "application/jwk-set+json"));
}

bool InstallTokenRequest(const ChainConfig& config, const schema::Resource& resource,
                         const schema::Subresource& subresource, std::shared_ptr<registry::Store> store,
                         endpoints::APIGroupVersion& version) {
  if (!resource.group.empty() || resource.plural != "serviceaccounts" || subresource.name != "token") return false;
  if (!config.token_issuer) return true;
  const auto other = [&](std::string_view plural) { return config.storage->Get("", plural); };
  // A kind of a subresource: no resource of the catalog has it.
  const registry::Strategy& strategy =
      *std::ranges::find(registry::AuthenticationStrategies(), kTokenRequest.kind, &registry::Strategy::kind);
  auto service = std::make_shared<TokenService>(TokenService{.issuer = *config.token_issuer,
                                                             .strategy = strategy,
                                                             .accounts = store,
                                                             .pods = other("pods"),
                                                             .secrets = other("secrets"),
                                                             .nodes = other("nodes")});
  auto scope = NewSubresourceScope(config, resource, subresource, store);
  scope->own_defaults = strategy.defaults;
  TrackSubresource(*scope);
  endpoints::Route route{.scope = std::move(scope)};
  route.item["POST"] = endpoints::NewCreater(std::make_shared<TokenREST>(std::move(service)));
  version.Add(resource.plural, subresource.name, std::move(route));
  return true;
}

}  // namespace keelson::controlplane
