// The ciphers of encryption at rest, in the layouts that kube-apiserver stores (storage/transform/README.md).
// Thread safety: const members from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/random.h"
#include "storage/transformer.h"

namespace keelson::storage {

// `key` is 16, 24 or 32 bytes. nonce(12) ‖ ciphertext ‖ tag(16), authenticated with the etcd key.
std::unique_ptr<Transformer> NewAESGCMTransformer(std::string key, base::Random& random);
// `key` is 16, 24 or 32 bytes. IV(16) ‖ PKCS#7 padded CBC; not authenticated, for old data.
std::unique_ptr<Transformer> NewAESCBCTransformer(std::string key, base::Random& random);
// `key` is 32 bytes. nonce(24) ‖ XSalsa20-Poly1305 box.
std::unique_ptr<Transformer> NewSecretboxTransformer(std::string key, base::Random& random);

}  // namespace keelson::storage
