// Another encoding in the store than in memory (--storage-media-type, CBORServingAndStorage): a codec that also
// implements this turns one into the other. Thread safety: const members from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/outcome.h"
#include "base/shared_bytes.h"

namespace keelson::storage {

class StoredForm {
 public:
  virtual ~StoredForm() = default;
  // False: what is encoded is what is stored, and the other functions are not called.
  virtual bool differs() const = 0;
  // The bytes to store. REQUIRES: normalized bytes without a resourceVersion.
  virtual Outcome<base::SharedBytes, std::string> ToStorage(const base::SharedBytes& normalized) const = 0;
  // Whether what lies there is in the encoding and version in which it would be written. `normalized` is what the codec
  // has made of it, empty where that is `raw` itself.
  virtual bool IsCurrent(std::string_view raw, const base::SharedBytes& normalized) const = 0;
};

}  // namespace keelson::storage
