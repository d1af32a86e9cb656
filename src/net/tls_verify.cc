// The verification of a server's certificate in the order and the words of Go's crypto/x509: validity of the leaf, then
// its names, then the chain.
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "net/address.h"
#include "net/tls_internal.h"

namespace keelson::net {
namespace {

constexpr int kNamesListedMax = 100;  // Go's maxNamesIncluded

struct Verification {
  std::string server_name;
  std::string error;
};

void FreeVerification(void*, void* pointer, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<Verification*>(pointer);
}

int VerificationIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, FreeVerification);
  return index;
}

std::string RFC3339(const std::tm& at) {
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday, at.tm_hour,
                     at.tm_min, at.tm_sec);
}

std::string RFC3339(const ASN1_TIME* time) {
  std::tm at{};
  return ASN1_TIME_to_tm(time, &at) == 1 ? RFC3339(at) : std::string("?");
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm at{};
  gmtime_r(&now, &at);
  return RFC3339(at);
}

// "" when the certificate is valid now.
std::string ValidityError(const X509* certificate) {
  constexpr std::string_view kText = "x509: certificate has expired or is not yet valid: current time ";
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    return std::string(kText) + Now() + " is before " + RFC3339(X509_get0_notBefore(certificate));
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    return std::string(kText) + Now() + " is after " + RFC3339(X509_get0_notAfter(certificate));
  return {};
}

struct AlternativeNames {
  bool present = false;
  std::vector<std::string> dns;
  std::vector<std::string> ip;
};

AlternativeNames NamesOf(const X509* certificate) {
  AlternativeNames names;
  auto* list = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (list == nullptr) return names;
  names.present = true;
  for (int i = 0; i < sk_GENERAL_NAME_num(list); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list, i);
    if (name->type == GEN_DNS) {
      const unsigned char* data = ASN1_STRING_get0_data(name->d.dNSName);
      names.dns.emplace_back(reinterpret_cast<const char*>(data),
                             static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const unsigned char* data = ASN1_STRING_get0_data(name->d.iPAddress);
      const int size = ASN1_STRING_length(name->d.iPAddress);
      if (size == 4) names.ip.push_back(fmt::format("{}.{}.{}.{}", data[0], data[1], data[2], data[3]));
      if (size == 16) {
        boost::asio::ip::address_v6::bytes_type bytes;
        std::copy(data, data + 16, bytes.begin());
        names.ip.push_back(boost::asio::ip::address_v6(bytes).to_string());
      }
    }
  }
  GENERAL_NAMES_free(list);
  return names;
}

// Common names are not host names any more: Go looks at the alternative names only.
bool Matches(X509* certificate, const std::string& host, bool address) {
  if (address) return X509_check_ip_asc(certificate, host.c_str(), 0) == 1;
  const unsigned flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
  return X509_check_host(certificate, host.c_str(), host.size(), flags, nullptr) == 1;
}

std::string HostnameError(X509* certificate, const std::string& host) {
  const bool address = IsIPAddress(host);
  if (Matches(certificate, host, address)) return {};
  const AlternativeNames names = NamesOf(certificate);
  if (!names.present && !address &&
      X509_check_host(certificate, host.c_str(), host.size(), X509_CHECK_FLAG_ALWAYS_CHECK_SUBJECT, nullptr) == 1) {
    return "x509: certificate relies on legacy Common Name field, use SANs instead";
  }
  if (address && names.ip.empty())
    return "x509: cannot validate certificate for " + host + " because it doesn't contain any IP SANs";
  const auto& valid = address ? names.ip : names.dns;
  if (valid.size() >= kNamesListedMax) {
    return fmt::format("x509: certificate is valid for {} {}, but none matched {}", valid.size(),
                       address ? "IP SANs" : "names", host);
  }
  if (valid.empty()) return "x509: certificate is not valid for any names, but wanted to match " + host;
  std::string joined;
  for (const std::string& name : valid) joined += (joined.empty() ? "" : ", ") + name;
  return "x509: certificate is valid for " + joined + ", not " + host;
}

std::string CertificateName(const X509* certificate) {
  for (const int part : {NID_commonName, NID_organizationName}) {
    char text[256];
    X509_NAME* subject = X509_get_subject_name(certificate);
    if (X509_NAME_get_text_by_NID(subject, part, text, sizeof(text)) > 0) return text;
  }
  BIGNUM* number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  char* digits = BN_bn2dec(number);
  std::string name = std::string("serial:") + digits;
  OPENSSL_free(digits);
  BN_free(number);
  return name;
}

// Go's hint: an anchor with the issuer's name whose key did not sign this certificate.
std::string UnknownAuthority(X509_STORE_CTX* context) {
  std::string text = "x509: certificate signed by unknown authority";
  X509* failed = X509_STORE_CTX_get_current_cert(context);
  if (failed == nullptr) failed = X509_STORE_CTX_get0_cert(context);
  STACK_OF(X509_OBJECT)* anchors = X509_STORE_get0_objects(X509_STORE_CTX_get0_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(anchors); ++i) {
    const X509* anchor = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(anchors, i));
    if (anchor == nullptr) continue;
    if (X509_NAME_cmp(X509_get_subject_name(anchor), X509_get_issuer_name(failed)) != 0) continue;
    EVP_PKEY* key = X509_get0_pubkey(anchor);
    if (key == nullptr || X509_verify(failed, key) == 1) continue;
    const int type = EVP_PKEY_get_base_id(key);
    const std::string why = type == EVP_PKEY_RSA  ? "crypto/rsa: verification error"
                            : type == EVP_PKEY_EC ? "x509: ECDSA verification failure"
                                                  : "x509: Ed25519 verification failure";
    text += " (possibly because of \"" + why + "\" while trying to verify candidate authority certificate \"" +
            CertificateName(anchor) + "\")";
    break;
  }
  ERR_clear_error();
  return text;
}

std::string ChainError(X509_STORE_CTX* context) {
  const int error = X509_STORE_CTX_get_error(context);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      if (X509* failed = X509_STORE_CTX_get_current_cert(context); failed != nullptr) return ValidityError(failed);
      return "x509: certificate has expired or is not yet valid: ";
    case X509_V_ERR_INVALID_PURPOSE:
      return "x509: certificate specifies an incompatible key usage";
    case X509_V_ERR_PATH_LENGTH_EXCEEDED:
      return "x509: too many intermediates for path length constraint";
    case X509_V_ERR_PERMITTED_VIOLATION:
    case X509_V_ERR_EXCLUDED_VIOLATION:
      return "x509: a root or intermediate certificate is not authorized to sign for this name: ";
    default:
      return UnknownAuthority(context);
  }
}

}  // namespace

void AttachVerification(SSL* ssl, std::string server_name) {
  SSL_set_ex_data(ssl, VerificationIndex(), new Verification{std::move(server_name), {}});
}

std::string VerificationError(const SSL* ssl) {
  const auto* state = static_cast<const Verification*>(SSL_get_ex_data(ssl, VerificationIndex()));
  return state == nullptr || state->error.empty() ? std::string()
                                                  : "tls: failed to verify certificate: " + state->error;
}

int VerifyServer(X509_STORE_CTX* context, void*) {
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* state = static_cast<Verification*>(SSL_get_ex_data(ssl, VerificationIndex()));
  X509* leaf = X509_STORE_CTX_get0_cert(context);
  if (state == nullptr || leaf == nullptr) return 0;
  state->error = ValidityError(leaf);
  if (!state->error.empty()) {
    X509_STORE_CTX_set_error(context, X509_V_ERR_CERT_HAS_EXPIRED);
    return 0;
  }
  state->error = HostnameError(leaf, state->server_name);
  if (!state->error.empty()) {
    X509_STORE_CTX_set_error(context, X509_V_ERR_HOSTNAME_MISMATCH);
    return 0;
  }
  if (X509_verify_cert(context) == 1) return 1;
  state->error = ChainError(context);
  return 0;
}

std::string GoAlertText(int alert) {
  switch (alert) {
    case 0:
      return "close notify";
    case 10:
      return "unexpected message";
    case 20:
      return "bad record MAC";
    case 22:
      return "record overflow";
    case 40:
      return "handshake failure";
    case 42:
      return "bad certificate";
    case 43:
      return "unsupported certificate";
    case 44:
      return "revoked certificate";
    case 45:
      return "expired certificate";
    case 46:
      return "unknown certificate";
    case 47:
      return "illegal parameter";
    case 48:
      return "unknown certificate authority";
    case 49:
      return "access denied";
    case 50:
      return "error decoding message";
    case 51:
      return "error decrypting message";
    case 70:
      return "protocol version not supported";
    case 71:
      return "insufficient security level";
    case 80:
      return "internal error";
    case 86:
      return "inappropriate fallback";
    case 90:
      return "user canceled";
    case 109:
      return "missing extension";
    case 110:
      return "unsupported extension";
    case 112:
      return "unrecognized name";
    case 113:
      return "bad certificate status response";
    case 115:
      return "unknown PSK identity";
    case 116:
      return "certificate required";
    case 120:
      return "no application protocol";
    default:
      return "alert(" + std::to_string(alert) + ")";
  }
}

}  // namespace keelson::net
