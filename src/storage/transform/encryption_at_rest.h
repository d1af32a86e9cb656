// The transformers of an EncryptionConfiguration, one for each resource, replaced as a whole when the file
// changes. Thread safety: all members from any thread; Reload() and Poll() by one caller at a time each.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "base/atomic_ref.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "base/random.h"
#include "base/ref.h"
#include "meta/group_version.h"
#include "storage/transform/encryption_config.h"
#include "storage/transform/metrics.h"
#include "storage/transformer.h"

namespace keelson::storage {

class EncryptionAtRest {
 public:
  struct Options {
    std::string path;     // of the file, for errors
    bool reload = false;  // --encryption-provider-config-automatic-reload
    bool kms_v1 = false;  // the gate KMSv1
    base::Random* random = &base::Random::Real();
    const base::Clock* clock = &base::Clock::Real();
    TransformMetrics* metrics = nullptr;  // may be null; must outlive this
  };

  // `text` is the file of --encryption-provider-config. KMS plugins are called once; one that does not answer yet is
  // unhealthy, not an error.
  static Awaitable<Outcome<std::unique_ptr<EncryptionAtRest>, std::string>> New(std::string text, Options options);
  ~EncryptionAtRest();

  // The transformer of a resource; follows reloads; lives as long as this. Resources that no rule names are stored as
  // they are.
  const Transformer& For(const meta::GroupResource& resource);

  // Takes over a changed file once its KMS plugins are healthy; false when it is the same. After an error everything
  // stays as it was.
  Awaitable<Outcome<bool, std::string>> Reload(std::string text);
  std::string hash() const;  // sha256:<hex> of the file in use

  // Keeps in touch with the KMS plugins: call it about every second.
  Awaitable<void> Poll();
  // The names of the health checks: none, `kms-providers`, or `kms-provider-<i>` (KMS v1 alone, without reload).
  std::vector<std::string> HealthChecks() const;
  // The health error of provider `name`, "" if healthy. Does not call the plugins.
  std::string Health(std::string_view name) const;

 private:
  struct Rules;
  class Following;
  explicit EncryptionAtRest(Options options);
  static Awaitable<Outcome<base::Ref<const Rules>, std::string>> Build(std::string text, const Options& options);
  static Awaitable<std::optional<std::string>> WaitUntilHealthy(base::Ref<const Rules> rules);

  const Options options_;
  base::AtomicRef<const Rules> rules_;
  std::mutex mutex_;
  std::map<meta::GroupResource, std::unique_ptr<Transformer>> followers_;  // guarded
};

}  // namespace keelson::storage
