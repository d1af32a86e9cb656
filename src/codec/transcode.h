// The read path: work on encoded objects without building a Value. Stored bytes are trusted to be written by us or by
// kube-apiserver; broken bytes give an error, never undefined behaviour, but raw extensions are not checked again to be
// JSON. Thread safety: functions of their arguments; FieldReader is immutable after construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "codec/decode.h"
#include "schema/schema.h"

namespace keelson::codec {

// Appends a protobuf message as JSON, exactly as DecodeProto and EncodeJSON would write it. `kind` and `api_version`
// come first; empty ones are left out, as for the items of a list.
Outcome<void, DecodeError> TranscodeMessage(std::string_view message, const schema::Struct& type,
                                            std::string_view api_version, std::string_view kind, std::string& out);

// Fields of metadata, as views into the stored bytes.
struct MetadataView {
  std::string_view name;
  std::string_view name_space;
  std::string_view uid;
  std::string_view resource_version;
  std::int64_t generation = 0;
  bool deleting = false;  // has a deletionTimestamp
  std::int64_t deletion_seconds = 0;
  std::vector<std::pair<std::string_view, std::string_view>> labels;  // in stored order: by key
};
Outcome<MetadataView, DecodeError> ReadMetadata(std::string_view stored);
// The bytes of the ObjectMeta message.
Outcome<std::string_view, DecodeError> MetadataMessage(std::string_view stored);

// The metadata-only form of a stored object, as `meta.k8s.io/<version>` PartialObjectMetadata. Items of lists have no
// type meta.
Outcome<void, DecodeError> PartialMetadataToJSON(std::string_view stored, std::string_view api_version, bool type_meta,
                                                 std::string& out);

// Reads scalars by dotted path (spec.nodeName, status.phase, involvedObject.name) out of stored objects of one type.
class FieldReader {
 public:
  // Paths that lead to no scalar of `type` read as "".
  FieldReader(const schema::Struct& type, std::vector<std::string> paths);

  const std::vector<std::string>& paths() const { return paths_; }
  // Calls `found(index of path, text)` for every path. Texts are views into `stored`, or into a buffer that lasts for
  // the call only (numbers, booleans). Absent strings are "", absent numbers and booleans "0" and "false" unless they
  // are optional.
  template <class F>
  Outcome<void, DecodeError> Read(std::string_view stored, F found) const {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      char buffer[32];
      auto text = ReadOne(stored, i, buffer);
      if (!text.ok()) return text.error();
      found(i, *text);
    }
    return {};
  }

 private:
  struct Step {
    std::uint32_t number;
    bool pointer;
  };
  struct Path {
    std::vector<Step> steps;  // empty: leads nowhere
    schema::Kind kind = schema::Kind::kString;
  };
  Outcome<std::string_view, DecodeError> ReadOne(std::string_view stored, std::size_t path, char (&buffer)[32]) const;

  std::vector<std::string> paths_;
  std::vector<Path> compiled_;
};

}  // namespace keelson::codec
