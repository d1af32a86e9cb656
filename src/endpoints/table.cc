// The Table form: what kubectl get shows.
#include "codec/json.h"
#include "endpoints/object_encoder.h"
#include "object/age.h"
#include "registry/store.h"
#include "schema/types.h"

namespace keelson::endpoints {
namespace {

Value ColumnValue(base::Arena& arena, const schema::Column& column) {
  Value value = Value::Map(arena);
  value.Set(arena, "name", column.name);
  value.Set(arena, "type", column.type);
  value.Set(arena, "format", column.format);
  value.Set(arena, "description", column.description);
  value.Set(arena, "priority", column.priority);
  return value;
}

// The cells and conditions of a row, with marks where ages go (object/age.h).
constexpr std::size_t kRowForm = 2;

}  // namespace

// The default TableConvertor leaves the rows of an empty list nil; the printers of kinds make an empty slice.
bool ObjectEncoder::HasDefaultColumns() const {
  return scope_->columns.size() == 2 && scope_->columns[0].name == "Name" && scope_->columns[1].name == "Created At";
}

std::string ObjectEncoder::TableHead(std::string_view metadata, bool columns) const {
  std::string head = "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/";
  head.append(media_.transform_version == "v1beta1" ? "v1beta1" : "v1").append("\",\"metadata\":").append(metadata);
  head += ",\"columnDefinitions\":";
  if (columns) {
    base::Arena arena;
    char separator = '[';
    for (const auto& column : scope_->columns) {
      head += separator;
      separator = ',';
      codec::EncodeJSON(ColumnValue(arena, column), schema::types::meta_v1::kTableColumnDefinition, head);
    }
    if (scope_->columns.empty()) head += '[';
    head += ']';
  } else {
    head += "null";
  }
  return head + ",\"rows\":";
}

std::string ObjectEncoder::CellsJSON(base::Arena& arena, Value hub, const base::Clock& clock) const {
  Value row = Value::Map(arena);
  Value cells = Value::List(arena, scope_->columns.size());
  const registry::RESTStrategy& strategy = scope_->rest->rest_strategy();
  if (!strategy.TableRow(arena, clock, hub, cells)) {
    cells.Append(arena, hub.Get("metadata", "name").as_string());
    cells.Append(arena, hub.Get("metadata", "creationTimestamp"));
  }
  row.Set(arena, "cells", cells);
  if (const Value conditions = strategy.RowConditions(arena, hub); !conditions.is_null())
    row.Set(arena, "conditions", conditions);
  row.Set(arena, "object", Value::Raw("0"));
  std::string json;
  codec::EncodeJSON(row, schema::types::meta_v1::kTableRow, json);
  json.resize(json.size() - 2);  // up to the object
  return json;
}

meta::Result<SharedBytes> ObjectEncoder::RowCells(const storage::ObjectPtr& object) const {
  // Versions of a custom resource have different columns: rows are cached only if there is one version.
  const bool kept = !scope_->codec->custom_resource() || scope_->definition->versions.size() == 1;
  if (kept) {
    if (SharedBytes form = object->GetForm(kRowForm); !form.empty()) return form;
  }
  base::Arena arena;
  KS_TRY(const Value hub, scope_->rest->Decode(arena, object));
  const object::AgeTemplate marks(clock_);
  SharedBytes form(CellsJSON(arena, hub, marks));
  if (kept && !marks.read()) object->SetForm(kRowForm, form);
  return form;
}

meta::Result<void> ObjectEncoder::AppendRow(const storage::ObjectPtr& object, std::string& out) const {
  KS_TRY(const SharedBytes cells, RowCells(object));
  SharedBytes included;
  if (include_ == IncludeObject::kMetadata) {
    KS_TRY(included, MetadataJSON(object));
  } else if (include_ == IncludeObject::kObject) {
    KS_TRY(included, JSONItem(object));
  }
  out.reserve(out.size() + cells.size() + included.size() + json_prefix_.size() + 8);
  object::AgeTemplate::Fill(cells.view(), clock_, out);
  switch (include_) {
    case IncludeObject::kMetadata:
      out += included.view();
      break;
    case IncludeObject::kObject:
      out += json_prefix_;
      out += included.view().substr(1);
      break;
    case IncludeObject::kNone:
      out += "null";
      break;
  }
  out += '}';
  return {};
}

meta::Result<std::string> ObjectEncoder::TableJSON(const storage::ObjectPtr& object, bool columns) const {
  const std::uint64_t version = object->resource_version();
  const std::string metadata = version == 0 ? "{}" : "{\"resourceVersion\":\"" + std::to_string(version) + "\"}";
  std::string table = TableHead(metadata, columns) + "[";
  if (auto made = AppendRow(object, table); !made.ok()) return made.error();
  return table + "]}";
}

// A bookmark's table has one row for the empty object; its metadata carries the resourceVersion even where objects are
// not included.
std::string ObjectEncoder::BookmarkTable(base::Arena& arena, Value object) const {
  std::string table =
      TableHead("{\"resourceVersion\":\"" + std::string(object.Get("metadata", "resourceVersion").as_string()) + "\"}",
                false) +
      "[" + CellsJSON(arena, object, clock_);
  codec::EncodeJSON(PartialMetadata(arena, object), schema::types::meta_v1::kPartialObjectMetadata, table);
  return table + "}]}";
}

}  // namespace keelson::endpoints
