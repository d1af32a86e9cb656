// OpenSSL's types for the .cc files of this folder only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/error.h"
#include "net/transport.h"

namespace keelson::net {

struct SSLDeleter {
  void operator()(SSL* p) const { SSL_free(p); }
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(BIO* p) const { BIO_free_all(p); }
};
using SSLPtr = std::unique_ptr<SSL, SSLDeleter>;
using SSLContextPtr = std::unique_ptr<SSL_CTX, SSLDeleter>;
using X509Ptr = std::unique_ptr<X509, SSLDeleter>;
using KeyPtr = std::unique_ptr<EVP_PKEY, SSLDeleter>;
using BIOPtr = std::unique_ptr<BIO, SSLDeleter>;

// Takes over `ssl`; `keep` is held until the handshake is done. With `server`, the accepting end.
std::unique_ptr<Transport> NewTLSTransport(int fd, SSLPtr ssl, bool server, std::shared_ptr<const void> keep);

// Whether the body of a ClientHello's psk_key_exchange_modes lists psk_dhe_ke; "": it was not sent.
bool OffersResumption(std::string_view psk_key_exchange_modes);
std::string LastSSLError();          // empties OpenSSL's queue
std::string GoAlertText(int alert);  // "bad certificate"
// Client side: the name that VerifyServer compares with the certificate, and Go's text of what it found wrong ("" for
// nothing).
void AttachVerification(SSL* ssl, std::string server_name);
std::string VerificationError(const SSL* ssl);
int VerifyServer(X509_STORE_CTX* context, void* unused);  // for SSL_CTX_set_cert_verify_callback
std::vector<X509Ptr> ParseCertificates(std::string_view pem);
KeyPtr ParsePrivateKey(std::string_view pem);
// Puts chain and key into `context`; `what` names them in errors.
Result<void> UseCertificate(SSL_CTX* context, std::string_view cert_pem, std::string_view key_pem,
                            const std::string& what);
// Settings common to both ends: versions, suites, buffers.
Result<void> ConfigureContext(SSL_CTX* context, int min_version, const std::string& ciphers, const std::string& groups);
Result<std::string> ReadFile(const std::string& path);

}  // namespace keelson::net
