// Recorded answers of kube-apiserver: the managedFields of every write there, worked out again from the objects before
// and after.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/strings.h"
#include "base/url.h"
#include "patch/field_manager.h"
#include "patch/test_json.h"

namespace keelson::patch {
namespace {

using base::Arena;
using object::ToJSON;

std::filesystem::path Corpus() {
  const char* root = std::getenv("KEELSON_CORPUS");
  return root != nullptr ? root : "test/recordings/corpus";
}

struct Target {
  std::string object;  // the path of the object
  std::string subresource;
};

// /api/v1/namespaces/n/pods/p/status?x -> the object's path and "status". A create names its object in the body.
Target TargetOf(std::string_view path, std::string_view name) {
  if (path.empty()) return {};
  std::vector<std::string_view> parts =
      base::Split(path.substr(1, path.find('?') == std::string_view::npos ? path.npos : path.find('?') - 1), '/');
  std::size_t at = parts[0] == "api" ? 2 : 3;
  std::string object;
  if (parts.size() <= at) return {};
  for (std::size_t i = 0; i < at; ++i) object += "/" + std::string(parts[i]);
  if (at < parts.size() && parts[at] == "namespaces" && parts.size() > at + 2 && parts[at + 2] != "status" &&
      parts[at + 2] != "finalize") {
    object += "/" + std::string(parts[at]) + "/" + std::string(parts[at + 1]);
    at += 2;
  }
  if (at >= parts.size()) return {};
  object += "/" + std::string(parts[at++]);
  object += "/" + std::string(at < parts.size() ? parts[at++] : name);
  return {object, at < parts.size() ? std::string(parts[at]) : ""};
}

std::vector<std::string> ResetFields(std::string_view kind, std::string_view subresource) {
  if (subresource.empty() && kind == "CertificateSigningRequest") return {"spec", "status"};
  if (subresource.empty()) return {"status"};
  static const std::set<std::string_view> kWholeMetadata = {"ValidatingAdmissionPolicy",
                                                            "StorageVersion",
                                                            "FlowSchema",
                                                            "PriorityLevelConfiguration",
                                                            "ServiceCIDR",
                                                            "DeviceTaintRule",
                                                            "ResourceClaim",
                                                            "ResourcePoolStatusRequest",
                                                            "PodGroup",
                                                            "VolumeAttachment",
                                                            "StorageVersionMigration",
                                                            "CustomResourceDefinition",
                                                            "APIService"};
  if (kWholeMetadata.contains(kind)) return {"spec", "metadata"};
  if (kind == "Deployment") return {"spec", "metadata.labels"};
  if (kind == "Pod") return {"spec", "metadata.deletionTimestamp", "metadata.ownerReferences"};
  if (kind == "CertificateSigningRequest")
    return {"spec", subresource == "status" ? "status.conditions" : "status.certificate"};
  return {"spec"};
}

class Replay {
 public:
  void Case(const Value& test, const std::string& name) {
    std::map<std::string, Value> live;
    for (const Value& step : test["steps"].items()) {
      const Value request = step["request"];
      const std::string_view method = request["method"].as_string();
      const Value body = step.Get("response", "body");
      const Target target = TargetOf(request["path"].as_string(), body.Get("metadata", "name").as_string());
      const bool known = target.object.empty() || request["path"].as_string().find("dryRun") != std::string_view::npos;
      if (known) continue;
      const std::int64_t status = step.Get("response", "status").as_int();
      if (method == "DELETE") {
        live.erase(target.object);
        if (body.Get("metadata", "deletionTimestamp").is_string()) live[target.object] = body;
        continue;
      }
      const bool write = method == "POST" || method == "PUT" || method == "PATCH";
      if (write)
        Write(request, body, status, target, live.contains(target.object) ? live[target.object] : Value(), name);
      const bool same_kind =
          target.subresource.empty() || target.subresource == "status" || target.subresource == "approval";
      if (status < 300 && same_kind && body.Get("metadata", "uid").is_string()) live[target.object] = body;
    }
  }

  int checked = 0;

 private:
  void Write(const Value& request, const Value& body, std::int64_t status, const Target& target, const Value& live,
             const std::string& name) {
    const std::string_view path = request["path"].as_string();
    const base::Query query(path.find('?') == std::string_view::npos ? "" : path.substr(path.find('?') + 1));
    const std::string_view type = request.Get("headers", "Content-Type").as_string();
    const bool apply = type.starts_with("application/apply-patch");
    const Value config = request["body"];
    if (!target.subresource.empty() && target.subresource != "status") return;
    const Value like = status < 300 ? body : apply ? config : Value();
    const std::string_view api_version = like["apiVersion"].as_string();
    const std::size_t slash = api_version.find('/');
    const meta::GroupVersionKind kind{
        slash == api_version.npos ? "" : std::string(api_version.substr(0, slash)),
        std::string(slash == api_version.npos ? api_version : api_version.substr(slash + 1)),
        std::string(like["kind"].as_string())};
    const schema::Struct* schema = schema::FindKind(kind.group, kind.version, kind.kind);
    if (schema == nullptr || body["kind"].as_string() == "Table" || !config.is_map()) return;
    const FieldManager manager({.type = schema,
                                .kind = kind,
                                .subresource = target.subresource,
                                .reset_fields = ResetFields(kind.kind, target.subresource)});
    const std::string who(query.Has("fieldManager") ? query.Get("fieldManager") : "corpus");
    if (apply) {
      const auto result = manager.Apply(arena_, live, config, who, query.Get("force") == "true", "${time}");
      if (status == 409 && body["message"].as_string().starts_with("Apply failed")) {
        Expect(name + " " + std::string(path), result.ok() ? "success" : std::string(result.error().message()),
               std::string(body["message"].as_string()));
      } else if (status == 500) {
        if (!result.ok())
          Expect(name + " " + std::string(path), std::string(result.error().message()),
                 std::string(body["message"].as_string()));
      } else if (status < 300) {
        Expect(name + " " + std::string(path),
               result.ok() ? Entries(result->Get("metadata", "managedFields")) : std::string(result.error().message()),
               Entries(body.Get("metadata", "managedFields")));
      }
      return;
    }
    if (status >= 300 || !body.Get("metadata", "uid").is_string()) return;
    // Ownership is taken before admission and strategies: what they add (addresses, taints, finalizers, priorities,
    // selectors) is in the answer without an owner. And where a list is always written, [] in the request (owned) comes
    // back as null.
    static const std::set<std::string_view> kCompletedLater = {
        "Service", "Pod", "Namespace", "PersistentVolume", "PersistentVolumeClaim", "VolumeAttributesClass",
        "Node",    "Job", "CSINode",   "EndpointSlice"};
    if (kCompletedLater.contains(kind.kind) || name.starts_with("admission/")) return;
    if (ToJSON(config).find("managedFields") != std::string::npos && request["method"].as_string() != "PUT") return;
    Value now = body.Clone(arena_);
    if (request["method"].as_string() == "PUT" && config.Get("metadata").Has("managedFields")) {
      now["metadata"].Set(arena_, "managedFields", config.Get("metadata", "managedFields"));
    } else {
      now["metadata"].Erase("managedFields");
    }
    // A recorded time has a new name each time it is shown.
    const Value deleted = live.Get("metadata", "deletionTimestamp");
    if (deleted.is_string() && now["metadata"].Has("deletionTimestamp"))
      now["metadata"].Set(arena_, "deletionTimestamp", deleted);
    manager.Update(arena_, live, now, who, "${time}");
    Expect(name + " " + std::string(request["method"].as_string()) + " " + std::string(path),
           Entries(now.Get("metadata", "managedFields")), Entries(body.Get("metadata", "managedFields")));
  }

  // The entries as text, sorted (recorded times are names, so the order by time is lost); times not compared where both
  // are there.
  std::string Entries(const Value& list) {
    std::vector<std::string> out;
    for (const Value& entry : list.items()) {
      Value copy = entry.Clone(arena_);
      if (copy.Has("time")) copy.Set(arena_, "time", "T");
      if (copy["fieldsV1"].is_raw())
        copy.Set(arena_, "fieldsV1", *object::ParseJSON(arena_, copy["fieldsV1"].as_raw()));
      out.push_back(ToJSON(Canonical(arena_, copy, RootType(nullptr), false)));
    }
    std::ranges::sort(out);
    return base::Join(out, "\n");
  }

  void Expect(const std::string& what, const std::string& got, const std::string& want) {
    ++checked;
    EXPECT_EQ(got, want) << what;
  }

  Arena arena_;
};

TEST(Corpus, ManagedFields) {
  ASSERT_TRUE(std::filesystem::exists(Corpus())) << "no recordings at " << Corpus();
  Replay replay;
  for (const auto& file : std::filesystem::recursive_directory_iterator(Corpus())) {
    if (file.path().extension() != ".json") continue;
    Arena arena;
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto document = object::ParseJSON(arena, text);
    if (!document) continue;
    for (const Value& test : (*document)["cases"].items()) {
      replay.Case(test, std::string((*document)["group"].as_string()) + "/" + std::string(test["name"].as_string()));
    }
  }
  EXPECT_GT(replay.checked, 1000);
}

}  // namespace
}  // namespace keelson::patch
