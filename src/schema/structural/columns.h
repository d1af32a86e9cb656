// Table columns of a custom resource: additionalPrinterColumns as JSONPath programs, made once per version.
// Thread safety: immutable. Ownership: owns its texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "object/jsonpath.h"
#include "object/value.h"

namespace keelson::schema::structural {

struct ColumnDefinition {
  std::string name;
  std::string type;
  std::string format;
  std::string description;
  std::int32_t priority = 0;
};

class Columns {
 public:
  // `columns` is additionalPrinterColumns of a version (null or empty: one Age column), path keys jsonPath (v1) or
  // JSONPath (v1beta1). Definitions come with the leading Name column. A path that does not parse cuts the table down
  // to the columns before it, as upstream's convertor does.
  static Columns Of(const Value& columns);

  const std::vector<ColumnDefinition>& definitions() const { return definitions_; }
  static constexpr std::size_t kRowBytesMax = std::size_t{1} << 20;  // of the texts of a row
  // Appends the cells of one row to the list `cells`, Name first. Those beyond kRowBytesMax, and beyond
  // JSONPath::kStepsMax for the whole row, are null. Date columns show the age by `clock` (an AgeTemplate leaves marks
  // for rows that are kept).
  void AppendRow(base::Arena& arena, const Value& object, const base::Clock& clock, Value cells) const;

 private:
  std::vector<ColumnDefinition> definitions_;
  std::vector<object::JSONPath> paths_;  // of definitions_ from the second on
};

// selectableFields of a version. The name is the path without its leading dot.
class SelectableFields {
 public:
  static SelectableFields Of(const Value& selectable_fields);
  std::size_t size() const { return fields_.size(); }
  const std::string& name(std::size_t index) const { return fields_[index].name; }
  // The field's text, "" when it is absent.
  std::string Text(base::Arena& arena, std::size_t index, const Value& object) const;

 private:
  struct Field {
    std::string name;
    object::JSONPath path;
  };
  std::vector<Field> fields_;
};

}  // namespace keelson::schema::structural
