// Reading and changing stored protobuf without decoding it: the envelope's object, its metadata, and chosen fields.
// Functions of their arguments; whatever bytes come, they fail rather than read beyond them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_bytes.h"

namespace keelson::storage {

// Numbers in metav1.ObjectMeta; metadata is field 1 of every stored kind.
namespace object_meta {
constexpr std::uint32_t kName = 1, kNamespace = 3, kUID = 5, kResourceVersion = 6, kLabels = 11;
}

// The object's message inside the envelope; empty view and false when the bytes are none.
bool FindRaw(std::string_view stored, std::string_view& raw);
// The last field `number` of a message, as bytes; nullopt when there is none. False through `valid` when the message is
// broken.
std::optional<std::string_view> FindBytes(std::string_view message, std::uint32_t number, bool& valid);

// The same object with metadata.resourceVersion set to `text` ("" as in storage); nullopt when the bytes are broken.
std::optional<base::SharedBytes> SetProtoResourceVersion(std::string_view stored, std::string_view text);

// Field paths that a scan looks for: a tree of field numbers.
struct ProtoPaths {
  struct Node {
    std::uint32_t number = 0;
    int leaf = -1;  // the argument of Visit; -1: an inner node
    std::vector<Node> children;
  };
  std::vector<Node> roots;
  void Add(const std::vector<std::uint32_t>& numbers, int leaf);
};
struct ProtoValue {
  std::uint64_t number = 0;  // of a varint
  std::string_view bytes;    // of a string or message
};
// Calls visit(leaf, value) for every occurrence, in order of the bytes. False when the message is broken.
bool ScanProto(std::string_view message, const std::vector<ProtoPaths::Node>& paths,
               const std::function<void(int, const ProtoValue&)>& visit);

}  // namespace keelson::storage
