// Objects packed in memory: most of a CustomResourceDefinition is the prose of its schemas, which is needed only to
// serve or compile the definition, but is held for all of them all the time. The store has the plain
// bytes.
//
//   magic | resourceVersion | size of the plain bytes | begin and ID of the shared text | the rest, without resourceVersion
//
// Text and rest are compressed (zstd) in large objects.
// The shared text (storage/text_pool.h) is the spec: versions of a definition in the watch history differ in the rest.
// Thread safety: functions and const members from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/arena.h"
#include "base/shared_bytes.h"
#include "storage/resource_codec.h"

namespace keelson::storage {

// Objects with fewer bytes are held as they are.
inline constexpr std::size_t kPackedBytesMin = 2 * 1024;
// Smaller objects share their spec with their older versions but are not compressed: a start with thousands of them
// would pay for it.
inline constexpr std::size_t kCompressedBytesMin = 8 * 1024;

bool IsPacked(std::string_view held);
// The JSON of an object that is held packed, with its resourceVersion; any other bytes as they are. Empty when packed
// bytes are damaged.
base::SharedBytes Unpacked(const base::SharedBytes& held);
std::string_view Unpacked(base::Arena& arena, std::string_view held);  // the same, in `arena` where it is packed
// The same without writing the resourceVersion into the text, which has to be walked for it: `resource_version` is the
// one of a packed object, 0 where the text has its own.
struct UnversionedText {
  std::string_view json;
  std::uint64_t resource_version = 0;
};
UnversionedText UnpackedUnversioned(base::Arena& arena, std::string_view held);

// `inner` writes JSON in a schema's order, has no separate stored form, and its selectors read metadata only.
std::unique_ptr<ResourceCodec> NewPackedCodec(std::unique_ptr<ResourceCodec> inner);

}  // namespace keelson::storage
