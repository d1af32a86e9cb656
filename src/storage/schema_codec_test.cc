#include "storage/schema_codec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/strings.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "storage/definition_outline.h"
#include "storage/stored_form.h"
#include "storage/stored_versions.h"

namespace keelson::storage {
namespace {

std::string Suites() {
  const char* path = std::getenv("KEELSON_SUITES");
  return path != nullptr ? path : "../shared/testdata";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::unique_ptr<ResourceCodec> PodCodec() {
  return NewSchemaCodec({.resource = {"", "pods"},
                         .storage = {"", "v1", "Pod"},
                         .type = schema::FindKind("", "v1", "Pod"),
                         .fields = {{"spec.nodeName", "spec.nodeName", {}},
                                    {"spec.hostNetwork", "spec.hostNetwork", {}},
                                    {"status.phase", "status.phase", {}},
                                    {"computed", "", [](Value pod) {
                                       return std::string(
                                           pod["spec"]["containers"][std::size_t{0}]["name"].as_string());
                                     }}}});
}

constexpr std::string_view kPod =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default","uid":"u1","resourceVersion":"99",
  "selfLink":"x","labels":{"b":"2","a":"1"}},"spec":{"containers":[{"name":"c","image":"i"}],"nodeName":"n1"},"status":{"phase":"Running"}})";

TEST(SchemaCodec, Pod) {
  const auto codec = PodCodec();
  base::Arena arena;
  const auto pod = codec::DecodeJSON(arena, kPod, *schema::FindKind("", "v1", "Pod"));
  ASSERT_TRUE(pod.ok());
  const auto stored = codec->Encode(arena, pod->value);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(pod->value["metadata"]["resourceVersion"].as_string(), "99");  // the caller's object is as it was
  EXPECT_TRUE(codec->Normalize(stored->view())->empty());
  EXPECT_EQ(codec->UID(stored->view()), "u1");
  const auto with = codec->WithResourceVersion(stored->view(), 1234567);
  ASSERT_TRUE(with.ok());
  EXPECT_EQ(*codec->WithResourceVersion(with->view(), 0), *stored);
  const auto decoded = codec->Decode(arena, with->view());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ((*decoded)["metadata"]["resourceVersion"].as_string(), "1234567");
  EXPECT_FALSE((*decoded)["metadata"].Has("selfLink"));

  const auto attributes = codec->GetAttrs(*with);
  ASSERT_TRUE(attributes.ok());
  EXPECT_EQ(attributes->name, "web");
  EXPECT_EQ(attributes->name_space, "default");
  ASSERT_EQ(attributes->labels.size(), 2u);
  EXPECT_EQ(attributes->labels[0].first, "a");
  EXPECT_EQ(attributes->Field("spec.nodeName"), "n1");
  EXPECT_EQ(attributes->Field("spec.hostNetwork"), "false");
  EXPECT_EQ(attributes->Field("status.phase"), "Running");
  EXPECT_EQ(attributes->Field("metadata.name"), "web");
  EXPECT_EQ(attributes->Field("metadata.namespace"), "default");
  EXPECT_EQ(attributes->Field("computed"), "c");
}

// Older data may lie there as JSON; it is read, shown as protobuf and written as that with the next update.
TEST(SchemaCodec, PodStoredAsJSON) {
  const auto codec = PodCodec();
  const auto normalized = codec->Normalize(kPod);
  ASSERT_TRUE(normalized.ok()) << normalized.error();
  EXPECT_TRUE(codec::HasEnvelope(normalized->view()));
  EXPECT_TRUE(codec->Normalize(normalized->view())->empty());
}

// Upstream's last try; an error is its.
TEST(SchemaCodec, PodStoredAsBase64) {
  const auto codec = PodCodec();
  const auto normalized = codec->Normalize(base::Base64Encode(kPod));
  ASSERT_TRUE(normalized.ok()) << normalized.error();
  EXPECT_EQ(*normalized, *codec->Normalize(kPod));
  EXPECT_EQ(codec->Normalize("this is no object").error(), "illegal base64 data at input byte 4");
}

// --storage-media-type: protobuf in memory, another encoding in the store; either is read.
TEST(SchemaCodec, AnotherEncodingInTheStore) {
  using Media = SchemaCodecOptions::Media;
  for (const Media media : {Media::kJSON, Media::kYAML}) {
    const auto codec = NewSchemaCodec({.resource = {"", "configmaps"},
                                       .storage = {"", "v1", "ConfigMap"},
                                       .media = media,
                                       .type = schema::FindKind("", "v1", "ConfigMap")});
    const auto* const form = dynamic_cast<const StoredForm*>(codec.get());
    ASSERT_NE(form, nullptr);
    base::Arena arena;
    Value object = Value::Map(arena);
    object.EnsureMap(arena, "metadata").Set(arena, "name", "a");
    object.EnsureMap(arena, "data").Set(arena, "key", "no");
    const auto memory = codec->Encode(arena, object);
    ASSERT_TRUE(memory.ok()) << memory.error();
    const auto stored = form->ToStorage(*memory);
    ASSERT_TRUE(stored.ok()) << stored.error();
    EXPECT_TRUE(stored->view().starts_with(media == Media::kJSON ? "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\""
                                                                 : "apiVersion: v1\ndata:\n  key: \"no\"\n"))
        << stored->view();
    EXPECT_TRUE(form->IsCurrent(stored->view(), {}));
    EXPECT_FALSE(form->IsCurrent(memory->view(), {}));
    const auto again = codec->Normalize(stored->view());
    ASSERT_TRUE(again.ok()) << again.error();
    EXPECT_EQ(*again, *memory);
  }
}

TEST(SchemaCodec, CorruptBytesAreErrors) {
  const auto codec = PodCodec();
  for (const std::string& bytes : {std::string(), std::string("k8s\0", 4), std::string("k8s\0\x0a\xff", 6),
                                   std::string("{"), std::string("garbage")}) {
    EXPECT_FALSE(codec->Normalize(bytes).ok());
    EXPECT_FALSE(codec->WithResourceVersion(bytes, 5).ok());
    EXPECT_FALSE(codec->GetAttrs(SharedBytes(bytes)).ok());
    EXPECT_EQ(codec->UID(bytes), "");
  }
}

TEST(SchemaCodec, CustomResource) {
  const auto codec = NewSchemaCodec({.resource = {"cr.bar.com", "foos"},
                                     .storage = {"cr.bar.com", "v1", "Foo"},
                                     .json = true,
                                     .fields = {{"spec.color", "spec.color", {}}, {"spec.size", "spec.size", {}}}});
  base::Arena arena;
  const auto foo = codec::DecodeJSON(
      arena,
      R"({"kind":"Foo","apiVersion":"cr.bar.com/v1","metadata":{"uid":"u","name":"a","labels":{"x":"\u0041"}},"spec":{"size":3,"color":"red<"}})");
  ASSERT_TRUE(foo.ok());
  const auto stored = codec->Encode(arena, foo->value);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->view(),
            "{\"apiVersion\":\"cr.bar.com/"
            "v1\",\"kind\":\"Foo\",\"metadata\":{\"labels\":{\"x\":\"A\"},\"name\":\"a\",\"uid\":\"u\"},\"spec\":{"
            "\"color\":\"red\\u003c\",\"size\":3}}\n");
  EXPECT_TRUE(codec->Normalize(stored->view())->empty());
  const auto with = codec->WithResourceVersion(stored->view(), 5);
  EXPECT_NE(with->view().find(R"("name":"a","resourceVersion":"5","uid":"u")"), std::string_view::npos);
  EXPECT_EQ(*codec->WithResourceVersion(with->view(), 0), *stored);
  const auto attributes = codec->GetAttrs(*with);
  ASSERT_TRUE(attributes.ok());
  EXPECT_EQ(attributes->labels[0].second, "A");
  EXPECT_EQ(attributes->Field("spec.color"), "red<");
  EXPECT_EQ(attributes->Field("spec.size"), "3");
}

// As kube-apiserver v1.36 stored it, managedFields and annotations left out.
constexpr std::string_view kStoredDefinition =
    R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"foos.cr.bar.com","uid":"32ebbc4)"
    R"(1-1225-4da5-953f-a492c7bbfdcd","generation":1,"creationTimestamp":"2026-11-16T05:22:30Z"},"spec":{"group":"cr.bar.com","version":")"
    R"(v1","names":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList"},"scope":"Namespaced","validation":{"openAPIV3Sche)"
    R"(ma":{"type":"object","properties":{"spec":{"type":"object","properties":{"color":{"type":"string","pattern":"^[a-z\u003c\u003e\u00)"
    R"(26]*$"},"size":{"type":"integer"}}}},"x-kubernetes-preserve-unknown-fields":true}},"subresources":{"status":{}},"versions":[{"name)"
    R"(":"v1","served":true,"storage":true}],"additionalPrinterColumns":[{"name":"Color","type":"string","JSONPath":".spec.color"}],"conv)"
    R"(ersion":{"strategy":"None"},"preserveUnknownFields":false},"status":{"conditions":[{"type":"NamesAccepted","status":"True","lastTr)"
    R"(ansitionTime":"2026-11-16T05:22:30Z","reason":"NoConflicts","message":"no conflicts found"},{"type":"Established","status":"True",)"
    R"("lastTransitionTime":"2026-11-16T05:22:30Z","reason":"InitialNamesAccepted","message":"the initial names have been accepted"}],"ac)"
    R"(ceptedNames":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList"},"storedVersions":["v1"]}})"
    "\n";

TEST(DefinitionOutline, HasEverythingButSchemas) {
  base::Arena arena;
  const auto outline = DefinitionOutline(arena, kStoredDefinition);
  ASSERT_TRUE(outline.has_value());
  EXPECT_EQ((*outline)["apiVersion"].as_string(), "apiextensions.k8s.io/v1");
  EXPECT_EQ(outline->Get("metadata", "uid").as_string(), "32ebbc41-1225-4da5-953f-a492c7bbfdcd");
  EXPECT_EQ(outline->Get("spec", "names", "listKind").as_string(), "FooList");
  const Value version = (*outline)["spec"]["versions"][std::size_t{0}];
  EXPECT_TRUE(version["served"].as_bool());
  EXPECT_TRUE(version["subresources"]["status"].is_map());
  EXPECT_FALSE(version.Has("schema"));
  EXPECT_FALSE((*outline)["spec"].Has("validation"));
  EXPECT_EQ(outline->Get("status", "acceptedNames", "kind").as_string(), "Foo");
  EXPECT_EQ(outline->Get("status", "conditions").size(), 2u);
  EXPECT_FALSE(DefinitionOutline(arena, "kind: CustomResourceDefinition").has_value());
  EXPECT_FALSE(DefinitionOutline(arena, R"({"apiVersion":"apiextensions.k8s.io/v1beta1","spec":{)").has_value());
  EXPECT_FALSE(DefinitionOutline(arena, R"({"apiVersion":"apiextensions.k8s.io/v7","spec":{}})").has_value());
}

TEST(SchemaCodec, WebhookConfigurationsOfV1beta1AreReadWithTheirDefaults) {
  const auto codec = NewSchemaCodec(
      {.resource = {"admissionregistration.k8s.io", "validatingwebhookconfigurations"},
       .storage = {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
       .hub_version = "admissionregistration.k8s.io/v1",
       .type = StoredType({"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"}),
       .convert = StoredConversion({"admissionregistration.k8s.io", "validatingwebhookconfigurations"})});
  constexpr std::string_view kStored =
      R"({"kind":"ValidatingWebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1beta1","metadata":{"name":"a"},)"
      R"("webhooks":[{"name":"bare","clientConfig":{"url":"https://x"}},)"
      R"({"name":"full","clientConfig":{"url":"https://x"},"failurePolicy":"Fail","matchPolicy":"Equivalent",)"
      R"("sideEffects":"None","timeoutSeconds":3,"admissionReviewVersions":["v1"]}]})";
  base::Arena arena;
  const auto object = codec->Decode(arena, kStored);
  ASSERT_TRUE(object.ok()) << object.error();
  EXPECT_EQ((*object)["apiVersion"].as_string(), "admissionregistration.k8s.io/v1");
  const auto json = [](Value value) {
    std::string text;
    codec::EncodeJSON(value, text);
    return text;
  };
  EXPECT_EQ(json((*object)["webhooks"][std::size_t{0}]),
            R"({"admissionReviewVersions":["v1beta1"],"clientConfig":{"url":"https://x"},"failurePolicy":"Ignore",)"
            R"("matchPolicy":"Exact","name":"bare","sideEffects":"Unknown","timeoutSeconds":30})");
  EXPECT_EQ(json((*object)["webhooks"][std::size_t{1}]),
            R"({"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"failurePolicy":"Fail",)"
            R"("matchPolicy":"Equivalent","name":"full","sideEffects":"None","timeoutSeconds":3})");
  // The stored form of what was read is v1.
  const auto normalized = codec->Normalize(kStored);
  ASSERT_TRUE(normalized.ok()) << normalized.error();
  EXPECT_TRUE(codec->Normalize(normalized->view())->empty());
}

TEST(SchemaCodec, CustomResourceDefinitionIsStoredAsV1beta1) {
  const auto codec =
      NewSchemaCodec({.resource = {"apiextensions.k8s.io", "customresourcedefinitions"},
                      .storage = {"apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"},
                      .hub_version = "apiextensions.k8s.io/v1",
                      .json = true,
                      .type = StoredType({"apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"}),
                      .convert = StoredConversion({"apiextensions.k8s.io", "customresourcedefinitions"})});
  EXPECT_TRUE(codec->Normalize(kStoredDefinition)->empty());
  base::Arena arena;
  const auto object = codec->Decode(arena, kStoredDefinition);
  ASSERT_TRUE(object.ok()) << object.error();
  EXPECT_EQ((*object)["apiVersion"].as_string(), "apiextensions.k8s.io/v1");
  const Value version = (*object)["spec"]["versions"][std::size_t{0}];
  EXPECT_EQ(version["additionalPrinterColumns"][std::size_t{0}]["jsonPath"].as_string(), ".spec.color");
  EXPECT_EQ(version["schema"]["openAPIV3Schema"]["type"].as_string(), "object");
  EXPECT_TRUE(version["subresources"]["status"].is_map());
  EXPECT_FALSE((*object)["spec"].Has("validation"));
  EXPECT_FALSE((*object)["spec"].Has("preserveUnknownFields"));
  const auto again = codec->Encode(arena, *object);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->view(), kStoredDefinition);
  EXPECT_EQ((*object)["apiVersion"].as_string(), "apiextensions.k8s.io/v1");  // encoding leaves the object as it was

  const auto attributes = codec->GetAttrs(SharedBytes(kStoredDefinition));
  ASSERT_TRUE(attributes.ok());
  EXPECT_EQ(attributes->name, "foos.cr.bar.com");
  EXPECT_EQ(attributes->Field("metadata.name"), "foos.cr.bar.com");
  std::string labelled(kStoredDefinition);
  labelled.insert(labelled.find("\"uid\""), R"("labels":{"b":"2","a":"\u0041"},)");
  const auto labels = codec->GetAttrs(SharedBytes(labelled));
  ASSERT_TRUE(labels.ok());
  EXPECT_EQ(labels->labels[0].second, "A");
  EXPECT_EQ(labels->labels[1].second, "2");

  // Versions that differ keep what is their own; a webhook has another shape.
  const auto two = codec::DecodeJSON(
      arena,
      R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{
    "group":"g","names":{"plural":"as","kind":"A"},"scope":"Cluster","conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://x"},
    "conversionReviewVersions":["v1"]}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
    {"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","description":"x"}},
     "additionalPrinterColumns":[{"name":"n","type":"string","jsonPath":".x"}]}]}})",
      *schema::FindKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
  ASSERT_TRUE(two.ok());
  const auto stored = codec->Encode(arena, two->value);
  EXPECT_NE(
      stored->view().find(
          R"("conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://x"},"conversionReviewVersions":["v1"]})"),
      std::string_view::npos);
  EXPECT_NE(stored->view().find(R"("JSONPath":".x")"), std::string_view::npos);
  EXPECT_EQ(stored->view().find("validation"), std::string_view::npos);
  const auto back = codec->Decode(arena, stored->view());
  EXPECT_EQ((*back)["spec"], two->value["spec"]);
}

// Every built-in kind with every field filled: the bytes are left alone but for the resourceVersion, and come out as
// they went in.
TEST(SchemaCodec, EveryKind) {
  const std::filesystem::path folder = std::filesystem::path(Suites()) / "roundtrip";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no test data at " << folder;
  int kinds = 0;
  for (const schema::Package* package : schema::Packages()) {
    for (const schema::Resource& resource : package->resources) {
      const std::string group(package->group.empty() ? "core" : package->group);
      const auto path =
          folder / (group + "." + std::string(package->version) + "." + std::string(resource.kind) + ".pb");
      if (!std::filesystem::exists(path) || resource.type->FindField("metadata") == nullptr) continue;
      SCOPED_TRACE(path.filename());
      ++kinds;
      const std::string bytes = ReadFile(path);
      const auto codec = NewSchemaCodec(
          {.resource = {std::string(package->group), std::string(resource.plural)},
           .storage = {std::string(package->group), std::string(package->version), std::string(resource.kind)},
           .type = resource.type});
      ASSERT_TRUE(codec->Normalize(bytes).ok());
      EXPECT_TRUE(codec->Normalize(bytes)->empty());
      const auto plain = codec->WithResourceVersion(bytes, 0);
      ASSERT_TRUE(plain.ok());
      base::Arena arena;
      const auto object = codec->Decode(arena, plain->view());
      ASSERT_TRUE(object.ok()) << object.error();
      // selfLink is never stored; put it back to compare with the fixture.
      const auto again = codec->Encode(arena, *object);
      ASSERT_TRUE(again.ok());
      const auto set = codec->WithResourceVersion(again->view(), 42);
      const auto reread = codec->Decode(arena, set->view());
      ASSERT_TRUE(reread.ok());
      EXPECT_EQ((*reread)["metadata"]["resourceVersion"].as_string(), "42");
      EXPECT_EQ(*codec->WithResourceVersion(set->view(), 0), *again);
      const auto attributes = codec->GetAttrs(*set);
      ASSERT_TRUE(attributes.ok());
      EXPECT_EQ(attributes->name, (*object)["metadata"]["name"].as_string());
      EXPECT_EQ(attributes->name_space, (*object)["metadata"]["namespace"].as_string());
      EXPECT_EQ(attributes->labels.size(), (*object)["metadata"]["labels"].size());
      EXPECT_EQ(codec->UID(set->view()), (*object)["metadata"]["uid"].as_string());
    }
  }
  EXPECT_GT(kinds, 50);
}

}  // namespace
}  // namespace keelson::storage
