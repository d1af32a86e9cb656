// Several transformers, distinguished by the prefix of the stored bytes: `k8s:enc:aesgcm:v1:` for a provider, `key1:`
// for a key inside one. The first writes. A value that another one reads is stale: the next update rewrites it. Thread
// safety: const members from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/transformer.h"

namespace keelson::storage {

class PrefixTransformers final : public Transformer {
 public:
  struct Entry {
    std::string prefix;  // "": plain bytes
    std::shared_ptr<const Transformer> transformer;
  };
  explicit PrefixTransformers(std::vector<Entry> entries);  // REQUIRES: not empty

  Outcome<Plain, std::string> TransformFromStorage(const base::SharedBytes& data,
                                                   const TransformContext& context) const override;
  Outcome<base::SharedBytes, std::string> TransformToStorage(const base::SharedBytes& data,
                                                             const TransformContext& context) const override;
  bool NeedsPrepare(const base::SharedBytes& data) const override;
  Awaitable<Outcome<void, std::string>> Prepare(base::SharedBytes data) const override;
  bool WritesElsewhere() const override { return entries_[0].transformer->WritesElsewhere(); }
  Awaitable<Outcome<base::SharedBytes, std::string>> AwaitToStorage(base::SharedBytes data,
                                                                    std::string key) const override;

  // The prefix of the entry that reads `data`, and of the one that writes; null when none reads it.
  const std::string* PrefixOf(const base::SharedBytes& data) const;
  const std::string& writer_prefix() const { return entries_[0].prefix; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace keelson::storage
