// The Table form: what kubectl get shows.
#include "codec/json.h"
#include "endpoints/object_encoder.h"
#include "registry/store.h"

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

Value ColumnsValue(base::Arena& arena, std::span<const schema::Column> columns) {
  Value list = Value::List(arena, columns.size());
  for (const auto& column : columns) list.Append(arena, ColumnValue(arena, column));
  return list;
}

}  // namespace

std::string ObjectEncoder::columns_json() const {
  base::Arena arena;
  std::string out = "[";
  const schema::Struct* type = schema::FindType("meta/v1", "TableColumnDefinition");
  for (const auto& column : scope_->columns) {
    if (out.size() > 1) out += ',';
    codec::EncodeJSON(ColumnValue(arena, column), *type, out);
  }
  return out + "]";
}

meta::Result<Value> ObjectEncoder::TableRow(base::Arena& arena, const storage::ObjectPtr& object) const {
  KS_TRY(Value hub, scope_->store->Decode(arena, object));
  Value row = Value::Map(arena);
  Value cells = Value::List(arena, scope_->columns.size());
  const registry::Strategy& strategy = scope_->store->strategy();
  if (strategy.table_row != nullptr) {
    strategy.table_row(arena, clock_, hub, cells);
  } else {
    cells.Append(arena, hub.Get("metadata", "name"));
    cells.Append(arena, hub.Get("metadata", "creationTimestamp"));
  }
  row.Set(arena, "cells", cells);
  if (scope_->kind.kind == "Pod" && scope_->kind.group.empty()) AddPodConditions(arena, hub, row);
  if (include_ == IncludeObject::kNone) {
    row.Set(arena, "object", Value::Raw("null"));
    return row;
  }
  std::string json;
  if (include_ == IncludeObject::kObject) {
    KS_TRY(const Value decoded, Decode(arena, object));
    codec::EncodeJSON(decoded, *scope_->type, json);
  } else {
    codec::EncodeJSON(PartialMetadata(arena, hub), *schema::FindType("meta/v1", "PartialObjectMetadata"), json);
  }
  row.Set(arena, "object", Value::Raw(arena.Copy(json)));
  return row;
}

void ObjectEncoder::AddPodConditions(base::Arena& arena, Value pod, Value row) {
  const std::string_view phase = pod.Get("status", "phase").as_string();
  if (phase != "Succeeded" && phase != "Failed") return;
  Value condition = Value::Map(arena);
  condition.Set(arena, "type", "Completed");
  condition.Set(arena, "status", "True");
  condition.Set(arena, "reason", phase);
  condition.Set(arena, "message", phase == "Succeeded" ? "The pod has completed successfully." : "The pod failed.");
  Value conditions = Value::List(arena);
  conditions.Append(arena, condition);
  row.Set(arena, "conditions", conditions);
}

meta::Result<Value> ObjectEncoder::TableOf(base::Arena& arena, std::span<const storage::ObjectPtr> objects,
                                           const ListMeta& list, bool columns) const {
  Value table = Value::Map(arena);
  table.Set(arena, "kind", "Table");
  table.Set(arena, "apiVersion", media_.transform_version == "v1beta1" ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1");
  Value metadata = Value::Map(arena);
  metadata.Set(arena, "resourceVersion", Value::String(arena, std::to_string(list.resource_version)));
  table.Set(arena, "metadata", metadata);
  if (columns) table.Set(arena, "columnDefinitions", ColumnsValue(arena, scope_->columns));
  Value rows = Value::List(arena, objects.size());
  for (const auto& object : objects) {
    KS_TRY(const Value row, TableRow(arena, object));
    rows.Append(arena, row);
  }
  table.Set(arena, "rows", rows);
  return table;
}

// A bookmark's table has one row for the empty object; its metadata carries the resourceVersion even where objects are
// not included.
Value ObjectEncoder::BookmarkTable(base::Arena& arena, Value object) const {
  Value table = Value::Map(arena);
  table.Set(arena, "kind", "Table");
  table.Set(arena, "apiVersion", media_.transform_version == "v1beta1" ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1");
  Value metadata = Value::Map(arena);
  metadata.Set(arena, "resourceVersion", object.Get("metadata", "resourceVersion"));
  table.Set(arena, "metadata", metadata);
  Value row = Value::Map(arena);
  Value cells = Value::List(arena, scope_->columns.size());
  const registry::Strategy& strategy = scope_->store->strategy();
  if (strategy.table_row != nullptr) {
    strategy.table_row(arena, clock_, object, cells);
  } else {
    cells.Append(arena, "");
    cells.Append(arena, Value());
  }
  row.Set(arena, "cells", cells);
  std::string json;
  codec::EncodeJSON(PartialMetadata(arena, object), *schema::FindType("meta/v1", "PartialObjectMetadata"), json);
  row.Set(arena, "object", Value::Raw(arena.Copy(json)));
  Value rows = Value::List(arena);
  rows.Append(arena, row);
  table.Set(arena, "rows", rows);
  return table;
}

}  // namespace keelson::endpoints
