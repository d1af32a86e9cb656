// Something that lives as long as the buffer of SharedBytes: bytes may refer to it.
#pragma once

#include <memory>

#include "base/shared_bytes.h"

namespace keelson::base {

struct Companion {
  virtual ~Companion() = default;
};

// Destroyed with the last copy or slice of `bytes`. REQUIRES: `bytes` as SharedBytes::Uninitialized() returned it, seen by
// nobody else yet; once.
void Attach(const SharedBytes& bytes, std::unique_ptr<Companion> companion);

}  // namespace keelson::base
