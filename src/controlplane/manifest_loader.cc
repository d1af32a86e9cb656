#include "controlplane/manifest_loader.h"

#include <dirent.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "base/strings.h"
#include "codec/json.h"
#include "codec/scheme.h"
#include "codec/yaml.h"
#include "meta/status.h"
#include "meta/type_errors.h"
#include "object/json_text.h"
#include "registry/admissionregistration/strategies.h"
#include "registry/rest_strategy.h"
#include "registry/strategy.h"
#include "schema/schema.h"
#include "validation/defaulting.h"

namespace keelson::controlplane {
namespace {

using admission::LoadedManifests;

constexpr std::string_view kGroup = "admissionregistration.k8s.io";
constexpr std::string_view kVersion = "v1";
constexpr std::string_view kSuffix = ".static.k8s.io";
constexpr int kListDepthMax = 10;  // lists in lists

struct PluginKinds {
  std::string_view plugin, object, binding;  // binding "": the plugin has webhook configurations
};
constexpr PluginKinds kPluginKinds[] = {
    {"ValidatingAdmissionWebhook", "ValidatingWebhookConfiguration", ""},
    {"MutatingAdmissionWebhook", "MutatingWebhookConfiguration", ""},
    {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
    {"MutatingAdmissionPolicy", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
};

// Documents as apimachinery's YAMLReader splits them: at lines of three dashes.
std::vector<std::string> SplitDocuments(std::string_view text) {
  std::vector<std::string> documents(1);
  for (const std::string_view line : base::Split(text, '\n')) {
    if (line.starts_with("---") && base::Trim(line.substr(3)).empty()) {
      documents.emplace_back();
    } else {
      documents.back().append(line).push_back('\n');
    }
  }
  std::erase_if(documents, [](const std::string& document) { return base::Trim(document).empty(); });
  return documents;
}

std::string NameOf(Value object) { return std::string(object["metadata"]["name"].as_string()); }

// Why the webhooks of a configuration cannot be static; "" when they can: no service is there before the server.
std::string WebhookProblem(Value configuration, const std::string& path) {
  for (const Value webhook : configuration["webhooks"].items()) {
    const std::string which = "webhook " + base::GoQuote(webhook["name"].as_string()) + " in " +
                              base::GoQuote(NameOf(configuration)) + " (file " + base::GoQuote(path) + "): ";
    const Value client = webhook["clientConfig"];
    if (client["service"].is_map()) {
      return which + "clientConfig.service is not supported for static manifests; use clientConfig.url instead";
    }
    if (client["url"].as_string().empty()) return which + "clientConfig.url is required for static manifests";
  }
  return "";
}

std::string BindingProblem(Value binding) {
  const std::string which = "binding " + base::GoQuote(NameOf(binding));
  const std::string_view policy = binding["spec"]["policyName"].as_string();
  if (policy.empty()) return which + " must reference a policy (spec.policyName)";
  if (!policy.ends_with(kSuffix)) {
    return which + ": spec.policyName " + base::GoQuote(policy) + " must end with " + base::GoQuote(kSuffix);
  }
  if (binding["spec"]["paramRef"].is_map()) return which + ": spec.paramRef is not supported for static manifests";
  return "";
}

class Loader {
 public:
  explicit Loader(const PluginKinds& kinds) : object_(StrategyOf(kinds.object)), binding_(StrategyOf(kinds.binding)) {}

  // The parts return "" or what is wrong.
  std::string Take(const ManifestFile& file) {
    path_ = file.path;
    for (const std::string& document : SplitDocuments(file.text)) {
      if (std::string error = TakeDocument(document); !error.empty()) return "error loading " + path_ + ": " + error;
    }
    return "";
  }

  std::string CheckReferences() const {
    for (const Value binding : loaded_->bindings) {
      const std::string policy(binding["spec"]["policyName"].as_string());
      if (!objects_seen_.contains(policy)) {
        return "binding " + base::GoQuote(NameOf(binding)) + " references policy " + base::GoQuote(policy) +
               " which does not exist in the manifest directory";
      }
    }
    return "";
  }

  std::shared_ptr<const LoadedManifests> Finish(std::string hash) {
    std::ranges::sort(loaded_->objects, {}, NameOf);
    std::ranges::sort(loaded_->bindings, {}, NameOf);
    loaded_->hash = std::move(hash);
    return loaded_;
  }

 private:
  using Seen = std::map<std::string, std::string, std::less<>>;  // file by name

  std::string TakeDocument(const std::string& text) {
    const auto untyped = codec::DecodeYAML(arena(), text);
    if (!untyped.ok()) return "couldn't get version/kind; json parse error: " + untyped.error().message;
    std::string json;
    const auto duplicates = codec::YAMLToJSON(arena(), text, {.strict = true}, json);
    if (!duplicates.ok()) return "couldn't get version/kind; json parse error: " + duplicates.error().message;
    if (!duplicates->empty()) return "strict decoding error: " + base::Join(*duplicates, ", ");
    return TakeJSON(untyped->value, json, 0);
  }

  std::string TakeJSON(Value untyped, const std::string& json, int depth) {
    const std::string_view kind = untyped["kind"].as_string(), api_version = untyped["apiVersion"].as_string();
    const auto missing = [&](std::string_view what) {
      return "Object '" + std::string(what) + "' is missing in '" + json + "'";
    };
    if (kind.empty()) return missing("Kind");
    if (api_version.empty()) return missing("apiVersion");
    if (kind == "List") return TakeList(untyped, depth);
    const auto slash = api_version.find('/');
    const std::string_view group = slash == std::string_view::npos ? "" : api_version.substr(0, slash);
    const std::string_view version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
    const schema::Struct* const type = group == kGroup ? codec::RegisteredType(group, version, kind) : nullptr;
    if (type == nullptr) {
      return meta::NotRegisteredError(kind, api_version);
    }
    auto decoded = codec::DecodeJSON(arena(), json, *type, {.strict = true});
    if (!decoded.ok()) return decoded.error().message;
    if (!decoded->strict_errors.empty()) return "strict decoding error: " + base::Join(decoded->strict_errors, ", ");
    return version == kVersion ? TakeTyped(decoded->value, *type, kind) : Unsupported(version, kind);
  }

  std::string TakeList(Value list, int depth) {
    if (depth >= kListDepthMax) return "lists nest too deeply";
    for (const Value item : list["items"].items()) {
      if (std::string error = TakeJSON(item, object::ToJSON(item), depth + 1); !error.empty()) return error;
    }
    return "";
  }

  static std::string Unsupported(std::string_view version, std::string_view kind) {
    return "unsupported resource type *" + std::string(version) + "." + std::string(kind);
  }

  std::string TakeTyped(Value object, const schema::Struct& type, std::string_view kind) {
    for (const registry::Strategy* const wanted : {object_, binding_}) {
      if (wanted == nullptr) continue;
      if (kind == wanted->kind) return Accept(object, type, *wanted);
      if (kind == std::string(wanted->kind) + "List") {
        const schema::Struct& item_type = *type.FindField("items")->type->element->structure;
        for (const Value item : object["items"].items()) {
          if (std::string error = Accept(item, item_type, *wanted); !error.empty()) return error;
        }
        return "";
      }
    }
    return Unsupported(kVersion, kind);
  }

  // Defaults, the API's rules, and those of static manifests.
  std::string Accept(Value object, const schema::Struct& type, const registry::Strategy& row) {
    for (const std::string_view part : {"metadata", "spec"}) {
      if (type.FindField(part) != nullptr) object.EnsureMap(arena(), part);
    }
    validation::ApplyTableDefaults(arena(), type, object);
    const registry::RESTStrategy strategy(row);
    strategy.Default(arena(), object);
    std::vector<std::string> warnings;
    // No gates: the one for static manifests would refuse their names.
    const registry::Call call{.arena = arena(),
                              .clock = base::Clock::Real(),
                              .random = base::Random::Real(),
                              .warnings = warnings,
                              .feature_enabled = nullptr};
    meta::FieldErrors errors;
    strategy.Validate(call, false, object, errors);
    const std::string name = NameOf(object);
    if (!errors.empty()) {
      return std::string(row.kind) + " " + base::GoQuote(name) + ": " + meta::AggregateMessage(errors);
    }
    const bool binding = &row == binding_;
    if (std::string error = CheckName(name, binding ? bindings_seen_ : objects_seen_); !error.empty()) return error;
    if (std::string error = OwnProblem(object, row); !error.empty()) return error;
    (binding ? loaded_->bindings : loaded_->objects).push_back(object);
    return "";
  }

  std::string OwnProblem(Value object, const registry::Strategy& row) const {
    if (binding_ == nullptr) return WebhookProblem(object, path_);
    if (&row == binding_) return BindingProblem(object);
    if (!object["spec"]["paramKind"].is_map()) return "";
    return std::string(row.kind) + " " + base::GoQuote(NameOf(object)) +
           ": spec.paramKind is not supported for static manifests";
  }

  std::string CheckName(const std::string& name, Seen& seen) const {
    const std::string file = base::GoQuote(path_);
    if (name.empty()) return "resource in file " + file + " must have a name";
    if (!name.ends_with(kSuffix)) {
      return base::GoQuote(name) + " in file " + file + " must have a name ending with " + base::GoQuote(kSuffix);
    }
    const auto [before, first] = seen.try_emplace(name, path_);
    if (first) return "";
    return "duplicate name " + base::GoQuote(name) + " found in file " + file + " (previously seen in " +
           base::GoQuote(before->second) + ")";
  }

  base::Arena& arena() { return loaded_->arena; }

  static const registry::Strategy* StrategyOf(std::string_view kind) {
    const auto strategies = registry::AdmissionregistrationStrategies();
    const auto found = std::ranges::find(strategies, kind, &registry::Strategy::kind);
    return found == strategies.end() ? nullptr : &*found;
  }

  const registry::Strategy* const object_;
  const registry::Strategy* const binding_;  // null: the plugin has webhook configurations
  std::shared_ptr<LoadedManifests> loaded_ = std::make_shared<LoadedManifests>();
  std::string path_;
  Seen objects_seen_, bindings_seen_;
};

std::string OSError(std::string_view call, const std::string& path) {
  std::string text = std::strerror(errno);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return std::string(call) + " " + path + ": " + text;
}

// Of the bytes of all files, each with a zero after it.
std::string HashOf(const std::vector<ManifestFile>& files) {
  if (files.empty()) return "";
  std::string all;
  for (const ManifestFile& file : files) all.append(file.text).push_back('\0');
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return "sha256:" + base::HexEncode(digest);
}

bool Counts(const std::string& name) {
  const std::string lower = base::ToLower(name);
  return lower.ends_with(".yaml") || lower.ends_with(".yml") || lower.ends_with(".json");
}

}  // namespace

Outcome<std::vector<ManifestFile>, std::string> ReadManifestFiles(const std::string& folder) {
  DIR* const opened = opendir(folder.c_str());
  if (opened == nullptr) {
    return "failed to read manifest directory " + base::GoQuote(folder) + ": " + OSError("open", folder);
  }
  std::vector<std::string> names;
  for (const dirent* entry = readdir(opened); entry != nullptr; entry = readdir(opened)) {
    if (Counts(entry->d_name)) names.emplace_back(entry->d_name);
  }
  closedir(opened);
  std::ranges::sort(names);
  std::vector<ManifestFile> files;
  std::size_t bytes = 0;
  for (const std::string& name : names) {
    const std::string path = folder + (folder.ends_with('/') ? "" : "/") + name;
    struct stat found{};
    const std::string failed = "failed to read file " + base::GoQuote(path) + ": ";
    if (stat(path.c_str(), &found) != 0) return failed + OSError("open", path);
    if (S_ISDIR(found.st_mode)) continue;
    bytes += static_cast<std::size_t>(found.st_size);
    if (bytes > kManifestBytesMax || files.size() >= kManifestFilesMax) {
      return failed + "more than " + std::to_string(kManifestFilesMax) + " files or " +
             std::to_string(kManifestBytesMax) + " bytes";
    }
    std::ifstream in(path, std::ios::binary);
    if (!in) return failed + OSError("open", path);
    std::string text(static_cast<std::size_t>(found.st_size), '\0');
    in.read(text.data(), found.st_size);
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (!text.empty()) files.push_back({path, std::move(text)});
  }
  return files;
}

Outcome<std::shared_ptr<const LoadedManifests>, std::string> LoadManifests(std::string_view plugin,
                                                                           const std::vector<ManifestFile>& files) {
  const auto kinds = std::ranges::find(kPluginKinds, plugin, &PluginKinds::plugin);
  if (kinds == std::end(kPluginKinds)) return "plugin " + base::GoQuote(plugin) + " has no static manifests";
  Loader loader(*kinds);
  for (const ManifestFile& file : files) {
    if (std::string error = loader.Take(file); !error.empty()) return error;
  }
  if (std::string error = loader.CheckReferences(); !error.empty()) return error;
  return loader.Finish(HashOf(files));
}

}  // namespace keelson::controlplane
