// Parts of PublicKey that only this folder sees.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>

#include "auth/jose/keys.h"
#include "base/deleter.h"

namespace keelson::auth {

using KeyPtr = std::unique_ptr<EVP_PKEY, base::Deleter<EVP_PKEY_free>>;

// Null for a key that cannot verify tokens: another type or curve, or RSA below 1,024 bits. `id` "": made from the key.
std::shared_ptr<const PublicKey::Impl> DescribeKey(KeyPtr key, std::string id = {});

}  // namespace keelson::auth
