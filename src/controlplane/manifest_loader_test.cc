#include "controlplane/manifest_loader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "admission/manifest/manifests.h"

namespace keelson::controlplane {
namespace {

constexpr std::string_view kHook = R"(apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a.static.k8s.io}
webhooks:
- name: hook.example.com
  clientConfig: {url: 'https://127.0.0.1:1/x'}
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
)";
constexpr std::string_view kPolicy = R"(apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p.static.k8s.io}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  validations: [{expression: 'true'}]
)";
constexpr std::string_view kBinding = R"(apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b.static.k8s.io}
spec: {policyName: p.static.k8s.io, validationActions: [Deny]}
)";

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const auto at = out.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return out.replace(at, from.size(), to);
}

std::string ErrorOf(std::string_view plugin, std::vector<ManifestFile> files) {
  auto loaded = LoadManifests(plugin, files);
  return loaded.ok() ? "" : loaded.error();
}

TEST(ManifestLoader, DefaultsAndSortsByName) {
  const std::string second = Replaced(kHook, "a.static", "0.static");
  auto loaded = LoadManifests("ValidatingAdmissionWebhook", {{"/m/a.yaml", std::string(kHook) + "---\n" + second}});
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  ASSERT_EQ((*loaded)->objects.size(), 2u);
  EXPECT_EQ((*loaded)->objects[0]["metadata"]["name"].as_string(), "0.static.k8s.io");
  EXPECT_EQ((*loaded)->objects[0]["webhooks"].items()[0]["failurePolicy"].as_string(), "Fail");
  EXPECT_TRUE((*loaded)->hash.starts_with("sha256:"));
  auto none = LoadManifests("ValidatingAdmissionWebhook", {});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ((*none)->hash, "");
}

TEST(ManifestLoader, TakesListsAndBindings) {
  const std::string list = R"({"apiVersion":"v1","kind":"List","items":[
    {"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding",
     "metadata":{"name":"b.static.k8s.io"},"spec":{"policyName":"p.static.k8s.io","validationActions":["Deny"]}}]})";
  auto loaded = LoadManifests("ValidatingAdmissionPolicy", {{"/m/a.json", list}, {"/m/b.yaml", std::string(kPolicy)}});
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ((*loaded)->objects.size(), 1u);
  EXPECT_EQ((*loaded)->bindings.size(), 1u);
  const std::string typed =
      "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfigurationList\nitems:\n"
      "- metadata: {name: l.static.k8s.io}\n";
  auto webhooks = LoadManifests("ValidatingAdmissionWebhook", {{"/m/a.yaml", typed}});
  ASSERT_TRUE(webhooks.ok()) << webhooks.error();
  EXPECT_EQ((*webhooks)->objects.size(), 1u);
}

TEST(ManifestLoader, ErrorsEqualUpstream) {
  struct Case {
    const char* name;
    std::string_view plugin;
    std::string text;
    std::string want;
  };
  const std::string_view kWebhook = "ValidatingAdmissionWebhook", kPolicies = "ValidatingAdmissionPolicy";
  const Case cases[] = {
      {"suffix", kWebhook, Replaced(kHook, "a.static.k8s.io", "plain"),
       R"("plain" in file "/m/a.yaml" must have a name ending with ".static.k8s.io")"},
      {"duplicate", kWebhook, std::string(kHook) + "---\n" + std::string(kHook),
       R"(duplicate name "a.static.k8s.io" found in file "/m/a.yaml" (previously seen in "/m/a.yaml"))"},
      {"service", kWebhook, Replaced(kHook, "{url: 'https://127.0.0.1:1/x'}", "{service: {name: s, namespace: ns}}"),
       R"(webhook "hook.example.com" in "a.static.k8s.io" (file "/m/a.yaml"): clientConfig.service is not supported )"
       "for static manifests; use clientConfig.url instead"},
      {"invalid", kWebhook, Replaced(kHook, "sideEffects: None", "sideEffects: Some"),
       R"(ValidatingWebhookConfiguration "a.static.k8s.io": webhooks[0].sideEffects: Unsupported value: "Some": )"
       R"(supported values: "None", "NoneOnDryRun")"},
      {"unknown field", kWebhook, std::string(kHook) + "extra: 1\n", R"(strict decoding error: unknown field "extra")"},
      {"other kind", kWebhook, std::string(kPolicy), "unsupported resource type *v1.ValidatingAdmissionPolicy"},
      {"foreign kind", kWebhook, "apiVersion: v1\nkind: ConfigMap\n",
       R"(no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111")"},
      {"no kind", kWebhook, "a: 1\n", R"(Object 'Kind' is missing in '{"a":1}')"},
      {"params", kPolicies, Replaced(kPolicy, "spec:\n", "spec:\n  paramKind: {apiVersion: v1, kind: ConfigMap}\n"),
       R"(ValidatingAdmissionPolicy "p.static.k8s.io": spec.paramKind is not supported for static manifests)"},
      {"policy suffix", kPolicies, Replaced(kBinding, "policyName: p.static.k8s.io", "policyName: p"),
       R"(binding "b.static.k8s.io": spec.policyName "p" must end with ".static.k8s.io")"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(ErrorOf(c.plugin, {{"/m/a.yaml", c.text}}), "error loading /m/a.yaml: " + c.want);
  }
  EXPECT_EQ(
      ErrorOf(kPolicies, {{"/m/a.yaml", std::string(kBinding)}}),
      R"(binding "b.static.k8s.io" references policy "p.static.k8s.io" which does not exist in the manifest directory)");
}

TEST(ManifestLoader, ReadsOnlyManifestsOfTheFolder) {
  const auto folder = std::filesystem::temp_directory_path() / ("manifests-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "sub.yaml");
  for (const char* const name : {"b.YAML", "a.yml", "c.json", "README.md", "empty.yaml"}) {
    std::ofstream(folder / name) << (std::string_view(name) == "empty.yaml" ? "" : name);
  }
  auto files = ReadManifestFiles(folder.string());
  ASSERT_TRUE(files.ok()) << files.error();
  std::vector<std::string> texts;
  for (const ManifestFile& file : *files) texts.push_back(file.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"a.yml", "b.YAML", "c.json"}));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(ReadManifestFiles(folder.string()).error(), "failed to read manifest directory \"" + folder.string() +
                                                            "\": open " + folder.string() +
                                                            ": no such file or directory");
  EXPECT_EQ(admission::CheckStaticManifestsDir("relative", true),
            "staticManifestsDir: Invalid value: \"relative\": must be an absolute file path");
  EXPECT_EQ(admission::CheckStaticManifestsDir("/x", false),
            "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig "
            "feature gate to be enabled");
}

TEST(StaticManifests, ReloadsChangedFoldersAndKeepsTheLastGoodOnes) {
  const auto folder = std::filesystem::temp_directory_path() / ("static-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto write = [&](std::string_view text) { std::ofstream(folder / "a.yaml") << text; };
  telemetry::MetricsRegistry registry;
  admission::ManifestMetrics metrics(registry, "sha256:1");
  const admission::ManifestLoader load =
      [](std::string_view plugin,
         const std::string& from) -> Outcome<std::shared_ptr<const admission::LoadedManifests>, std::string> {
    KS_TRY(const auto files, ReadManifestFiles(from));
    return LoadManifests(plugin, files);
  };
  write(kHook);
  admission::StaticManifests manifests("ValidatingAdmissionWebhook", folder.string(), load, &metrics);
  ASSERT_EQ(manifests.LoadInitial(), "");
  std::vector<std::size_t> counts;
  manifests.Follow([&](const admission::LoadedManifests& loaded) { counts.push_back(loaded.objects.size()); });
  manifests.Look();
  write(std::string(kHook) + "nonsense: 1\n");
  manifests.Look();
  manifests.Look();  // the failure is counted once
  write(std::string(kHook) + "---\n" + Replaced(kHook, "a.static", "b.static"));
  manifests.Look();
  EXPECT_EQ(counts, (std::vector<std::size_t>{1, 2}));
  const std::string text = registry.Expose();
  for (const char* const want :
       {"{apiserver_id_hash=\"sha256:1\",plugin=\"ValidatingAdmissionWebhook\",status=\"success\"} 2",
        "{apiserver_id_hash=\"sha256:1\",plugin=\"ValidatingAdmissionWebhook\",status=\"failure\"} 1"}) {
    EXPECT_NE(text.find(std::string("automatic_reloads_total") + want), std::string::npos) << text;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace keelson::controlplane
