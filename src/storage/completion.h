// A codec that completes objects when they are read (ResourceCodec::completes_on_read) may also implement this, so that
// what is about to be written need not be decoded again just to see that it is complete. Thread safety: const members
// from any thread.
#pragma once

#include "object/value.h"

namespace keelson::storage {

class Completion {
 public:
  virtual ~Completion() = default;
  // True if Normalize() would leave what Encode() writes for the object as it is. False: ask Normalize().
  virtual bool IsComplete(const Value& object) const = 0;
};

}  // namespace keelson::storage
