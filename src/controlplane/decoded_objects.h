// Decoded forms of small objects that admission reads for every write: namespaces, service accounts, priority classes.
// A form is found by the object itself, which never changes: a new revision is another object, and finds nothing.
// Thread safety: all members from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "base/arena.h"
#include "base/outcome.h"
#include "object/value.h"
#include "storage/object.h"
#include "storage/resource_codec.h"

namespace keelson::controlplane {

class DecodedObjects {
 public:
  static constexpr std::size_t kObjectsMax = 64;        // each has one slot
  static constexpr std::size_t kStoredBytesMax = 4096;  // larger ones are not kept

  // `object` decoded into `arena`: the caller may change the result. REQUIRES: an object always comes with the same codec.
  Outcome<Value, std::string> Decode(base::Arena& arena, const storage::ResourceCodec& codec,
                                     const storage::ObjectPtr& object);

  std::size_t size() const;  // forms that are kept

 private:
  struct Decoded {
    storage::ObjectPtr object;
    base::Arena arena;
    Value value;
  };
  struct Slot {
    const storage::Object* seen = nullptr;  // the last one that was looked up; only compared
    std::shared_ptr<const Decoded> decoded;
  };
  std::shared_ptr<const Decoded> Find(const storage::ObjectPtr& object, bool* keep);

  mutable std::mutex mutex_;
  std::array<Slot, kObjectsMax> slots_;
};

}  // namespace keelson::controlplane
