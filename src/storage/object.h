// One stored object at one revision: immutable, shared by the cache, every LIST and every watcher.
// The stored form (the k8s protobuf envelope for built-ins, JSON for custom resources) is there from the start, with
// its resourceVersion in place; other encodings are made on first use, shared, and dropped when memory is short
// (encoded_forms.h). Thread safety: all const members from any thread.
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
class EncodedForms;  // storage/encoded_forms.h

// Fields that selectors and indexes read, extracted from the bytes once. The texts are views: into the stored bytes,
// into `extra` (texts that differ from the bytes: numbers, booleans, escaped JSON), or into constant tables.
struct Attributes {
  std::string_view name;
  std::string_view name_space;
  std::vector<std::pair<std::string_view, std::string_view>> labels;  // by key
  std::vector<std::pair<std::string_view, std::string_view>>
      fields;  // selectable field and its value; empty values left out
  SharedBytes extra;
  std::string_view message;  // of objects stored as protobuf: the object itself, without its envelope

  std::string_view Field(std::string_view name) const;  // "" when it is not there
};

class Object : public base::RefCounted {
 public:
  static constexpr std::size_t kFormsMax = 4;

  // `attributes` must have been read from `stored`. `forms` accounts for the encoded forms and must outlive this; null:
  // not accounted. `stale`: the stored bytes differ from what a write would store (older version, other
  // encoding, retired key), so that an update is written even if it changes nothing.
  Object(std::string key, std::uint64_t resource_version, SharedBytes stored, Attributes attributes,
         EncodedForms* forms = nullptr, bool stale = false);
  ~Object();

  std::string_view key() const { return key_; }  // relative: /pods/default/web
  std::uint64_t resource_version() const { return resource_version_; }
  const SharedBytes& stored() const { return stored_; }
  const Attributes& attributes() const { return attributes_; }
  bool stale() const { return stale_; }

  // An encoded form by a small index that the encoder owns; empty when it was not made (or was dropped).
  SharedBytes GetForm(std::size_t form) const;
  void SetForm(std::size_t form, SharedBytes bytes) const;

  std::size_t MemoryBytes() const;  // without encoded forms

 private:
  friend class EncodedForms;
  struct Forms;

  const std::string key_;
  const std::uint64_t resource_version_;
  const SharedBytes stored_;
  const Attributes attributes_;
  EncodedForms* const budget_;
  mutable std::atomic<Forms*> forms_{nullptr};  // made with the first form; lives as long as the object
  const bool stale_;
};

using ObjectPtr = base::Ref<const Object>;

}  // namespace keelson::storage
