#include "schema/structural/columns.h"

#include <cmath>

#include "base/go_int.h"
#include "object/age.h"
#include "object/time.h"

namespace keelson::schema::structural {
namespace {

Value DateCell(base::Arena& arena, const Value& value, const base::Clock& clock) {
  if (!value.is_string()) return Value();
  if (value.as_string().empty() || value.as_string() == "null") return Value("<unknown>");
  const auto time = object::ParseTime(value.as_string());
  if (!time.ok()) return Value("<invalid>");
  return Value::String(arena, object::Age(clock, *time));
}

Value Cell(base::Arena& arena, std::string_view type, const Value& value, const base::Clock& clock) {
  if (type == "string") return Value::String(arena, object::JSONPath::Print(value));
  if (type == "integer") {
    if (value.is_double()) return Value(base::GoInt64(value.as_double()));
    return value.is_int() ? value : Value();
  }
  if (type == "number") return value.is_number() ? Value(value.as_double()) : Value();
  if (type == "boolean") return value.is_bool() ? value : Value();
  if (type == "date") return DateCell(arena, value, clock);
  return Value();
}

}  // namespace

Columns Columns::Of(const Value& columns) {
  Columns made;
  made.definitions_.push_back({.name = "Name", .type = "string", .format = "name"});
  if (columns.empty()) {
    made.definitions_.push_back({.name = "Age", .type = "date"});
    made.paths_.push_back(*object::JSONPath::Parse(".metadata.creationTimestamp"));
    return made;
  }
  for (const Value& column : columns.items()) {
    const Value& v1 = column["jsonPath"];
    const std::string path(v1.is_string() ? v1.as_string() : column["JSONPath"].as_string());
    auto parsed = object::JSONPath::Parse(path);
    if (!parsed.ok()) break;
    std::string description(column["description"].as_string());
    if (description.empty()) description = "Custom resource definition column (in JSONPath format): " + path;
    made.definitions_.push_back({.name = std::string(column["name"].as_string()),
                                 .type = std::string(column["type"].as_string()),
                                 .format = std::string(column["format"].as_string()),
                                 .description = std::move(description),
                                 .priority = static_cast<std::int32_t>(column["priority"].as_int())});
    made.paths_.push_back(*std::move(parsed));
  }
  return made;
}

void Columns::AppendRow(base::Arena& arena, const Value& object, const base::Clock& clock, Value cells) const {
  cells.Append(arena, object.Get("metadata", "name").as_string());
  std::size_t steps = 0, bytes = 0;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (bytes > kRowBytesMax) {
      cells.Append(arena, Value());
      continue;
    }
    const auto found = paths_[i].Find(arena, object, &steps);
    if (!found.ok() || found->empty()) {
      cells.Append(arena, Value());
    } else {
      const Value cell = Cell(arena, definitions_[i + 1].type, found->front(), clock);
      bytes += cell.as_string().size();
      cells.Append(arena, cell);
    }
  }
}

SelectableFields SelectableFields::Of(const Value& selectable_fields) {
  SelectableFields made;
  for (const Value& field : selectable_fields.items()) {
    const std::string_view path = field["jsonPath"].as_string();
    auto parsed = object::JSONPath::Parse(path);
    if (!parsed.ok()) continue;
    made.fields_.push_back({std::string(path.starts_with('.') ? path.substr(1) : path), *std::move(parsed)});
  }
  return made;
}

std::string SelectableFields::Text(base::Arena& arena, std::size_t index, const Value& object) const {
  const auto found = fields_[index].path.Find(arena, object);
  if (!found.ok() || found->empty() || found->front().is_null()) return {};
  return object::JSONPath::Print(found->front());
}

}  // namespace keelson::schema::structural
