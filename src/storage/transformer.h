// Transforms values between the encoded object and the store: identity or encryption (upstream's value.Transformer).
// The full etcd key is authenticated with it. Thread safety: all members from any thread.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "async/awaitable.h"
#include "base/outcome.h"
#include "base/shared_bytes.h"
#include "telemetry/span.h"

namespace keelson::storage {

// Context of a value (upstream's value.Context and the request's context).
struct TransformContext {
  template <std::convertible_to<std::string_view> Key>
  explicit(false) TransformContext(const Key& key, telemetry::Span span = {}) : key(key), span(span) {}

  std::string_view key;  // the full etcd key; must outlive the call
  telemetry::Span span;  // of the request; may be null
};

class Transformer {
 public:
  struct Plain {
    base::SharedBytes data;
    bool stale =
        false;  // not written with the key a writer would use: an update that changes nothing is written all the same
  };

  virtual ~Transformer() = default;
  virtual Outcome<Plain, std::string> TransformFromStorage(const base::SharedBytes& data,
                                                           const TransformContext& context) const = 0;
  virtual Outcome<base::SharedBytes, std::string> TransformToStorage(const base::SharedBytes& data,
                                                                     const TransformContext& context) const = 0;

  // True when `data` cannot be read before a key was fetched from elsewhere: await Prepare() first.
  virtual bool NeedsPrepare(const base::SharedBytes& data) const {
    (void)data;
    return false;
  }
  virtual Awaitable<Outcome<void, std::string>> Prepare(base::SharedBytes data) const;

  // True if every write calls a plugin: await AwaitToStorage() instead of TransformToStorage().
  virtual bool WritesElsewhere() const { return false; }
  virtual Awaitable<Outcome<base::SharedBytes, std::string>> AwaitToStorage(base::SharedBytes data,
                                                                            std::string key) const;

  // Whether a provider has encrypted the stored bytes.
  static bool IsEncrypted(const base::SharedBytes& data) { return data.view().starts_with("k8s:enc:"); }
  // Plain bytes; refuses to read what is encrypted.
  static const Transformer& Identity();
};

}  // namespace keelson::storage
