#include "net/tls_server.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "net/address.h"
#include "net/tls_internal.h"
#include "net/tls_names.h"

namespace keelson::net {
namespace {

constexpr std::chrono::hours kTicketKeyLife{24};  // Go's: a new key each day, seven days accepted
constexpr std::size_t kTicketKeysMax = 7;
constexpr std::chrono::seconds kReadAgain{60};  // also when nothing looks changed: upstream polls each minute

// Keys of session tickets. They outlive reloads, so that clients resume across them.
class TicketKeys {
 public:
  // For OpenSSL: fills name, iv and ciphers. 1: use; 2: use and issue a new ticket; 0: unknown, full handshake.
  int Setup(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypt) {
    std::lock_guard lock(mutex_);
    Rotate();
    const Key* key = nullptr;
    bool newest = true;
    if (encrypt == 1) {
      key = &keys_.front();
      std::memcpy(name, key->name.data(), key->name.size());
      if (RAND_bytes(iv, 16) != 1) return -1;
    } else {
      for (const Key& candidate : keys_) {
        if (std::memcmp(name, candidate.name.data(), candidate.name.size()) == 0) {
          key = &candidate;
          break;
        }
        newest = false;
      }
      if (key == nullptr) return 0;
    }
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_octet_string(
                                   OSSL_MAC_PARAM_KEY, const_cast<unsigned char*>(key->mac.data()), key->mac.size()),
                               OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>("SHA256"), 0),
                               OSSL_PARAM_construct_end()};
    if (EVP_MAC_CTX_set_params(mac, parameters) != 1) return -1;
    if (EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key->cipher.data(), iv, encrypt) != 1) return -1;
    return newest ? 1 : 2;
  }

 private:
  struct Key {
    std::array<unsigned char, 16> name;
    std::array<unsigned char, 32> cipher;
    std::array<unsigned char, 32> mac;
    std::chrono::steady_clock::time_point made;
  };
  void Rotate() {
    const auto now = std::chrono::steady_clock::now();
    if (!keys_.empty() && now - keys_.front().made < kTicketKeyLife) return;
    Key key{};
    RAND_bytes(key.name.data(), static_cast<int>(key.name.size()));
    RAND_bytes(key.cipher.data(), static_cast<int>(key.cipher.size()));
    RAND_bytes(key.mac.data(), static_cast<int>(key.mac.size()));
    key.made = now;
    keys_.push_front(key);
    if (keys_.size() > kTicketKeysMax) keys_.pop_back();
  }

  std::mutex mutex_;
  std::deque<Key> keys_;
};

// Everything a handshake needs, as it was read at one moment.
struct Snapshot {
  std::vector<SSLContextPtr> contexts;                   // the default first
  std::map<std::string, SSL_CTX*, std::less<>> by_name;  // lower case, "*.example.com" for wildcards
  TicketKeys* tickets = nullptr;
  bool http2 = true;

  SSL_CTX* Find(std::string name) const {
    name = base::ToLower(name);
    while (!name.empty() && name.back() == '.') name.pop_back();
    if (const auto exact = by_name.find(name); exact != by_name.end()) return exact->second;
    if (const auto dot = name.find('.'); dot != std::string::npos) {
      if (const auto wild = by_name.find("*" + name.substr(dot)); wild != by_name.end()) return wild->second;
    }
    return nullptr;
  }
};

int SnapshotIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}
const Snapshot* SnapshotOf(SSL* ssl) {
  return static_cast<const Snapshot*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), SnapshotIndex()));
}

std::string LocalAddress(SSL* ssl) {
  const int fd =
      SSL_get_app_data(ssl) != nullptr ? static_cast<int>(reinterpret_cast<std::intptr_t>(SSL_get_app_data(ssl))) : -1;
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (fd < 0 || ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(&storage)->sin_addr, text, sizeof(text));
  } else {
    const auto& v6 = reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      ::inet_ntop(AF_INET, &v6.s6_addr[12], text, sizeof(text));
    } else {
      ::inet_ntop(AF_INET6, &v6, text, sizeof(text));
    }
  }
  return text;
}

// By server name; a client that sends none (it dialled an address) is matched by the address it reached.
int ChooseCertificate(SSL* ssl, void*) {
  const Snapshot* snapshot = SnapshotOf(ssl);
  if (snapshot == nullptr || snapshot->by_name.empty()) return 1;
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  SSL_CTX* chosen = snapshot->Find(name != nullptr && *name != 0 ? std::string(name) : LocalAddress(ssl));
  if (chosen != nullptr) SSL_set_SSL_CTX(ssl, chosen);
  return 1;
}

int ChooseProtocol(SSL* ssl, const unsigned char** out, unsigned char* out_length, const unsigned char* in,
                   unsigned int in_length, void*) {
  static constexpr unsigned char kBoth[] = "\x02h2\x08http/1.1";
  const Snapshot* snapshot = SnapshotOf(ssl);
  const bool http2 = snapshot == nullptr || snapshot->http2;
  const unsigned char* offered = http2 ? kBoth : kBoth + 3;
  const unsigned int offered_length = http2 ? 12 : 9;
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, out_length, offered, offered_length, in, in_length) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

int TicketKeyCallback(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac,
                      int encrypt) {
  // TLS 1.2 has promised a ticket before it sees the client's certificates; with 0 an empty one is sent. A resumed
  // session would lack the intermediates, and its client could not be authenticated.
  if (const STACK_OF(X509)* sent = SSL_get_peer_cert_chain(ssl);
      encrypt == 1 && sent != nullptr && sk_X509_num(sent) > 0) {
    return 0;
  }
  const Snapshot* snapshot = SnapshotOf(ssl);
  return snapshot == nullptr ? -1 : snapshot->tickets->Setup(name, iv, cipher, mac, encrypt);
}

// A client that does not offer to resume with psk_dhe_ke gets no TLS 1.3 ticket (RFC 8446, 4.2.9), as from Go's server.
// Go's clients without a session cache, client-go among them, are such. A ticket costs as much as a certificate check:
// OpenSSL encodes the session with the client's certificate, decodes and encodes it again.
int WithoutUselessTickets(SSL* ssl, int*, void*) {
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_psk_kex_modes, &bytes, &size) != 1) size = 0;
  if (!OffersResumption({reinterpret_cast<const char*>(bytes), size})) SSL_set_num_tickets(ssl, 0);
  return SSL_CLIENT_HELLO_SUCCESS;
}

// Accepts whatever the client presents: the authenticators judge it. A ticket carries the leaf only, so a client that
// sent intermediates gets none and makes full handshakes.
int AcceptPeer(X509_STORE_CTX* store, void*) {
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  STACK_OF(X509)* sent = X509_STORE_CTX_get0_untrusted(store);
  if (ssl != nullptr && sent != nullptr && sk_X509_num(sent) > 1) {
    SSL_set_num_tickets(ssl, 0);
    SSL_set_options(ssl, SSL_OP_NO_TICKET);
  }
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

std::string Text(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// The names a certificate is for: common name, DNS names and addresses.
std::vector<std::string> NamesOf(X509* certificate) {
  std::vector<std::string> names;
  X509_NAME* subject = X509_get_subject_name(certificate);
  if (const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1); at >= 0) {
    std::string common = Text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    const bool host_like =
        !common.empty() && common.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.*:") == std::string::npos;
    if (host_like) names.push_back(std::move(common));
  }
  auto* alternatives =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; alternatives != nullptr && i < sk_GENERAL_NAME_num(alternatives); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives, i);
    if (name->type == GEN_DNS) names.push_back(Text(name->d.dNSName));
    if (name->type == GEN_IPADD) {
      const std::string bytes = Text(name->d.iPAddress);
      char text[INET6_ADDRSTRLEN] = {};
      if (bytes.size() == 4) ::inet_ntop(AF_INET, bytes.data(), text, sizeof(text));
      if (bytes.size() == 16) ::inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
      if (*text != 0) names.emplace_back(text);
    }
  }
  GENERAL_NAMES_free(alternatives);
  return names;
}

struct Pair {
  std::string cert_pem;
  std::string key_pem;
  std::string what;
};

Result<Pair> LoadPair(const CertificateSource& source) {
  Pair pair{source.cert_pem, source.key_pem, "given certificate"};
  if (!source.cert_file.empty()) {
    pair.what = source.cert_file;
    KS_TRY(pair.cert_pem, ReadFile(source.cert_file));
    KS_TRY(pair.key_pem, ReadFile(source.key_file));
  }
  return pair;
}

}  // namespace

bool OffersResumption(std::string_view psk_key_exchange_modes) {
  constexpr char kPskDheKe = 1;
  if (psk_key_exchange_modes.empty()) return false;
  const auto count = static_cast<unsigned char>(psk_key_exchange_modes[0]);
  return psk_key_exchange_modes.substr(1, count).find(kPskDheKe) != std::string_view::npos;
}

struct TLSServerContext::Impl {
  TLSServerOptions options;
  int min_version = 0;
  std::string ciphers;
  std::string groups;
  TicketKeys tickets;

  mutable std::mutex mutex;  // over the rest
  std::shared_ptr<const Snapshot> snapshot;
  std::string fingerprint;  // the texts the snapshot was made from
  std::string stamp;        // of the files when they were last read without error

  std::mutex follow_mutex;
  std::condition_variable follow_changed;
  bool stopping = false;
  std::thread follower;

  Result<SSLContextPtr> NewContext(const Pair& pair, const std::string& ca_pem, Snapshot* snapshot_made) {
    SSLContextPtr context(SSL_CTX_new(TLS_server_method()));
    KS_RETURN_IF_ERROR(ConfigureContext(context.get(), min_version, ciphers, groups));
    KS_RETURN_IF_ERROR(UseCertificate(context.get(), pair.cert_pem, pair.key_pem, pair.what));
    SSL_CTX_set_ex_data(context.get(), SnapshotIndex(), snapshot_made);
    SSL_CTX_set_cert_cb(context.get(), ChooseCertificate, nullptr);
    SSL_CTX_set_alpn_select_cb(context.get(), ChooseProtocol, nullptr);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context.get(), TicketKeyCallback);
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);  // tickets only: nothing is kept per client
    SSL_CTX_set_num_tickets(context.get(), 1);
    SSL_CTX_set_client_hello_cb(context.get(), WithoutUselessTickets, nullptr);
    static constexpr unsigned char kSessionContext[] = "keelson";
    SSL_CTX_set_session_id_context(context.get(), kSessionContext, sizeof(kSessionContext) - 1);
    if (options.request_client_certificate) {
      SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
      SSL_CTX_set_cert_verify_callback(context.get(), AcceptPeer, nullptr);
      auto* subjects = sk_X509_NAME_new_null();
      for (const X509Ptr& ca : ParseCertificates(ca_pem))
        sk_X509_NAME_push(subjects, X509_NAME_dup(X509_get_subject_name(ca.get())));
      SSL_CTX_set_client_CA_list(context.get(), subjects);
    }
    return context;
  }

  // A new snapshot when a text differs from what the current one was made of.
  Result<bool> Load() {
    std::lock_guard lock(mutex);
    std::string stamp_before = Stamp();  // before reading: a change in between is seen the next time
    std::vector<Pair> pairs;
    KS_TRY(Pair main, LoadPair(options.certificate));
    pairs.push_back(std::move(main));
    for (const auto& source : options.sni) {
      KS_TRY(Pair pair, LoadPair(source));
      pairs.push_back(std::move(pair));
    }
    std::string ca_pem = options.client_ca_pem;
    for (const auto& path : options.client_ca_files) {
      KS_TRY(std::string text, ReadFile(path));
      if (ParseCertificates(text).empty())
        return Error{"data does not contain any valid RSA or ECDSA certificates: " + path};
      ca_pem += '\n';
      ca_pem += text;
    }
    std::string now = ca_pem;
    for (const Pair& pair : pairs) now += '\0' + pair.cert_pem + '\0' + pair.key_pem;
    if (now == fingerprint) {
      stamp = std::move(stamp_before);
      return false;
    }

    auto made = std::make_shared<Snapshot>();
    made->tickets = &tickets;
    made->http2 = options.http2;
    for (const Pair& pair : pairs) {
      KS_TRY(SSLContextPtr context, NewContext(pair, ca_pem, made.get()));
      made->contexts.push_back(std::move(context));
    }
    // Later entries first, so that earlier ones win; names from certificates first, so that explicit ones win.
    for (const bool explicit_names : {false, true}) {
      for (std::size_t i = options.sni.size(); i-- > 0;) {
        if (options.sni[i].names.empty() == explicit_names) continue;
        SSL_CTX* context = made->contexts[i + 1].get();
        const auto names = explicit_names ? options.sni[i].names : NamesOf(SSL_CTX_get0_certificate(context));
        for (const auto& name : names) made->by_name[base::ToLower(name)] = context;
      }
    }
    snapshot = std::move(made);
    fingerprint = std::move(now);
    stamp = std::move(stamp_before);
    return true;
  }

  bool Changed() {
    std::lock_guard lock(mutex);
    return Stamp() != stamp;
  }

  // Size, time and inode of every file: cheap to look at.
  std::string Stamp() const {
    std::string stamp;
    const auto add = [&](const std::string& path) {
      struct stat info{};
      if (path.empty() || ::stat(path.c_str(), &info) != 0) return;
      stamp += std::to_string(info.st_ino) + "," + std::to_string(info.st_size) + "," +
               std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + ";";
    };
    const auto add_pair = [&](const CertificateSource& source) {
      add(source.cert_file);
      add(source.key_file);
    };
    add_pair(options.certificate);
    for (const auto& source : options.sni) add_pair(source);
    for (const auto& path : options.client_ca_files) add(path);
    return stamp;
  }
};

TLSServerContext::TLSServerContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TLSServerContext::~TLSServerContext() {
  {
    std::lock_guard lock(impl_->follow_mutex);
    impl_->stopping = true;
  }
  impl_->follow_changed.notify_all();
  if (impl_->follower.joinable()) impl_->follower.join();
}

Result<std::shared_ptr<TLSServerContext>> TLSServerContext::New(TLSServerOptions options) {
  auto impl = std::make_unique<Impl>();
  KS_TRY(impl->min_version, TLSVersion(options.min_version));
  KS_TRY(impl->ciphers, CipherList(options.cipher_suites));
  KS_TRY(impl->groups, GroupList(options.curve_preferences));
  impl->options = std::move(options);
  KS_TRY([[maybe_unused]] const bool loaded, impl->Load());
  return std::shared_ptr<TLSServerContext>(new TLSServerContext(std::move(impl)));
}

std::unique_ptr<Transport> TLSServerContext::Accept(int fd) const {
  std::shared_ptr<const Snapshot> snapshot;
  {
    std::lock_guard lock(impl_->mutex);
    snapshot = impl_->snapshot;
  }
  SSLPtr ssl(SSL_new(snapshot->contexts.front().get()));
  SSL_set_app_data(ssl.get(), reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  return NewTLSTransport(fd, std::move(ssl), true, std::move(snapshot));
}

Result<bool> TLSServerContext::Reload() { return impl_->Load(); }

void TLSServerContext::Follow(std::chrono::milliseconds interval,
                              std::function<void(const std::string& error)> changed) {
  std::lock_guard lock(impl_->follow_mutex);
  if (impl_->follower.joinable()) return;
  impl_->follower = std::thread([impl = impl_.get(), interval, changed = std::move(changed)] {
    auto read = std::chrono::steady_clock::now();
    std::string reported;
    std::unique_lock held(impl->follow_mutex);
    while (!impl->follow_changed.wait_for(held, interval, [&] { return impl->stopping; })) {
      held.unlock();
      // A failed read keeps the old stamp, so it is tried again: certificate and key may be written one after the
      // other.
      if (impl->Changed() || std::chrono::steady_clock::now() - read >= kReadAgain) {
        read = std::chrono::steady_clock::now();
        auto result = impl->Load();
        if (!result.ok() && changed && result.error().message != reported) changed(result.error().message);
        if (result.ok() && *result && changed) changed({});
        reported = result.ok() ? std::string() : result.error().message;
      }
      held.lock();
    }
  });
}

}  // namespace keelson::net
