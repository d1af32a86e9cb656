#include "endpoints/column_descriptions.h"

#include <gtest/gtest.h>

#include "schema/schema.h"

namespace keelson::endpoints {
namespace {

TEST(ColumnDescriptions, TextsOfTheFile) {
  EXPECT_TRUE(ColumnDescription("", "pods", "Name").starts_with("Name must be unique within a namespace."));
  EXPECT_EQ(ColumnDescription("", "pods", "Name"), ColumnDescription("apps", "deployments", "Name"));
  EXPECT_EQ(ColumnDescription("", "pods", "NoSuchColumn"), "");
}

TEST(ColumnDescriptions, EmptyLinesAreKept) {
  EXPECT_NE(ColumnDescription("", "pods", "Age").find("is in UTC.\n\nPopulated by the system."),
            std::string_view::npos);
}

// Every column of the tables has a line in api/columns.txt.
TEST(ColumnDescriptions, EveryColumnHasADescription) {
  for (const schema::Package* package : schema::Packages()) {
    for (const schema::Resource& resource : package->resources) {
      for (const schema::Column& column : resource.columns) {
        if (column.name != "Name") continue;
        EXPECT_NE(ColumnDescription(resource.group, resource.plural, column.name), "") << resource.plural;
      }
    }
  }
}

}  // namespace
}  // namespace keelson::endpoints
