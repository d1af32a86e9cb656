// Compressed objects in memory: most of a CustomResourceDefinition is the prose of its schemas, which is needed only to
// serve or compile the definition, but is held for all of them all the time. The store has the plain
// bytes.
//
//   magic | resourceVersion, 8 bytes | size of the plain bytes, 4 bytes | zstd of them without resourceVersion
//
// Thread safety: functions and const members from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/arena.h"
#include "base/shared_bytes.h"
#include "storage/resource_codec.h"

namespace keelson::storage {

// Objects with fewer bytes are held as they are: they gain little, and a start with thousands of them would pay for it.
inline constexpr std::size_t kPackedBytesMin = 4 * 1024;

bool IsPacked(std::string_view held);
// The JSON of an object that is held packed, with its resourceVersion; any other bytes as they are. Empty when packed
// bytes are damaged.
base::SharedBytes Unpacked(const base::SharedBytes& held);
std::string_view Unpacked(base::Arena& arena, std::string_view held);  // the same, in `arena` where it is packed

// `inner` writes JSON in a schema's order and has no separate stored form.
std::unique_ptr<ResourceCodec> NewPackedCodec(std::unique_ptr<ResourceCodec> inner);

}  // namespace keelson::storage
