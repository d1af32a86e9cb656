// Envelope encryption with a KMS plugin (its client is storage/kms).
// v2: the server makes a seed, the plugin seals it once for each of its key ids, and every write derives its own key
// from the seed. v1: every write has its own key that the plugin seals. Reading calls the plugin only for seeds and
// keys that are not cached. Thread safety: all members from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "async/awaitable.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "base/random.h"
#include "storage/transform/encryption_config.h"
#include "storage/transform/metrics.h"
#include "storage/transformer.h"

namespace keelson::storage {

// Seals with a key derived from `seed` (32 bytes or more) and 32 random bytes:
// info(32) ‖ nonce(12) ‖ ciphertext ‖ tag(16), key = HKDF-Expand-SHA256(seed, info).
std::unique_ptr<Transformer> NewExtendedNonceGCMTransformer(std::string seed, base::Random& random);

struct KMSOptions {
  EncryptionProvider provider;  // of kind kKMS
  const base::Clock* clock = &base::Clock::Real();
  base::Random* random = &base::Random::Real();
  TransformMetrics* metrics = nullptr;  // may be null
};

// A provider's transformer (behind its prefix) and the health of its plugin.
class KMSProvider : public Transformer {
 public:
  static std::shared_ptr<KMSProvider> New(KMSOptions options);  // v1 or v2, as provider.api_version says

  // Probes the plugin's status; v2 also makes a new seed when the plugin has a new key. One at a time; concurrent
  // callers get the last result.
  virtual Awaitable<std::optional<std::string>> Probe() = 0;  // nullopt when healthy
  // Probe() when the last one is old: a minute, ten seconds when it failed; or, if health was requested since, 20 and 3
  // seconds.
  virtual Awaitable<void> ProbeWhenDue() = 0;
  // The error of the last health probe, empty when it succeeded; does not call the plugin. As upstream, the first call
  // after a probe has the provider's name in the error, later calls have the plugin's own error alone.
  virtual std::optional<std::string> Health() = 0;
};

}  // namespace keelson::storage
