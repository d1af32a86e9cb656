// Objects of one scope as bytes for clients. The stored form is handed out as it is where it fits; JSON is made of it
// once and shared. Thread safety: const members from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/clock.h"
#include "base/shared_bytes.h"
#include "endpoints/negotiation.h"
#include "endpoints/scope.h"
#include "meta/status.h"
#include "object/value.h"
#include "storage/interface.h"

namespace keelson::endpoints {

using base::SharedBytes;

// `includeObject` of a Table.
enum class IncludeObject : std::uint8_t { kMetadata, kObject, kNone };

class ObjectEncoder {
 public:
  ObjectEncoder(ScopePtr scope, MediaTypeOptions media, IncludeObject include = IncludeObject::kMetadata,
                const base::Clock& clock = base::Clock::Real());

  std::string_view content_type() const { return content_type_; }  // of a single answer
  std::string_view stream_content_type() const;                    // of a watch

  // One object as the whole answer (JSON with its newline, the protobuf envelope, ...).
  meta::Result<SharedBytes> Whole(const storage::ObjectPtr& object) const;

  // A list: everything before the items, each item, everything between and after. The protobuf frame has lengths in it,
  // so the sizes of all items are needed for the head: `items_bytes` is the sum of Item().size() plus ItemOverhead()
  // each.
  struct ListFrame {
    SharedBytes head;
    SharedBytes separator;
    SharedBytes tail;
  };
  struct ListMeta {
    std::uint64_t resource_version = 0;
    std::string continue_token;
    std::optional<std::int64_t> remaining_item_count;
  };
  bool streams_lists() const { return media_.format == Format::kJSON && !media_.pretty; }
  meta::Result<SharedBytes> WholeList(const storage::ObjectList& list) const;  // for formats that are not streamed
  ListFrame Frame(const ListMeta& list, bool empty) const;
  meta::Result<SharedBytes> Item(const storage::ObjectPtr& object) const;  // JSON, as it stands in a list

  // One event of a watch, as the slices of its frame; `first` is the stream's first event (a Table then has its
  // columns).
  meta::Result<void> Event(const storage::WatchEvent& event, bool first, std::vector<SharedBytes>& out) const;

  const MediaTypeOptions& media() const { return media_; }

 private:
  meta::Result<Value> Decode(base::Arena& arena,
                             const storage::ObjectPtr& object) const;  // in the served version, with its kind
  meta::Result<SharedBytes> JSONItem(const storage::ObjectPtr& object) const;
  meta::Result<Value> TableOf(base::Arena& arena, std::span<const storage::ObjectPtr> objects, const ListMeta& list,
                              bool columns) const;
  meta::Result<Value> TableRow(base::Arena& arena, const storage::ObjectPtr& object) const;
  static void AddPodConditions(base::Arena& arena, Value pod, Value row);
  Value BookmarkTable(base::Arena& arena, Value object) const;
  std::string columns_json() const;
  meta::Result<SharedBytes> ProtoList(const storage::ObjectList& list, const ListMeta& list_meta) const;
  Value PartialMetadata(base::Arena& arena, Value hub) const;  // of the object in its hub version
  meta::Result<SharedBytes> EncodeValue(base::Arena& arena, Value object, const schema::Struct* type) const;
  meta::Result<Value> Transformed(base::Arena& arena, const storage::ObjectPtr& object) const;
  meta::Result<void> AppendEvent(std::string_view type, SharedBytes object, std::vector<SharedBytes>& out) const;
  meta::Result<SharedBytes> BookmarkObject(const storage::WatchEvent& event) const;

  ScopePtr scope_;
  MediaTypeOptions media_;
  IncludeObject include_;
  const base::Clock& clock_;
  std::string content_type_;
  std::string api_version_;
  std::string json_prefix_;  // {"kind":"Pod","apiVersion":"v1",
};

}  // namespace keelson::endpoints
