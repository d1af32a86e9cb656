// Objects of one scope as bytes for clients. The stored form is handed out as it is where it fits; JSON is made of it
// once and shared. Thread safety: const members from any thread.
#pragma once

#include <memory>
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

  // Whether an encoding that had to be made is kept with the object for the next reader.
  enum class Keep : std::uint8_t { kYes, kNo };
  // One object as the whole answer (JSON with its newline, the protobuf envelope, ...).
  meta::Result<SharedBytes> Whole(const storage::ObjectPtr& object, Keep keep = Keep::kYes) const;

  // A list that is sent as it is made: everything before the items, each item, everything after.
  struct ListFrame {
    SharedBytes head;
    SharedBytes tail;
  };
  struct ListMeta {
    std::uint64_t resource_version = 0;
    std::string continue_token;
    std::optional<std::int64_t> remaining_item_count;
    std::string shard_selector;  // "": no shardInfo
  };
  // Null when this format, or one of these objects, can only be encoded as a whole.
  std::optional<ListFrame> Frame(const storage::ObjectList& list) const;
  // Appends one item of a framed list to `out`; its bytes.
  meta::Result<std::size_t> Item(const storage::ObjectPtr& object, bool first, std::vector<SharedBytes>& out) const;
  meta::Result<SharedBytes> WholeList(const storage::ObjectList& list) const;

  // One event of a watch, as the slices of its frame; `first` is the stream's first event (a Table then has its
  // columns).
  meta::Result<void> Event(const storage::WatchEvent& event, bool first, std::vector<SharedBytes>& out) const;

  const MediaTypeOptions& media() const { return media_; }

  // An encoder for a watch. Watches that are opened on one thread with the same wishes share one; it costs as much as
  // everything else that an idle watch needs here.
  static std::shared_ptr<const ObjectEncoder> ForWatch(const ScopePtr& scope, const MediaTypeOptions& media,
                                                       IncludeObject include);

 private:
  meta::Result<Value> Decode(base::Arena& arena,
                             const storage::ObjectPtr& object) const;  // in the served version, with its kind
  meta::Result<SharedBytes> JSONItem(const storage::ObjectPtr& object, Keep keep = Keep::kYes) const;
  meta::Result<SharedBytes> SortedItem(const storage::ObjectPtr& object) const;
  meta::Result<SharedBytes> MetadataJSON(const storage::ObjectPtr& object, Keep keep = Keep::kYes) const;
  meta::Result<void> MetadataProto(const storage::ObjectPtr& object, std::string& message) const;
  meta::Result<SharedBytes> JSONPiece(const storage::ObjectPtr& object) const;  // as in a list of this form
  ListFrame JSONFrame(const ListMeta& list, bool empty) const;
  ListMeta MetaOf(const storage::ObjectList& list) const;
  ListFrame SortedFrame(const ListMeta& list) const;
  bool laid_out() const;  // YAML, or JSON with line breaks
  std::optional<ListFrame> LaidOutFrame(const storage::ObjectList& list) const;
  bool HasControlCharacters(const storage::ObjectPtr& object) const;               // that YAML cannot hold
  meta::Result<SharedBytes> LaidOutPiece(const storage::ObjectPtr& object) const;  // as in a list
  ListFrame CBORFrame(const storage::ObjectList& list) const;
  meta::Result<SharedBytes> CBORPiece(const storage::ObjectPtr& object) const;  // as in a list
  std::optional<ListFrame> ProtoFrame(const storage::ObjectList& list) const;
  meta::Result<SharedBytes> ProtoList(const storage::ObjectList& list, const ListMeta& list_meta) const;

  // The Table form (table.cc).
  bool HasDefaultColumns() const;
  std::string TableHead(std::string_view metadata, bool columns) const;  // up to its rows
  meta::Result<void> AppendRow(const storage::ObjectPtr& object, std::string& out) const;
  meta::Result<SharedBytes> RowCells(const storage::ObjectPtr& object) const;
  std::string CellsJSON(base::Arena& arena, Value hub, const base::Clock& clock) const;
  meta::Result<std::string> TableJSON(const storage::ObjectPtr& object, bool columns) const;
  std::string BookmarkTable(base::Arena& arena, Value object) const;

  Value PartialMetadata(base::Arena& arena, Value hub) const;  // of the object in its hub version
  meta::Result<SharedBytes> EncodeValue(base::Arena& arena, Value object, const schema::Struct* type) const;
  meta::Result<SharedBytes> FinishJSON(base::Arena& arena,
                                       std::string json) const;  // converts compact JSON to the negotiated format
  meta::Result<void> AppendEvent(std::string_view type, SharedBytes object, std::vector<SharedBytes>& out) const;
  meta::Result<SharedBytes> BookmarkObject(const storage::WatchEvent& event) const;

  ScopePtr scope_;
  MediaTypeOptions media_;
  IncludeObject include_;
  const base::Clock& clock_;
  std::string_view content_type_;
  std::string api_version_;
  std::string sorted_prefix_;  // how sorted JSON of this version begins
  std::string json_prefix_;    // {"kind":"Pod","apiVersion":"v1", or just the brace where items have their type meta
};

}  // namespace keelson::endpoints
