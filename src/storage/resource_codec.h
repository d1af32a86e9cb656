// How one resource's objects are turned into stored bytes and back, and what selectors may read of them. One per served
// resource; made by the registry from the schema tables (or a CRD). Pure: no I/O. Thread safety: const members from any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/outcome.h"
#include "base/shared_bytes.h"
#include "meta/group_version.h"
#include "object/value.h"
#include "storage/object.h"

namespace keelson::storage {

class ResourceCodec {
 public:
  virtual ~ResourceCodec() = default;
  virtual const meta::GroupResource& resource() const = 0;
  // The object in its storage version as stored bytes, without resourceVersion and selfLink (PrepareObjectForStorage).
  virtual Outcome<base::SharedBytes, std::string> Encode(base::Arena& arena, Value object) const = 0;
  // Stored bytes (with or without a resourceVersion inside) as a Value in the hub version, defaults applied.
  virtual Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const = 0;
  // The bytes that Encode() would write for the object in `stored`, if they differ from it (another version or media
  // type); empty if `stored` is in the storage version and encoding already. The error is that of a corrupt
  // object.
  virtual Outcome<base::SharedBytes, std::string> Normalize(std::string_view stored) const = 0;
  // Objects of this kind are stored before their defaults are complete: what was written is read back through
  // Normalize(), and is stale where that changes it.
  virtual bool completes_on_read() const { return false; }
  // The same bytes with metadata.resourceVersion set, without decoding; 0 removes it. REQUIRES: normalized bytes.
  virtual Outcome<base::SharedBytes, std::string> WithResourceVersion(std::string_view stored,
                                                                      std::uint64_t resource_version) const = 0;
  // Labels, name, namespace and selectable fields, read from the bytes without building a Value. REQUIRES: normalized
  // bytes.
  virtual Outcome<Attributes, std::string> GetAttrs(const base::SharedBytes& stored) const = 0;
  virtual std::string UID(std::string_view stored) const = 0;
};

// `object` as it would be read back had it been written at `resource_version` (0: none), completed where the codec does
// that on reading. Nothing is stored.
Outcome<ObjectPtr, std::string> NewUnstoredObject(const ResourceCodec& codec, std::string key, Value object,
                                                  std::uint64_t resource_version);

}  // namespace keelson::storage
