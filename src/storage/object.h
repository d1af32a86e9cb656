// One stored object at one revision: immutable, shared by the cache, every LIST and every watcher.
// The stored form (the k8s protobuf envelope for built-ins, JSON for custom resources) is there from the start, with its
// resourceVersion in place; other encodings are made on first use and shared.
// Thread safety: all const members from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "base/shared_bytes.h"

namespace keelson::storage {

using base::SharedBytes;

// What selectors and indexes read, taken out of the bytes once.
struct Attributes {
  std::string name;
  std::string name_space;
  std::vector<std::pair<std::string, std::string>> labels;  // by key
  std::vector<std::pair<std::string_view, std::string>> fields;  // selectable field (a table's text) and its value
};

class Object : public base::RefCounted {
 public:
  static constexpr std::size_t kFormsMax = 4;

  Object(std::string key, std::uint64_t resource_version, SharedBytes stored, Attributes attributes);
  ~Object();

  std::string_view key() const { return key_; }
  std::uint64_t resource_version() const { return resource_version_; }
  const SharedBytes& stored() const { return stored_; }
  const Attributes& attributes() const { return attributes_; }

  // An encoded form by a small index that the encoder owns; empty when it was not made (or was dropped).
  SharedBytes GetForm(std::size_t form) const;
  void SetForm(std::size_t form, SharedBytes bytes) const;
  std::size_t DropForms() const;  // returns the bytes given back

 private:
  std::string key_;
  std::uint64_t resource_version_;
  SharedBytes stored_;
  Attributes attributes_;
  mutable std::atomic<bool> forms_lock_{false};
  mutable SharedBytes forms_[kFormsMax];
};

using ObjectPtr = base::Ref<const Object>;

}  // namespace keelson::storage
