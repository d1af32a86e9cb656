// The transformers that an EncryptionConfiguration asks for, one for each resource, replaced as a whole when the file
// changes. Thread safety: all members from any thread; Reload() by one caller at a time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/atomic_ref.h"
#include "base/outcome.h"
#include "base/random.h"
#include "base/ref.h"
#include "meta/group_version.h"
#include "storage/transform/encryption_config.h"
#include "storage/transformer.h"

namespace keelson::storage {

class EncryptionAtRest {
 public:
  struct Options {
    bool reload = false;  // --encryption-provider-config-automatic-reload
    base::Random* random = &base::Random::Real();
  };

  // `text` is the file of --encryption-provider-config.
  static Outcome<std::unique_ptr<EncryptionAtRest>, std::string> New(std::string_view text, Options options);
  ~EncryptionAtRest();

  // The transformer of a resource; follows reloads; lives as long as this. Resources that no rule names are stored as
  // they are.
  const Transformer& For(const meta::GroupResource& resource);

  // Takes over a changed file; false when it is the same. After an error everything stays as it was.
  Outcome<bool, std::string> Reload(std::string_view text);
  std::string hash() const;  // sha256:<hex> of the file in use

 private:
  struct Rules;
  class Following;
  explicit EncryptionAtRest(Options options);
  static Outcome<base::Ref<const Rules>, std::string> Build(std::string_view text, const Options& options);

  const Options options_;
  base::AtomicRef<const Rules> rules_;
  std::mutex mutex_;
  std::map<meta::GroupResource, std::unique_ptr<Transformer>> followers_;  // guarded
};

}  // namespace keelson::storage
