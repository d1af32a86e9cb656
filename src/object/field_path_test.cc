#include "object/field_path.h"

#include <gtest/gtest.h>

namespace keelson::object {
namespace {

TEST(FieldPath, Renders) {
  const FieldPath spec("spec");
  const FieldPath containers = spec.Child("containers");
  const FieldPath first = containers.Index(0);
  EXPECT_EQ(first.Child("name").ToString(), "spec.containers[0].name");
  const FieldPath metadata("metadata");
  const FieldPath labels = metadata.Child("labels");
  EXPECT_EQ(labels.Key("a.b/c").ToString(), "metadata.labels[a.b/c]");
  EXPECT_EQ(FieldPath().ToString(), "");
  const FieldPath none;
  EXPECT_EQ(none.Index(1).Child("x").ToString(), "[1].x");
}

}  // namespace
}  // namespace keelson::object
