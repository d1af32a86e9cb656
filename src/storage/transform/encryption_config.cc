#include "storage/transform/encryption_config.h"

#include <algorithm>
#include <set>

#include "base/arena.h"
#include "base/duration.h"
#include "base/strings.h"
#include "codec/document.h"
#include "meta/status.h"
#include "meta/type_errors.h"
#include "object/value.h"
#include "schema/schema.h"
#include "schema/types.h"

namespace keelson::storage {
namespace {

using meta::FieldError;
using meta::FieldErrors;
using Kind = EncryptionProvider::Kind;

constexpr std::string_view kGroup = "apiserver.config.k8s.io";
constexpr std::string_view kKind = "EncryptionConfiguration";

struct GroupResource {
  std::string_view group, resource;
  bool operator==(const GroupResource&) const = default;
};
GroupResource ParseGroupResource(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {"", text};
  return {text.substr(dot + 1), text.substr(0, dot)};
}

std::string Index(const std::string& path, std::size_t index) { return path + "[" + std::to_string(index) + "]"; }

class Reader {
 public:
  explicit Reader(bool reload) : reload_(reload) {}

  EncryptionConfiguration Read(Value root) {
    EncryptionConfiguration config;
    const auto items = root["resources"].items();
    if (items.empty()) Required("resources", "at least one resources is required");
    for (std::size_t i = 0; i < items.size(); ++i) {
      config.resources.push_back(ReadResources(items[i], Index("resources", i)));
    }
    return config;
  }
  const FieldErrors& errors() const { return errors_; }

 private:
  void Required(std::string field, std::string detail) {
    errors_.push_back({FieldError::Type::kRequired, std::move(field), "", std::move(detail)});
  }
  void Invalid(std::string field, std::string value, std::string detail) {
    errors_.push_back({FieldError::Type::kInvalid, std::move(field), std::move(value), std::move(detail)});
  }

  EncryptionResources ReadResources(Value item, const std::string& path) {
    EncryptionResources out;
    for (const Value& name : item["resources"].items()) out.resources.emplace_back(name.as_string());
    const std::string resources = path + ".resources";
    const std::string providers = path + ".providers";
    if (out.resources.empty()) Required(resources, "at least one " + resources + " is required");
    CheckOverlap(out.resources, resources, item["resources"]);
    for (std::size_t i = 0; i < out.resources.size(); ++i) CheckName(out.resources[i], Index(resources, i));
    const auto items = item["providers"].items();
    if (items.empty()) Required(providers, "at least one " + providers + " is required");
    for (std::size_t i = 0; i < items.size(); ++i) ReadProvider(items[i], Index(providers, i), out);
    return out;
  }

  void CheckOverlap(const std::vector<std::string>& names, const std::string& path, Value list) {
    bool duplicate = false;
    bool overlap = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      for (std::size_t j = 0; j < names.size(); ++j) {
        if (i == j) continue;
        const GroupResource a = ParseGroupResource(names[i]);
        const GroupResource b = ParseGroupResource(names[j]);
        if (a == b) {
          duplicate = true;
        } else if ((a.group == "*" && a.resource == "*") ||
                   (a.group == b.group && (a.resource == "*" || b.resource == "*"))) {
          overlap = true;
        }
      }
    }
    std::string shown;
    codec::EncodeJSON(list, shown);
    if (duplicate) Invalid(path, shown, "the same resource cannot be specified multiple times");
    if (overlap) {
      Invalid(path, shown,
              "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they "
              "will be masked");
    }
  }

  void CheckName(std::string_view name, const std::string& path) {
    const GroupResource parsed = ParseGroupResource(name);
    const char* wrong = nullptr;
    if (std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
      wrong = "resource name should not contain capital letters";
    } else if (name == "*") {
      wrong = "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources";
    } else if (name == "apiserveripinfo" || name == "serviceipallocations" || name == "servicenodeportallocations") {
      wrong = "resources which do not have REST API/s cannot be encrypted";
    } else if (parsed.group == "events.k8s.io") {
      wrong =
          "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the "
          "config file";
    } else if (parsed.group == "extensions") {
      wrong = "'extensions' group has been removed and cannot be used for encryption";
    } else if (parsed.group == "*" && parsed.resource != "*") {
      wrong = "encrypting the same resource across groups is not supported";
    }
    if (wrong != nullptr) Invalid(path, base::GoQuote(name), wrong);
  }

  void ReadProvider(Value item, const std::string& path, EncryptionResources& out) {
    struct Named {
      const char* name;
      Kind kind;
    };
    static constexpr Named kKinds[] = {{"kms", Kind::kKMS},
                                       {"aesgcm", Kind::kAESGCM},
                                       {"aescbc", Kind::kAESCBC},
                                       {"secretbox", Kind::kSecretbox},
                                       {"identity", Kind::kIdentity}};
    const Named* found = nullptr;
    int count = 0;
    for (const Named& named : kKinds) {
      if (!item[named.name].is_map()) continue;
      if (found == nullptr) found = &named;
      ++count;
    }
    if (count == 0) {
      return Invalid(
          path, R"({"AESGCM":null,"AESCBC":null,"Secretbox":null,"Identity":null,"KMS":null})",
          "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity");
    }
    if (count > 1)  // the value is not shown: it may hold keys
      Invalid(path, "\"REDACTED\"",
              "more than one provider specified in a single element, should split into different list elements");
    EncryptionProvider provider{.kind = found->kind};
    const Value body = item[found->name];
    const std::string inner = path + "." + found->name;
    if (provider.kind == Kind::kKMS) {
      ReadKMS(body, inner, provider);
    } else if (provider.kind != Kind::kIdentity) {
      ReadKeys(body["keys"], inner + ".keys", provider);
    }
    out.providers.push_back(std::move(provider));
  }

  void ReadKeys(Value list, const std::string& path, EncryptionProvider& provider) {
    const auto items = list.items();
    if (items.empty()) Required(path, "at least one keys is required");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string at = Index(path, i);
      EncryptionKey key{.name = std::string(items[i]["name"].as_string())};
      if (key.name.empty()) Required(at + ".name", "name is a mandatory field for a key");
      const std::string_view secret = items[i]["secret"].as_string();
      if (secret.empty()) {
        Required(at + ".secret", "secret is a mandatory field for a key");
        continue;
      }
      auto decoded = base::Base64Decode(secret);
      if (!decoded) {
        Invalid(at + ".secret", "\"REDACTED\"", "secrets must be base64 encoded");
        continue;
      }
      key.secret = *std::move(decoded);
      const bool box = provider.kind == Kind::kSecretbox;
      const std::size_t size = key.secret.size();
      if (!(size == 32 || (!box && (size == 16 || size == 24)))) {
        Invalid(at + ".secret", "\"REDACTED\"",
                "secret is not of the expected length, got " + std::to_string(size) + ", expected one of " +
                    (box ? "[32]" : "[16 24 32]"));
      }
      provider.keys.push_back(std::move(key));
    }
  }

  void ReadKMS(Value body, const std::string& path, EncryptionProvider& provider) {
    provider.name = body["name"].as_string();
    if (const std::string_view version = body["apiVersion"].as_string(); !version.empty())
      provider.api_version = version;
    const bool v1 = provider.api_version == "v1";
    provider.endpoint = body["endpoint"].as_string();
    if (provider.name.empty()) Required(path + ".name", "name is a mandatory field for a provider");
    if (!v1 && provider.name.find(':') != std::string::npos) {
      Invalid(path + ".name", base::GoQuote(provider.name),
              "invalid KMS provider name " + provider.name + ", must not contain ':'");
    }
    if ((reload_ || !v1) && !names_.insert(provider.name).second) {
      Invalid(path + ".name", base::GoQuote(provider.name),
              "duplicate KMS provider name " + provider.name + ", names must be unique");
    }
    names_.insert(provider.name);
    if (const std::string_view timeout = body["timeout"].as_string(); !timeout.empty()) {
      const auto parsed = base::ParseDuration(timeout);
      provider.timeout_ms = parsed ? std::chrono::duration_cast<std::chrono::milliseconds>(*parsed).count() : 0;
      if (provider.timeout_ms <= 0)
        Invalid(path + ".timeout", base::GoQuote(timeout), "timeout should be a positive value");
    }
    if (provider.endpoint.empty()) {
      Invalid(path + ".endpoint", "\"\"", "endpoint is a mandatory field for a kms");
    } else if (!provider.endpoint.starts_with("unix://")) {
      const std::string scheme =
          provider.endpoint.substr(0, std::min(provider.endpoint.find(':'), provider.endpoint.size()));
      Invalid(path + ".endpoint", base::GoQuote(provider.endpoint),
              "unsupported scheme " + base::GoQuote(scheme) + " for KMS provider, only unix is supported");
    }
    if (const Value size = body["cachesize"]; size.is_int()) {
      provider.cache_size = static_cast<std::int32_t>(size.as_int());
      if (!v1) Invalid(path + ".cachesize", std::to_string(provider.cache_size), "cachesize is not supported in v2");
      if (v1 && provider.cache_size == 0)
        Invalid(path + ".cachesize", "0", "cachesize should be a positive value, or negative to disable");
    }
    if (!v1 && provider.api_version != "v2") {
      Invalid(path + ".apiVersion", base::GoQuote(provider.api_version),
              "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported");
    }
  }

  const bool reload_;
  FieldErrors errors_;
  std::set<std::string> names_;
};

}  // namespace

Outcome<EncryptionConfiguration, std::string> ParseEncryptionConfiguration(std::string_view path, std::string_view text,
                                                                           bool reload) {
  const std::string decoding = "error decoding encryption provider configuration file " + base::GoQuote(path) + ": ";
  constexpr codec::DecodeOptions kStrict = {.strict = true};
  base::Arena arena;
  const auto document = codec::ReadDocument(arena, text, kStrict);
  if (!document.ok()) return decoding + document.error();
  const auto& [version, kind] = document->type_meta;
  if (const std::string problem = codec::TypeMetaProblem(document->type_meta, text); !problem.empty())
    return decoding + problem;
  if (version != std::string(kGroup) + "/v1" || kind != kKind)
    return decoding + meta::NotRegisteredError(kind, version);
  const auto decoded =
      codec::DecodeDocument(arena, *document, schema::types::apiserver_v1::kEncryptionConfiguration, kStrict);
  if (!decoded.ok()) return decoding + decoded.error().message;
  if (!decoded->strict_errors.empty())
    return decoding + "strict decoding error: " + base::Join(decoded->strict_errors, ", ");
  Reader reader(reload);
  EncryptionConfiguration config = reader.Read(decoded->value);
  if (!reader.errors().empty()) return meta::AggregateMessage(reader.errors());
  return config;
}

}  // namespace keelson::storage
