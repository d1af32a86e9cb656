#include "app/x509.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>

#include "base/deleter.h"

namespace keelson::app::x509 {
namespace {

using base::Deleter;
using KeyHandle = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using CertHandle = std::unique_ptr<X509, Deleter<X509_free>>;
using BioHandle = std::unique_ptr<BIO, Deleter<BIO_free>>;
using ExtensionHandle = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;

BioHandle Reading(std::string_view text) {
  return BioHandle(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(size));
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionHandle extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool AddName(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

base::Clock::SystemTime ToTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return base::Clock::SystemTime{std::chrono::seconds{::timegm(&parts)}};
}

bool SetTime(ASN1_TIME* out, base::Clock::SystemTime time) {
  return ASN1_TIME_set(out, std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count()) !=
         nullptr;
}

// A positive random number of 63 bits, as Go's tools choose them.
bool SetSerial(X509* certificate) {
  std::array<unsigned char, 8> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
  std::uint64_t serial = 0;
  for (const unsigned char byte : bytes) serial = serial << 8 | byte;
  serial = (serial >> 1) | 1;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1;
}

std::string AlternativeNames(const Template& request) {
  std::string text;
  for (const std::string& name : request.dns_names) text += (text.empty() ? "DNS:" : ",DNS:") + name;
  for (const std::string& address : request.ip_addresses) text += (text.empty() ? "IP:" : ",IP:") + address;
  return text;
}

std::vector<std::string> NameEntries(const X509* certificate, int nid) {
  std::vector<std::string> values;
  const X509_NAME* const name = X509_get_subject_name(certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;) {
    const ASN1_STRING* const value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    values.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                        static_cast<std::size_t>(ASN1_STRING_length(value)));
  }
  return values;
}

}  // namespace

struct Key::Impl {
  KeyHandle handle;
};

struct Certificate::Impl {
  CertHandle handle;
};

std::string LastError() {
  const unsigned long code = ERR_get_error();
  const char* const reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "";
}

Key::Key(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Key::Key(Key&&) noexcept = default;
Key& Key::operator=(Key&&) noexcept = default;
Key::~Key() = default;

std::optional<Key> Key::Generate(KeyType type) {
  KeyHandle handle(type == KeyType::kEC ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048));
  if (handle == nullptr) return std::nullopt;
  return Key(std::make_unique<Impl>(std::move(handle)));
}

std::optional<Key> Key::Parse(std::string_view pem) {
  const BioHandle bio = Reading(pem);
  // An encrypted key must not prompt on the terminal.
  KeyHandle handle(PEM_read_bio_PrivateKey(bio.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
  ERR_clear_error();
  if (handle == nullptr) return std::nullopt;
  return Key(std::make_unique<Impl>(std::move(handle)));
}

std::string Key::PEM() const {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey_traditional(bio.get(), impl_->handle.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return Contents(bio.get());
}

std::string Key::PublicPEM() const {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(bio.get(), impl_->handle.get());
  return Contents(bio.get());
}

Certificate::Certificate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Certificate::Certificate(Certificate&&) noexcept = default;
Certificate& Certificate::operator=(Certificate&&) noexcept = default;
Certificate::~Certificate() = default;

std::optional<Certificate> Certificate::Parse(std::string_view pem) {
  const BioHandle bio = Reading(pem);
  CertHandle handle(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (handle == nullptr) return std::nullopt;
  return Certificate(std::make_unique<Impl>(std::move(handle)));
}

std::optional<Certificate> Certificate::Sign(const Template& request, const Key& key, const Certificate* issuer,
                                             const Key& issuer_key) {
  CertHandle made(X509_new());
  X509* const certificate = made.get();
  X509* const parent = issuer != nullptr ? issuer->impl_->handle.get() : certificate;
  if (certificate == nullptr || X509_set_version(certificate, X509_VERSION_3) != 1 || !SetSerial(certificate))
    return std::nullopt;
  if (!SetTime(X509_getm_notBefore(certificate), request.not_before) ||
      !SetTime(X509_getm_notAfter(certificate), request.not_after))
    return std::nullopt;
  X509_NAME* const name = X509_get_subject_name(certificate);
  for (const std::string& organization : request.organizations) {
    if (!AddName(name, "O", organization)) return std::nullopt;
  }
  if (!AddName(name, "CN", request.common_name) ||
      X509_set_issuer_name(certificate, X509_get_subject_name(parent)) != 1 ||
      X509_set_pubkey(certificate, key.impl().handle.get()) != 1) {
    return std::nullopt;
  }

  std::string usage = "critical,digitalSignature";
  if (request.key_encipherment) usage += ",keyEncipherment";
  if (request.is_authority) usage += ",keyCertSign";
  std::string extended = request.server_auth ? "serverAuth" : "";
  if (request.client_auth) extended += extended.empty() ? "clientAuth" : ",clientAuth";
  const std::string names = AlternativeNames(request);
  const bool extended_ok = AddExtension(certificate, parent, NID_basic_constraints,
                                        request.is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
                           AddExtension(certificate, parent, NID_key_usage, usage) &&
                           AddExtension(certificate, parent, NID_subject_key_identifier, "hash") &&
                           AddExtension(certificate, parent, NID_authority_key_identifier, "keyid:always") &&
                           (extended.empty() || AddExtension(certificate, parent, NID_ext_key_usage, extended)) &&
                           (names.empty() || AddExtension(certificate, parent, NID_subject_alt_name, names));
  if (!extended_ok || X509_sign(certificate, issuer_key.impl().handle.get(), EVP_sha256()) == 0) return std::nullopt;
  return Certificate(std::make_unique<Impl>(std::move(made)));
}

std::string Certificate::PEM() const {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), impl_->handle.get());
  return Contents(bio.get());
}

base::Clock::SystemTime Certificate::not_before() const { return ToTime(X509_get0_notBefore(impl_->handle.get())); }
base::Clock::SystemTime Certificate::not_after() const { return ToTime(X509_get0_notAfter(impl_->handle.get())); }

std::string Certificate::common_name() const {
  auto names = NameEntries(impl_->handle.get(), NID_commonName);
  return names.empty() ? "" : names.back();
}

std::vector<std::string> Certificate::organizations() const {
  return NameEntries(impl_->handle.get(), NID_organizationName);
}

bool Certificate::BelongsTo(const Key& key) const {
  const bool belongs = X509_check_private_key(impl_->handle.get(), key.impl().handle.get()) == 1;
  ERR_clear_error();
  return belongs;
}

bool Certificate::SignedBy(const Certificate& issuer) const {
  X509* const parent = issuer.impl_->handle.get();
  const bool is_signed = X509_check_issued(parent, impl_->handle.get()) == X509_V_OK &&
                         X509_verify(impl_->handle.get(), X509_get0_pubkey(parent)) == 1;
  ERR_clear_error();
  return is_signed;
}

bool Certificate::Covers(const std::vector<std::string>& dns_names,
                         const std::vector<std::string>& ip_addresses) const {
  X509* const certificate = impl_->handle.get();
  for (const std::string& name : dns_names) {
    if (X509_check_host(certificate, name.data(), name.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) != 1)
      return false;
  }
  for (const std::string& address : ip_addresses) {
    if (X509_check_ip_asc(certificate, address.c_str(), 0) != 1) return false;
  }
  return true;
}

}  // namespace keelson::app::x509
