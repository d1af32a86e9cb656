// The envelope of a KMS v2 provider: the sealed data, and what the plugin needs to give the key back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::storage::kms {

enum class DEKSourceType : std::int32_t {
  kAESGCMKey = 0,                   // the data key itself
  kHKDFSHA256XNonceAESGCMSeed = 1,  // a seed from which each write derives its key
};

struct EncryptedObject {
  std::string encrypted_data;
  std::string key_id;
  std::string encrypted_dek_source;
  std::map<std::string, std::string> annotations;
  DEKSourceType type = DEKSourceType::kAESGCMKey;
};

// The validation error, in upstream's words; "" if the object may be stored. `with_data`: it must have encrypted data.
std::string ValidateEncryptedObject(const EncryptedObject& object, bool with_data = true);
std::string ValidateKeyID(std::string_view key_id);

std::string EncodeEncryptedObject(const EncryptedObject& object);
// Decodes and validates.
Outcome<EncryptedObject, std::string> DecodeEncryptedObject(std::string_view bytes);

}  // namespace keelson::storage::kms
