#include "storage/kms/encrypted_object.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/strings.h"
#include "storage/kms/stored.pb.h"

namespace keelson::storage::kms {
namespace {

constexpr std::size_t kKeyIDMax = 1024;
constexpr std::size_t kDEKSourceMax = 1024;
constexpr std::size_t kAnnotationsMax = 32 * 1024;
constexpr std::size_t kDomainMax = 253;
constexpr std::size_t kLabelMax = 63;

// At least two labels of lower-case letters, digits and inner hyphens.
bool IsFullyQualifiedDomainName(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > kDomainMax) return false;
  const auto labels = base::Split(name, '.');
  if (labels.size() < 2) return false;
  for (const std::string_view label : labels) {
    if (label.empty() || label.size() > kLabelMax || label.front() == '-' || label.back() == '-') return false;
    for (const char c : label) {
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) return false;
    }
  }
  return true;
}

}  // namespace

std::string ValidateKeyID(std::string_view key_id) {
  if (key_id.empty()) return "keyID is empty";
  if (key_id.size() > kKeyIDMax) {
    return "keyID is " + std::to_string(key_id.size()) + " bytes, which exceeds the max size of " +
           std::to_string(kKeyIDMax);
  }
  return "";
}

std::string ValidateEncryptedObject(const EncryptedObject& object, bool with_data) {
  if (object.type != DEKSourceType::kAESGCMKey && object.type != DEKSourceType::kHKDFSHA256XNonceAESGCMSeed) {
    return "unknown encryptedDEKSourceType: " + std::to_string(static_cast<std::int32_t>(object.type));
  }
  if (with_data && object.encrypted_data.empty()) return "encrypted data is empty";
  const std::size_t size = object.encrypted_dek_source.size();
  if (size == 0) return "failed to validate encrypted DEK source: encrypted DEK source is empty";
  if (size > kDEKSourceMax) {
    return "failed to validate encrypted DEK source: encrypted DEK source is " + std::to_string(size) +
           " bytes, which exceeds the max size of " + std::to_string(kDEKSourceMax);
  }
  if (std::string wrong = ValidateKeyID(object.key_id); !wrong.empty()) return "failed to validate key id: " + wrong;
  std::size_t total = 0;
  for (const auto& [key, value] : object.annotations) {
    if (!IsFullyQualifiedDomainName(key)) {
      return "failed to validate annotations: annotations: Invalid value: " + base::GoQuote(key) +
             ": should be a domain with at least two segments separated by dots";
    }
    total += key.size() + value.size();
  }
  if (total > kAnnotationsMax) {
    return "failed to validate annotations: total size of annotations is " + std::to_string(total) +
           ", which exceeds the max size of " + std::to_string(kAnnotationsMax);
  }
  return "";
}

std::string EncodeEncryptedObject(const EncryptedObject& object) {
  keelson::kms::StoredObject stored;
  stored.set_encrypted_data(object.encrypted_data);
  stored.set_key_id(object.key_id);
  stored.set_encrypted_dek_source(object.encrypted_dek_source);
  for (const auto& [key, value] : object.annotations) (*stored.mutable_annotations())[key] = value;
  stored.set_encrypted_dek_source_type(static_cast<std::int32_t>(object.type));
  std::string out;
  out.reserve(stored.ByteSizeLong());
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    stored.SerializeToCodedStream(&coded);
  }
  return out;
}

Outcome<EncryptedObject, std::string> DecodeEncryptedObject(std::string_view bytes) {
  keelson::kms::StoredObject stored;
  if (!stored.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return std::string("proto: cannot parse invalid wire-format data");
  }
  EncryptedObject object{.encrypted_data = std::move(*stored.mutable_encrypted_data()),
                         .key_id = stored.key_id(),
                         .encrypted_dek_source = stored.encrypted_dek_source(),
                         .type = static_cast<DEKSourceType>(stored.encrypted_dek_source_type())};
  for (const auto& [key, value] : stored.annotations()) object.annotations[key] = value;
  if (std::string wrong = ValidateEncryptedObject(object); !wrong.empty()) return wrong;
  return object;
}

}  // namespace keelson::storage::kms
