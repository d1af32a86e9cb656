#include "schema/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "schema/versions_of_kind.h"

namespace keelson::schema {
namespace {

TEST(Schema, FindsKinds) {
  struct Case {
    const char* group;
    const char* version;
    const char* kind;
    bool want;
  };
  constexpr Case kCases[] = {
      {"", "v1", "Pod", true},
      {"", "v1", "PodSpec", false},  // a type, not a kind
      {"apps", "v1", "Deployment", true},
      {"apps", "v1", "DeleteOptions", true},  // in every served version
      {"", "v1", "Status", true},
      {"autoscaling", "v2", "Status", true},  // in every version
      {"nosuch", "v1", "DeleteOptions", false},
      {"meta.k8s.io", "v1", "Table", true},
      {"meta.k8s.io", "v1beta1", "PartialObjectMetadata", true},
      {"", "v2", "Pod", false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.group) + "/" + c.version + " " + c.kind);
    EXPECT_EQ(FindKind(c.group, c.version, c.kind) != nullptr, c.want);
  }
}

TEST(Schema, PodHasTheFieldsOfItsTable) {
  const Struct* pod = FindKind("", "v1", "Pod");
  ASSERT_NE(pod, nullptr);
  ASSERT_EQ(pod->json_fields.size(), 5u);
  EXPECT_EQ(pod->json_fields[0]->name, "kind");
  EXPECT_EQ(pod->json_fields[2]->name, "metadata");
  EXPECT_EQ(pod->proto_fields[0]->number, 1u);
  EXPECT_EQ(std::string_view(pod->json_fields[2]->quoted), "\"metadata\":");
  const Struct* spec = pod->FindField("spec")->type->structure;
  const Field* containers = spec->FindField("containers");
  ASSERT_NE(containers, nullptr);
  EXPECT_EQ(containers->patch_strategy, PatchStrategy::kMerge);
  EXPECT_EQ(containers->patch_merge_key, "name");
  EXPECT_EQ(containers->list_topology, ListTopology::kMap);
  const Struct* port = FindType("core/v1", "ServicePort");
  EXPECT_EQ(port->FindField("protocol")->default_text, "\"TCP\"");
  EXPECT_EQ(port->FindField("protocol")->enum_values.size(), 3u);
  EXPECT_EQ(port->FindField("nosuch"), nullptr);
  EXPECT_EQ(FindType("core/v1", "Volume")->proto_positions[1], Struct::kNoPosition);  // the inlined VolumeSource
}

// Every struct's orders are consistent with each other, whatever the tables say.
TEST(Schema, OrdersAreConsistent) {
  std::size_t types = 0, fields = 0;
  for (const Package* package : Packages()) {
    EXPECT_TRUE(std::ranges::is_sorted(package->types, {}, &Struct::name));
    for (const Struct& type : package->types) {
      SCOPED_TRACE(std::string(package->name) + "." + std::string(type.name));
      ++types;
      fields += type.fields.size();
      EXPECT_EQ(type.json_fields.size(), type.name_index.size());
      EXPECT_EQ(type.proto_fields.size(), type.proto_positions.size());
      EXPECT_LE(type.json_fields.size(), 128u);  // written_always has a bit for each
      for (std::size_t i = 0; i < type.json_fields.size(); ++i) {
        const Field& field = *type.json_fields[i];
        ASSERT_NE(field.type, nullptr);
        if (field.name.empty()) continue;  // an alternative
        EXPECT_EQ(type.FindPosition(field.name), i);
        EXPECT_EQ(std::string_view(field.quoted), "\"" + std::string(field.name) + "\":");
        const JSONField& row = type.json[i];
        EXPECT_EQ(row.field, &field);
        EXPECT_EQ(std::string_view(row.quoted), field.quoted);
        EXPECT_EQ(row.name_size, field.name.size());
        EXPECT_EQ(row.kind, field.type->kind);
        EXPECT_EQ(row.place, i | field.wire << 8);
        EXPECT_EQ(row.pointer, field.pointer);
        EXPECT_EQ(row.always, field.always);
        if (row.form == Form::kStruct) EXPECT_EQ(row.structure, field.type->structure);
        if (row.form == Form::kStructs) EXPECT_EQ(row.structure, field.type->element->structure);
      }
      for (std::size_t i = 0; i < type.proto_fields.size(); ++i) {
        EXPECT_EQ(type.FindProtoPosition(type.proto_fields[i]->number), i);
        if (type.proto_positions[i] != Struct::kNoPosition) {
          EXPECT_EQ(type.json_fields[type.proto_positions[i]], type.proto_fields[i]);
          EXPECT_EQ(type.wire[i].place, type.proto_positions[i] | i << 8);
          EXPECT_EQ(type.wire_of_json[type.proto_positions[i]], i);
          EXPECT_EQ(type.proto_fields[i]->wire, i);
          EXPECT_EQ(type.wire[i].name, type.proto_fields[i]->name.data());
        } else if (const Struct& inner = *type.wire[i].structure; !inner.json_fields.empty()) {
          EXPECT_EQ(type.json_fields[type.wire[i].place], inner.json_fields[0]);
        }
      }
    }
    for (const Resource& resource : package->resources) {
      EXPECT_EQ(resource.type, FindKind(resource.group, resource.version, resource.kind));
      for (const Subresource& sub : resource.subresources) {
        EXPECT_NE(FindKind(sub.kind_group, sub.kind_version, sub.kind), nullptr) << resource.plural << "/" << sub.name;
      }
    }
  }
  EXPECT_GT(types, 1100u);
  EXPECT_GT(fields, 4300u);
}

TEST(Schema, FindsResources) {
  const Resource* pods = FindResource("", "v1", "pods");
  ASSERT_NE(pods, nullptr);
  EXPECT_TRUE(pods->namespaced);
  EXPECT_EQ(pods->short_names[0], "po");
  EXPECT_EQ(pods->columns[0].format, "name");
  const auto eviction = std::ranges::find(pods->subresources, "eviction", &Subresource::name);
  ASSERT_NE(eviction, pods->subresources.end());
  EXPECT_EQ(eviction->kind_group, "policy");
  EXPECT_EQ(FindResource("", "v1", "nosuch"), nullptr);
}

TEST(VersionsOfKind, VersionsAreInSchemePriorityOrder) {
  using Versions = std::vector<std::string_view>;
  EXPECT_EQ(VersionsOfKind("apps", "Deployment"), (Versions{"v1", "v1beta2", "v1beta1"}));
  EXPECT_EQ(VersionsOfKind("apps", "DaemonSet"), (Versions{"v1", "v1beta2"}));
  EXPECT_EQ(VersionsOfKind("autoscaling", "HorizontalPodAutoscaler"), (Versions{"v2", "v1"}));
  EXPECT_EQ(VersionsOfKind("storage.k8s.io", "VolumeAttachment"), (Versions{"v1", "v1beta1", "v1alpha1"}));
  EXPECT_EQ(VersionsOfKind("example.com", "Widget"), Versions());
}

}  // namespace
}  // namespace keelson::schema
