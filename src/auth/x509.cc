#include "auth/certificate_verifier.h"

#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "auth/certificates.h"
#include "base/deleter.h"
#include "base/pem.h"
#include "base/strings.h"

namespace keelson::auth {
namespace {

using base::Deleter;
using X509Ptr = std::unique_ptr<X509, Deleter<X509_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;

struct StackDeleter {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_pop_free(stack, X509_free); }
};
using StackPtr = std::unique_ptr<STACK_OF(X509), StackDeleter>;

// The subject attribute that carries a user's UID (gate AllowParsingUserUIDFromCertAuth).
constexpr const char* kUIDAttribute = "1.3.6.1.4.1.57683.2";

// Null for bytes that are not a certificate, or one with bytes behind it (Go: trailing data).
X509Ptr ParseDER(const std::string& der) {
  const auto* data = reinterpret_cast<const unsigned char*>(der.data());
  const auto* const end = data + der.size();
  X509Ptr certificate(d2i_X509(nullptr, &data, static_cast<long>(der.size())));
  return data == end ? std::move(certificate) : nullptr;
}

std::string EntryText(const X509_NAME_ENTRY* entry) {
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
  if (size < 0) return {};
  std::string out(reinterpret_cast<char*>(text), static_cast<std::size_t>(size));
  OPENSSL_free(text);
  return out;
}

bool IsText(const ASN1_STRING* value) {
  switch (ASN1_STRING_type(value)) {
    case V_ASN1_UTF8STRING:
    case V_ASN1_PRINTABLESTRING:
    case V_ASN1_IA5STRING:
    case V_ASN1_T61STRING:
    case V_ASN1_NUMERICSTRING:
    case V_ASN1_BMPSTRING:
      return true;
    default:
      return false;
  }
}

std::string CommonName(X509* leaf) {
  std::string name;
  X509_NAME* subject = X509_get_subject_name(leaf);
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) == NID_commonName) name = EntryText(entry);
  }
  return name;
}

AuthenticationResult UserOf(X509* leaf, const std::string& der, bool read_uid) {
  AuthenticationResult result;
  request::User user{.name = CommonName(leaf)};
  X509_NAME* subject = X509_get_subject_name(leaf);
  std::vector<std::string> uids;
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    const ASN1_OBJECT* object = X509_NAME_ENTRY_get_object(entry);
    if (OBJ_obj2nid(object) == NID_organizationName) user.groups.push_back(EntryText(entry));
    char oid[64];
    if (read_uid && OBJ_obj2txt(oid, sizeof(oid), object, 1) > 0 && std::string_view(oid) == kUIDAttribute) {
      if (!IsText(X509_NAME_ENTRY_get_data(entry)))
        return AuthenticationResult::Failed("unable to parse UID into a string");
      uids.push_back(EntryText(entry));
    }
  }
  if (user.name.empty()) return result;
  if (uids.size() > 1) {
    return AuthenticationResult::Failed("expected 1 UID, but found multiple: [" + base::Join(uids, " ") + "]");
  }
  if (uids.size() == 1) {
    if (uids[0].empty()) return AuthenticationResult::Failed("UID cannot be an empty string");
    user.uid = uids[0];
  }
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(der.data()), der.size(), digest);
  user.extra.push_back({"authentication.kubernetes.io/credential-id",
                        {"X509SHA256=" + base::HexEncode({reinterpret_cast<char*>(digest), sizeof(digest)})}});
  // Here, so that all requests of the connection share one user.
  result.user = WithAuthenticatedGroup(std::move(user));
  return result;
}

std::int64_t NotAfter(X509* certificate) {
  std::tm at{};
  return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &at) == 1 ? timegm(&at) : 0;
}

// Identifies a certificate in the log: serial number and key identifiers.
std::string Identifier(X509* certificate) {
  const auto hex = [](const ASN1_OCTET_STRING* octets) {
    std::string out;
    if (octets == nullptr) return out;
    static constexpr char kDigits[] = "0123456789ABCDEF";
    for (int i = 0; i < ASN1_STRING_length(octets); ++i) {
      const unsigned char byte = ASN1_STRING_get0_data(octets)[i];
      if (i > 0) out += ':';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
    return out;
  };
  std::string serial;
  if (BIGNUM* number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr)) {
    if (char* text = BN_bn2dec(number)) {
      serial = text;
      OPENSSL_free(text);
    }
    BN_free(number);
  }
  return "SN=" + serial + ", SKID=" + hex(X509_get0_subject_key_id(certificate)) +
         ", AKID=" + hex(X509_get0_authority_key_id(certificate));
}

// Whether every certificate of the chain may be used for client authentication, by Go's rules: one without extended key
// usages may be used for anything, and so may one with the usage "any". OpenSSL's purpose SSL_CLIENT is stricter (it
// has no "any", and checks the plain key usages as well).
bool ForClients(const STACK_OF(X509) * chain) {
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    X509* certificate = sk_X509_value(chain, i);
    if (X509_get_ext_by_NID(certificate, NID_ext_key_usage, -1) < 0) continue;
    if ((X509_get_extended_key_usage(certificate) & (XKU_SSL_CLIENT | XKU_ANYEKU)) == 0) return false;
  }
  return true;
}

// Go verifies signatures of RSA keys from 1,024 bits, of four curves, and of Ed25519; its TLS takes RSA keys up to
// 8,192 bits. Other keys prove nothing there.
std::string UnfitKey(X509* certificate) {
  constexpr int kRSABitsMin = 1024, kRSABitsMax = 8192;
  const EVP_PKEY* key = X509_get0_pubkey(certificate);
  if (key == nullptr) return "x509: unknown public key algorithm";
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519:
      return {};
    case EVP_PKEY_RSA: {
      const int bits = EVP_PKEY_get_bits(key);
      if (bits < kRSABitsMin)
        return "crypto/rsa: " + std::to_string(bits) +
               "-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)";
      return bits > kRSABitsMax ? "certificate contains RSA key larger than 8192 bits" : "";
    }
    case EVP_PKEY_EC: {
      char group[64] = {};
      std::size_t size = 0;
      if (EVP_PKEY_get_group_name(key, group, sizeof(group), &size) != 1) return "x509: unsupported elliptic curve";
      for (const std::string_view known : {"secp224r1", "prime256v1", "secp384r1", "secp521r1"}) {
        if (known == std::string_view(group, size)) return {};
      }
      return "x509: unsupported elliptic curve";
    }
    default:
      return "x509: unknown public key algorithm";
  }
}

// "" when every certificate of the chain may take part as Go judges it.
std::string UnfitChain(const STACK_OF(X509) * chain) {
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    if (std::string problem = UnfitKey(sk_X509_value(chain, i)); !problem.empty()) return problem;
  }
  return ForClients(chain) ? "" : "x509: certificate specifies an incompatible key usage";
}

}  // namespace

Outcome<std::vector<std::string>, std::string> ParseCertificates(std::string_view pem) {
  std::vector<std::string> certificates;
  for (base::PEMBlock& block : base::DecodeAllPEM(pem)) {
    if (block.type != "CERTIFICATE" || block.has_headers) continue;
    const X509Ptr certificate = ParseDER(block.bytes);
    ERR_clear_error();
    if (!certificate) return std::string("x509: malformed certificate");
    certificates.push_back(std::move(block.bytes));
  }
  if (certificates.empty()) return std::string("data does not contain any valid RSA or ECDSA certificates");
  return certificates;
}

namespace {

using ChainDigest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;
struct ChainDigestHash {
  std::size_t operator()(const ChainDigest& digest) const {
    std::size_t hash = 0;
    std::memcpy(&hash, digest.data(), sizeof(hash));
    return hash;
  }
};

// Of all certificates in order, each with its length: equal digests mean the very same chain.
ChainDigest DigestOf(const http::PeerCertificate& peer) {
  std::string text;
  for (const std::string& der : peer.chain_der) {
    const std::uint64_t size = der.size();
    text.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(der);
  }
  ChainDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

std::int64_t WallSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(base::Clock::Real().Now().time_since_epoch()).count();
}

}  // namespace

// Chains are remembered by their bytes, so that a client which connects again is not verified again; connections refer
// to them, so that a request need not hash its chain. All are forgotten when the bundle changes.
struct CertificateVerifier::Impl {
  static constexpr std::size_t kConnectionsMax = 1024;
  static constexpr std::size_t kChainsMax = 4096;
  static constexpr std::chrono::minutes kRememberAcceptedFor{10};  // and not beyond the end of any certificate
  static constexpr std::chrono::seconds kRememberRefusedFor{10};   // one that is not valid yet may become so
  using Answer = Outcome<std::shared_ptr<const VerifiedCertificate>, std::string>;
  struct Chain {
    Answer answer = std::shared_ptr<const VerifiedCertificate>();
    std::int64_t not_after = 0;                                       // of the leaf, in seconds since 1970
    std::int64_t expires = std::numeric_limits<std::int64_t>::max();  // the first of all that end
    base::Clock::SteadyTime until{};

    bool IsCurrent(base::Clock::SteadyTime now, std::int64_t wall) const { return until > now && wall <= expires; }
  };
  using ChainPtr = std::shared_ptr<const Chain>;
  struct Connection {
    std::weak_ptr<const http::PeerCertificate> peer;
    ChainPtr chain;
  };
  telemetry::Histogram* lifetimes = nullptr;
  bool read_uid = true;

  std::mutex mutex;
  std::shared_ptr<X509_STORE> store;
  std::unordered_map<ChainDigest, ChainPtr, ChainDigestHash> chains;
  std::unordered_map<const http::PeerCertificate*, Connection> connections;
  std::atomic<std::uint64_t> verified{0};

  // REQUIRES: the mutex.
  void Remember(const std::shared_ptr<const http::PeerCertificate>& peer, ChainPtr chain) {
    if (connections.size() >= kConnectionsMax) {
      std::erase_if(connections, [](const auto& entry) { return entry.second.peer.expired(); });
      if (connections.size() >= kConnectionsMax) connections.clear();
    }
    connections.insert_or_assign(peer.get(), Connection{peer, std::move(chain)});
  }
  void Remember(const ChainDigest& digest, ChainPtr chain, base::Clock::SteadyTime now) {
    if (chains.size() >= kChainsMax) {
      std::erase_if(chains, [&](const auto& entry) { return entry.second->until <= now; });
      if (chains.size() >= kChainsMax) chains.clear();
    }
    chains.insert_or_assign(digest, std::move(chain));
  }

  void Observe(std::int64_t not_after) const {
    if (lifetimes != nullptr)
      lifetimes->Observe(std::chrono::duration<double>(base::Clock::SystemTime(std::chrono::seconds(not_after)) -
                                                       base::Clock::Real().Now())
                             .count());
  }

  static Answer Verify(const http::PeerCertificate& peer, X509_STORE* trusted, bool read_uid, Chain& chain) {
    const X509Ptr leaf = ParseDER(peer.chain_der[0]);
    if (!leaf) return std::string("x509: malformed certificate");
    chain.not_after = NotAfter(leaf.get());
    StackPtr intermediates(sk_X509_new_null());
    for (std::size_t i = 1; i < peer.chain_der.size(); ++i) {
      if (X509Ptr certificate = ParseDER(peer.chain_der[i])) sk_X509_push(intermediates.get(), certificate.release());
    }
    StoreContextPtr context(X509_STORE_CTX_new());
    X509_STORE_CTX_init(context.get(), trusted, leaf.get(), intermediates.get());
    // Level 1 is 80 bits: no MD5 or SHA-1 signatures below the trusted certificate, no RSA keys below 1,024 bits.
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context.get()), 1);
    const bool valid = X509_verify_cert(context.get()) == 1;
    const std::string problem =
        valid ? UnfitChain(X509_STORE_CTX_get0_chain(context.get()))
              : std::string("x509: ") + X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
    ERR_clear_error();
    if (!problem.empty()) return "verifying certificate " + Identifier(leaf.get()) + " failed: " + problem;
    const STACK_OF(X509)* links = X509_STORE_CTX_get0_chain(context.get());
    for (int i = 0; i < sk_X509_num(links); ++i)
      chain.expires = std::min(chain.expires, NotAfter(sk_X509_value(links, i)));
    auto verified = std::make_shared<VerifiedCertificate>();
    verified->holder = UserOf(leaf.get(), peer.chain_der[0], read_uid);
    verified->common_name = CommonName(leaf.get());
    return std::shared_ptr<const VerifiedCertificate>(std::move(verified));
  }
};

CertificateVerifier::CertificateVerifier(bool read_uid) : impl_(std::make_unique<Impl>()) {
  impl_->read_uid = read_uid;
}
CertificateVerifier::~CertificateVerifier() = default;

std::string CertificateVerifier::SetCA(std::string_view pem) {
  auto certificates = ParseCertificates(pem);
  if (!certificates.ok()) return certificates.error();
  std::shared_ptr<X509_STORE> store(X509_STORE_new(), X509_STORE_free);
  for (const std::string& der : *certificates) X509_STORE_add_cert(store.get(), ParseDER(der).get());
  ERR_clear_error();
  // A bundle may hold an intermediate only, as Go accepts it.
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  std::lock_guard lock(impl_->mutex);
  impl_->store = std::move(store);
  impl_->chains.clear();
  impl_->connections.clear();
  return {};
}

void CertificateVerifier::ObserveLifetimes(telemetry::Histogram& lifetimes) { impl_->lifetimes = &lifetimes; }

Outcome<std::shared_ptr<const VerifiedCertificate>, std::string> CertificateVerifier::Verify(
    const std::shared_ptr<const http::PeerCertificate>& peer) {
  if (!peer || peer->chain_der.empty()) return std::shared_ptr<const VerifiedCertificate>();
  const auto now = base::Clock::Real().Monotonic();
  const std::int64_t wall = WallSeconds();
  const auto found = [&](const Impl::ChainPtr& chain) {
    impl_->Observe(chain->not_after);
    return chain->answer;
  };
  {
    std::lock_guard lock(impl_->mutex);
    const auto known = impl_->connections.find(peer.get());
    if (known != impl_->connections.end() && known->second.chain->IsCurrent(now, wall) &&
        known->second.peer.lock() == peer) {
      return found(known->second.chain);
    }
  }
  const ChainDigest digest = DigestOf(*peer);
  std::shared_ptr<X509_STORE> store;
  {
    std::lock_guard lock(impl_->mutex);
    store = impl_->store;
    const auto known = impl_->chains.find(digest);
    if (known != impl_->chains.end() && known->second->IsCurrent(now, wall)) {
      impl_->Remember(peer, known->second);
      return found(known->second);
    }
  }
  if (!store) return std::shared_ptr<const VerifiedCertificate>();
  auto chain = std::make_shared<Impl::Chain>();
  chain->answer = Impl::Verify(*peer, store.get(), impl_->read_uid, *chain);
  impl_->verified.fetch_add(1, std::memory_order_relaxed);
  if (chain->answer.ok()) {
    chain->until = now + Impl::kRememberAcceptedFor;
  } else {
    chain->until = now + Impl::kRememberRefusedFor;
  }
  std::lock_guard lock(impl_->mutex);
  if (impl_->store == store) {
    impl_->Remember(digest, chain, now);
    impl_->Remember(peer, chain);
  }
  return found(chain);
}

std::uint64_t CertificateVerifier::chains_verified() const { return impl_->verified.load(std::memory_order_relaxed); }

X509Authenticator::X509Authenticator(bool read_uid) : verifier_(std::make_unique<CertificateVerifier>(read_uid)) {}
X509Authenticator::~X509Authenticator() = default;

std::string X509Authenticator::SetCA(std::string_view pem) { return verifier_->SetCA(pem); }

void X509Authenticator::RegisterMetrics(telemetry::MetricsRegistry& registry) {
  constexpr double kHour = 3600, kDay = 24 * kHour;
  verifier_->ObserveLifetimes(registry.NewHistogram(
      {.name = "apiserver_client_certificate_expiration_seconds",
       .help = "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
       .stability = telemetry::Stability::kAlpha,
       .buckets = {0, kHour / 2, kHour, 2 * kHour, 6 * kHour, 12 * kHour, kDay, 2 * kDay, 4 * kDay, 7 * kDay, 30 * kDay,
                   90 * kDay, 180 * kDay, 360 * kDay}}));
}

AuthenticationResult X509Authenticator::Authenticate(const http::Request& request) const {
  const auto verified = verifier_->Verify(request.peer);
  if (!verified.ok()) return AuthenticationResult::Failed(verified.error());
  return *verified ? (*verified)->holder : AuthenticationResult{};
}

}  // namespace keelson::auth
