#include "kv/etcd/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>

#include "base/check.h"

namespace keelson::kv::etcd {
namespace {

constexpr long kValidSeconds = 24 * 60 * 60;

EVP_PKEY* MakeKey() { return EVP_EC_gen("P-256"); }

void AddExtension(X509* certificate, X509* issuer, int id, const char* text) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, text);
  KS_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// `issuer` null: signed by itself.
X509* MakeCertificate(const std::string& name, long serial, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kValidSeconds);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate, issuer != nullptr ? X509_get_subject_name(issuer) : subject);
  X509_set_pubkey(certificate, key);
  X509* signer = issuer != nullptr ? issuer : certificate;
  AddExtension(certificate, signer, NID_basic_constraints,
               issuer != nullptr ? "critical,CA:FALSE" : "critical,CA:TRUE");
  if (issuer != nullptr) {
    AddExtension(certificate, signer, NID_ext_key_usage, "serverAuth,clientAuth");
    AddExtension(certificate, signer, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  }
  KS_CHECK(X509_sign(certificate, issuer_key, EVP_sha256()) != 0);
  return certificate;
}

template <class Write>
void WriteFile(const std::string& path, Write write) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  KS_CHECK(file != nullptr);
  KS_CHECK(write(file) == 1);
  std::fclose(file);
}

}  // namespace

struct TestCertificates::Impl {
  EVP_PKEY* key = MakeKey();
  X509* certificate = MakeCertificate("test-ca", 1, key, nullptr, key);
  long serial = 1;
  ~Impl() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

TestCertificates::TestCertificates(std::string dir) : dir_(std::move(dir)), impl_(std::make_unique<Impl>()) {
  WriteFile(ca_file(), [&](std::FILE* file) { return PEM_write_X509(file, impl_->certificate); });
}

TestCertificates::~TestCertificates() = default;

void TestCertificates::Issue(const std::string& name) {
  EVP_PKEY* key = MakeKey();
  X509* certificate = MakeCertificate(name, ++impl_->serial, key, impl_->certificate, impl_->key);
  WriteFile(cert_file(name), [&](std::FILE* file) { return PEM_write_X509(file, certificate); });
  WriteFile(key_file(name),
            [&](std::FILE* file) { return PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr); });
  X509_free(certificate);
  EVP_PKEY_free(key);
}

}  // namespace keelson::kv::etcd
