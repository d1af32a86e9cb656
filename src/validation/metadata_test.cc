#include <gtest/gtest.h>

#include "meta/status.h"
#include "validation/primitives.h"

namespace keelson::validation {
namespace {

class Metadata : public testing::Test {
 protected:
  Value Map(std::initializer_list<std::pair<const char*, Value>> members) {
    Value map = Value::Map(arena_);
    for (const auto& [key, value] : members) map.Set(arena_, key, value);
    return map;
  }
  Value List(std::initializer_list<Value> items) {
    Value list = Value::List(arena_);
    for (const Value& item : items) list.Append(arena_, item);
    return list;
  }
  static std::string Create(const Value& metadata, bool namespaced = true) {
    FieldErrors errors;
    ValidateObjectMeta(metadata, namespaced, NameIsDNSSubdomain, FieldPath("metadata"), errors);
    return meta::AggregateMessage(errors);
  }
  static std::string Update(const Value& now, const Value& old) {
    FieldErrors errors;
    ValidateObjectMetaUpdate(now, old, FieldPath("metadata"), errors);
    return meta::AggregateMessage(errors);
  }

  base::Arena arena_;
};

TEST_F(Metadata, Names) {
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "b"}})), "");
  EXPECT_EQ(Create(Map({{"namespace", "b"}})), "metadata.name: Required value: name or generateName is required");
  EXPECT_EQ(Create(Map({{"name", "a"}})), "metadata.namespace: Required value");
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "x.y"}})),
            "metadata.namespace: Invalid value: \"x.y\": must not contain dots");
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "x"}}), false),
            "metadata.namespace: Forbidden: not allowed on this type");
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "x"}, {"generation", -1}})),
            "metadata.generation: Invalid value: -1: must be greater than or equal to 0");
}

TEST_F(Metadata, LabelsAndAnnotations) {
  const Value bad = Map({{"name", "a"}, {"namespace", "b"}, {"labels", Map({{"x/y/z", "ok"}})}});
  EXPECT_TRUE(Create(bad).starts_with("metadata.labels: Invalid value: \"x/y/z\": a valid label key must consist of"));
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "b"}, {"annotations", Map({{"UPPER.com/X", "ok"}})}})), "");
  const std::string large(262144, 'x');
  EXPECT_EQ(
      Create(Map({{"name", "a"}, {"namespace", "b"}, {"annotations", Map({{"a", Value::String(arena_, large)}})}})),
      "metadata.annotations: Too long: may not be more than 262144 bytes");
}

TEST_F(Metadata, OwnersAndFinalizers) {
  const Value owner =
      Map({{"apiVersion", "apps/v1"}, {"kind", "X"}, {"name", "n"}, {"uid", "u"}, {"controller", true}});
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "b"}, {"ownerReferences", List({owner, owner})}})),
            "metadata.ownerReferences: Invalid value: "
            "[{\"apiVersion\":\"apps/v1\",\"kind\":\"X\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true},"
            "{\"apiVersion\":\"apps/v1\",\"kind\":\"X\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true}]: "
            "Only one reference can have Controller set to true. Found \"true\" in references for X/n and X/n");
  const Value event = Map({{"apiVersion", "v1"}, {"kind", "Event"}, {"name", "n"}, {"uid", "u"}});
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "b"}, {"ownerReferences", List({event})}})),
            "metadata.ownerReferences: Invalid value: "
            "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"n\",\"uid\":\"u\"}: "
            "/v1, Kind=Event is disallowed from being an owner");
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "b"}, {"ownerReferences", List({Map({})})}})),
            "[metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty, "
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty, "
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty, "
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty]");
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "b"}, {"finalizers", List({"mine"})}})),
            "metadata.finalizers[0]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it "
            "fully qualified");
  EXPECT_EQ(Create(Map({{"name", "a"}, {"namespace", "b"}, {"finalizers", List({"orphan", "foregroundDeletion"})}})),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and "
            "foregroundDeletion cannot be both set");
}

TEST_F(Metadata, ManagedFields) {
  EXPECT_EQ(
      Create(Map({{"name", "a"},
                  {"namespace", "b"},
                  {"managedFields", List({Map({{"operation", "X"}, {"fieldsType", "Y"}, {"manager", "m\x07"}})})}})),
      "[metadata.managedFields[0].operation: Invalid value: \"X\": must be `Apply` or `Update`, "
      "metadata.managedFields[0].fieldsType: Invalid value: \"Y\": must be `FieldsV1`, "
      "metadata.managedFields[0].manager: Invalid value: \"m\\a\": invalid character U+0007 (at position 1)]");
}

TEST_F(Metadata, UpdateRules) {
  const Value old = Map({{"name", "a"},
                         {"uid", "u"},
                         {"resourceVersion", "1"},
                         {"generation", 2},
                         {"deletionTimestamp", "2020-01-01T00:00:00Z"},
                         {"finalizers", List({"a/b"})}});
  EXPECT_EQ(Update(old, old), "");
  const Value now = Map({{"name", "b"},
                         {"uid", "u"},
                         {"generation", 1},
                         {"deletionTimestamp", "2020-01-01T00:00:00Z"},
                         {"finalizers", List({"a/b", "c/d"})}});
  EXPECT_EQ(Update(now, old),
            "[metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
            "finalizers "
            "[]string{\"c/d\"}, metadata.resourceVersion: Invalid value: \"\": must be specified for an update, "
            "metadata.generation: Invalid value: 1: must not be decremented, metadata.name: Invalid value: \"b\": "
            "field is immutable]");
}

TEST_F(Metadata, LabelSelectors) {
  FieldErrors errors;
  ValidateLabelSelector(
      Map({{"matchExpressions", List({Map({{"key", "a"}, {"operator", "In"}}),
                                      Map({{"key", "a"}, {"operator", "Exists"}, {"values", List({"x"})}}),
                                      Map({{"key", "a"}, {"operator", "Huh"}})})}}),
      FieldPath("sel"), errors);
  EXPECT_EQ(
      meta::AggregateMessage(errors),
      "[sel.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn', "
      "sel.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist', "
      "sel.matchExpressions[2].operator: Invalid value: \"Huh\": not a valid selector operator]");
}

TEST_F(Metadata, Conditions) {
  const Value good =
      Map({{"type", "Ready"}, {"status", "True"}, {"reason", "A,B"}, {"lastTransitionTime", "2020-01-01T00:00:00Z"}});
  FieldErrors errors;
  ValidateConditions(List({good}), FieldPath("c"), errors);
  EXPECT_TRUE(errors.empty());
  ValidateConditions(List({good, good, Map({{"type", "B"}, {"status", "x"}})}), FieldPath("c"), errors);
  EXPECT_EQ(meta::AggregateMessage(errors),
            "[c[1].type: Duplicate value: \"Ready\", c[2].status: Unsupported value: \"x\": supported values: "
            "\"False\", \"True\", \"Unknown\", "
            "c[2].lastTransitionTime: Required value, c[2].reason: Required value]");
}

TEST_F(Metadata, Immutable) {
  FieldErrors errors;
  ValidateImmutableField(Map({{"a", List({})}}), Map({}), FieldPath("f"), errors);
  EXPECT_TRUE(errors.empty());
  ValidateImmutableField(Map({{"a", 1}}), Map({{"a", 2}}), FieldPath("f"), errors);
  EXPECT_EQ(meta::AggregateMessage(errors), "f: Invalid value: {\"a\":1}: field is immutable");
}

}  // namespace
}  // namespace keelson::validation
