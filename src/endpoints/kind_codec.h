// How the objects of one served version are read from requests, patched, and shown. Two implementations: the tables of
// built-in kinds (NewTableCodec) and untyped JSON by a structural schema (structural_codec.h), as upstream serves
// custom resources. Thread safety: const members from any thread. Values live in the arena given; objects are in the
// served version unless the name says hub.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "base/shared_bytes.h"
#include "endpoints/exchange.h"
#include "endpoints/negotiation.h"
#include "meta/status.h"
#include "object/value.h"
#include "storage/object.h"

namespace keelson::endpoints {

struct Scope;

class KindCodec {
 public:
  virtual ~KindCodec() = default;

  // A body of the scope's kind, defaulted; strict errors are reported as `field_validation` says.
  virtual meta::Result<Value> DecodeRequest(Exchange& exchange, const Scope& scope, Format format,
                                            std::string_view body, std::string_view field_validation) const = 0;
  virtual void ApplyDefaults(base::Arena& arena, const Scope& scope, Value object) const = 0;
  virtual Value ToHub(base::Arena& arena, const Scope& scope, Value object) const = 0;
  virtual Value FromHub(base::Arena& arena, const Scope& scope, Value object) const = 0;

  // Patches apply to documents: the object as untyped JSON, and back. The error of Read is the text for the client.
  virtual meta::Result<Value> ToDocument(base::Arena& arena, const Scope& scope, Value object) const = 0;
  struct Document {
    Value object;  // without defaults
    std::vector<std::string> strict_errors;
  };
  enum class Source : std::uint8_t { kPatch, kStrategicMerge, kApply };
  virtual Outcome<Document, std::string> FromDocument(base::Arena& arena, const Scope& scope, Value document,
                                                      Source source, bool strict) const = 0;
  virtual bool strategic_merge() const = 0;  // false: 415 for strategic merge patches
  // The names in text order, type meta among them: untyped objects. False: kind and apiVersion first, then by table.
  virtual bool sorted() const = 0;
  // True: the words of upstream's UnstructuredObjectConverter instead of its typed one's.
  virtual bool custom_resource() const = 0;

  // Compact JSON with kind and apiVersion, without a newline.
  virtual void EncodeJSON(Value object, const Scope& scope, std::string& out) const = 0;
};

using KindCodecPtr = std::shared_ptr<const KindCodec>;

// Of the kinds that have a table (scope.type).
KindCodecPtr TableCodec();

}  // namespace keelson::endpoints
