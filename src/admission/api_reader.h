// The API as policies and configurations need it beyond single objects: kinds by name, objects as clients see them, and
// the authorizer's word. Thread safety: all members from any I/O thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "admission/attributes.h"
#include "request/user.h"

namespace keelson::admission {

// A question to the authorizer.
struct AccessReview {
  request::SharedUser user;
  bool resource_request = true;
  std::string verb, path, group, version = "*", resource, subresource, name_space, name;
  std::string field_selector, label_selector;
};
struct AccessDecision {
  bool allowed = false;
  bool denied = false;  // neither: no opinion
  std::string reason, error;
};

class APIReader {
 public:
  struct Kind {
    std::string resource;
    bool namespaced = true;
  };

  virtual ~APIReader() = default;
  // A kind of the API by name; nothing when it is not served.
  virtual std::optional<Kind> FindKind(const meta::GroupVersionKind& kind) = 0;
  // Objects as documents of that version, as clients see them. From the cache.
  virtual Task<Value> GetDocument(base::Arena& arena, meta::GroupVersionKind kind, std::string name_space,
                                  std::string name) = 0;
  virtual Task<std::vector<Value>> ListDocuments(base::Arena& arena, meta::GroupVersionKind kind,
                                                 std::string name_space) = 0;
  virtual Awaitable<AccessDecision> Authorize(AccessReview review) = 0;
  // Creates an object as the server itself.
  virtual Task<void> Create(std::string group, std::string resource, std::string name_space, std::string json) = 0;
};

// Versioned views that can also do what mutating policies need: ObjectInterfaces of served requests are one of these.
class ConfigurationMerger {
 public:
  virtual ~ConfigurationMerger() = default;
  // As ObjectInterfaces::FromDocument, but fields that a built-in kind does not have are an error (500).
  virtual Task<Value> FromDocumentStrictly(base::Arena& arena, Value document, meta::GroupVersionKind kind) const = 0;
  // `document` with an apply configuration merged in by the kind's schema. The error is upstream's text.
  virtual Outcome<Value, std::string> MergeConfiguration(base::Arena& arena, Value document, Value configuration,
                                                         const meta::GroupVersionKind& kind) const = 0;
};

}  // namespace keelson::admission
