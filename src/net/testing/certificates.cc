#include "net/testing/certificates.h"

#include <atomic>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "net/address.h"

namespace keelson::net::testing {
namespace {

constexpr long kLifeSeconds = 3600;
constexpr long kBackdateSeconds = 60;

std::string Pem(const auto& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* NewCertificate(const std::string& common_name, const std::vector<std::string>& organizations, EVP_PKEY* key) {
  static std::atomic<long> serial{1};
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -kBackdateSeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kLifeSeconds);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  for (const auto& organization : organizations) {
    X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(organization.c_str()),
                               -1, -1, 0);
  }
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                             -1, 0);
  return certificate;
}

}  // namespace

struct Authority::Impl {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  std::string pem;
};

Authority::Authority(const std::string& common_name) : impl_(std::make_unique<Impl>()) {
  impl_->key = EVP_EC_gen("P-256");
  impl_->certificate = NewCertificate(common_name, {}, impl_->key);
  X509_set_issuer_name(impl_->certificate, X509_get_subject_name(impl_->certificate));
  AddExtension(impl_->certificate, impl_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(impl_->certificate, impl_->certificate, NID_key_usage, "critical,keyCertSign,digitalSignature");
  AddExtension(impl_->certificate, impl_->certificate, NID_subject_key_identifier, "hash");
  X509_sign(impl_->certificate, impl_->key, EVP_sha256());
  impl_->pem = Pem([&](BIO* bio) { PEM_write_bio_X509(bio, impl_->certificate); });
}

Authority::~Authority() {
  X509_free(impl_->certificate);
  EVP_PKEY_free(impl_->key);
}

const std::string& Authority::cert_pem() const { return impl_->pem; }

KeyPair Authority::Issue(const std::string& common_name, const std::vector<std::string>& names,
                         const std::vector<std::string>& organizations) const {
  return IssueWith(common_name, names, organizations, -kBackdateSeconds, kLifeSeconds);
}

KeyPair Authority::IssueUntil(const std::string& common_name, const std::vector<std::string>& names,
                              long seconds) const {
  return IssueWith(common_name, names, {}, -kLifeSeconds, seconds);
}

KeyPair Authority::IssueWith(const std::string& common_name, const std::vector<std::string>& names,
                             const std::vector<std::string>& organizations, long from, long until) const {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = NewCertificate(common_name, organizations, key);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until);
  X509_set_issuer_name(certificate, X509_get_subject_name(impl_->certificate));
  AddExtension(certificate, impl_->certificate, NID_ext_key_usage, "serverAuth,clientAuth");
  std::string alternatives;
  for (const auto& name : names) {
    if (!alternatives.empty()) alternatives += ',';
    alternatives += (IsIPAddress(name) ? "IP:" : "DNS:") + name;
  }
  if (!alternatives.empty()) AddExtension(certificate, impl_->certificate, NID_subject_alt_name, alternatives);
  X509_sign(certificate, impl_->key, EVP_sha256());
  KeyPair pair;
  pair.cert_pem = Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
  pair.key_pem = Pem([&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pair;
}

}  // namespace keelson::net::testing
