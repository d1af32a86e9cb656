#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include "base/read_file.h"
#include "net/tls_internal.h"

namespace keelson::net {
namespace {

constexpr std::size_t kRecordMax = 16384;            // plain bytes of a TLS record
constexpr std::size_t kUnsentMax = 4 * 1024 * 1024;  // a peer that makes us answer (key updates) but never reads
constexpr std::size_t kKeepCiphertext = 512 * 1024;  // of the thread's scratch between uses

// Ciphertext of the operation under way on this thread; sent in one call at its end. No connection keeps a buffer for
// it.
std::string& CipherScratch() {
  thread_local std::string scratch;
  return scratch;
}
char* PlainScratch() {
  thread_local std::unique_ptr<char[]> scratch = std::make_unique<char[]>(kRecordMax);
  return scratch.get();
}

// A BIO that reads from the socket and writes into the thread's scratch.
int BIOWrite(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  BIO_clear_retry_flags(bio);
  CipherScratch().append(data, size);
  *written = size;
  return 1;
}

struct BIOState {
  int fd;
  bool eof = false;
  bool short_read = false;  // the last receive gave less than there was room for
  int error = 0;            // errno of a failed read
  std::uint8_t seen = 0;    // bytes of `first`
  char first[5] = {};       // of the peer: distinguishes a plain HTTP server from a TLS one
};

int BIORead(BIO* bio, char* data, std::size_t size, std::size_t* got) {
  auto* state = static_cast<BIOState*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  for (;;) {
    const ssize_t received = ::recv(state->fd, data, size, 0);
    if (received > 0) {
      *got = static_cast<std::size_t>(received);
      state->short_read = *got < size;
      for (std::size_t i = 0; state->seen < sizeof(state->first) && i < *got; ++i)
        state->first[state->seen++] = data[i];
      return 1;
    }
    *got = 0;
    if (received == 0) {
      state->eof = true;
      return 0;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      BIO_set_retry_read(bio);
    } else {
      state->error = errno;
    }
    return 0;
  }
}

long BIOControl(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return static_cast<BIOState*>(BIO_get_data(bio))->eof ? 1 : 0;
    default:
      return 0;
  }
}

const BIO_METHOD* SocketMethod() {
  static BIO_METHOD* method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "keelson socket");
    BIO_meth_set_write_ex(made, BIOWrite);
    BIO_meth_set_read_ex(made, BIORead);
    BIO_meth_set_ctrl(made, BIOControl);
    return made;
  }();
  return method;
}

class TLSTransport final : public Transport {
 public:
  TLSTransport(int fd, SSLPtr ssl, bool server, std::shared_ptr<const void> keep)
      : Transport(fd), ssl_(std::move(ssl)), keep_(std::move(keep)), server_(server) {
    bio_.fd = fd;
    BIO* bio = BIO_new(SocketMethod());
    BIO_set_data(bio, &bio_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (server) {
      SSL_set_accept_state(ssl_.get());
    } else {
      SSL_set_connect_state(ssl_.get());
    }
  }

  bool encrypted() const override { return true; }
  bool plain_http_seen() const override { return plain_http_; }
  bool drained() const override {
    return next_read_ == IOStatus::kOk && (blocked_ || (bio_.short_read && SSL_has_pending(ssl_.get()) == 0));
  }

  IOStatus Handshake() override {
    ERR_clear_error();
    const int rc = SSL_do_handshake(ssl_.get());
    const int error = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), rc);
    if (error == SSL_ERROR_SSL) {
      const int reason = ERR_GET_REASON(ERR_peek_error());
      plain_http_ = reason == SSL_R_HTTP_REQUEST;
      error_text_ = server_ ? LastSSLError() : ClientError();
    }
    if (plain_http_) {  // an alert would be noise before the plain answer
      CipherScratch().clear();
    } else if (!SendScratch()) {
      return IOStatus::kError;
    }
    switch (error) {
      case SSL_ERROR_NONE:
        keep_.reset();
        return IOStatus::kOk;
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return IOStatus::kWouldBlock;
      default:
        if (error_text_.empty()) error_text_ = bio_.error != 0 ? ReadErrorText(bio_.error) : "EOF";
        return IOStatus::kError;
    }
  }

  TLSState TakeTLSState() override {
    TLSState state;
    const unsigned char* protocol = nullptr;
    unsigned int length = 0;
    SSL_get0_alpn_selected(ssl_.get(), &protocol, &length);
    state.alpn_h2 = length == 2 && std::memcmp(protocol, "h2", 2) == 0;
    state.resumed = SSL_session_reused(ssl_.get()) == 1;
    state.version = SSL_get_version(ssl_.get());
    state.cipher = SSL_CIPHER_standard_name(SSL_get_current_cipher(ssl_.get()));
    if (const char* name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name); name != nullptr)
      state.server_name = name;
    const auto add = [&](X509* certificate) {
      unsigned char* der = nullptr;
      const int size = i2d_X509(certificate, &der);
      if (size > 0) state.peer_chain_der.emplace_back(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
      OPENSSL_free(der);
    };
    X509* leaf = SSL_get0_peer_certificate(ssl_.get());
    if (leaf != nullptr) add(leaf);
    if (STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl_.get()); chain != nullptr) {
      for (int i = 0; i < sk_X509_num(chain); ++i) {
        X509* certificate = sk_X509_value(chain, i);
        if (certificate != leaf) add(certificate);
      }
    }
    return state;
  }

  // Reads several records at once while whole ones may be there: a client that takes a large answer sends a record for
  // each window update, and OpenSSL gives one record a call.
  IOStatus Read(char* data, std::size_t size, std::size_t* got) override {
    *got = 0;
    IOStatus status = std::exchange(next_read_, IOStatus::kOk);
    if (status != IOStatus::kOk) return status;
    do {
      std::size_t more = 0;
      status = ReadRecord(data + *got, size - *got, &more);
      *got += more;
    } while (status == IOStatus::kOk && *got < size && SSL_has_pending(ssl_.get()) != 0);
    blocked_ = status == IOStatus::kWouldBlock;
    if (status == IOStatus::kOk || *got == 0) return status;
    if (!blocked_) next_read_ = status;  // reported after the bytes before it
    return IOStatus::kOk;
  }

  // Fills whole records: small pieces are gathered into the thread's scratch, a piece as large as a record is encrypted
  // where it lies.
  IOStatus Write(std::span<const std::string_view> pieces) override {
    if (broken_) return IOStatus::kError;
    ERR_clear_error();
    char* const gathered = PlainScratch();
    std::size_t fill = 0;
    for (std::string_view piece : pieces) {
      while (!piece.empty()) {
        if (fill == 0 && piece.size() >= kRecordMax) {
          if (!Encrypt(piece.data(), kRecordMax)) return IOStatus::kError;
          piece.remove_prefix(kRecordMax);
          continue;
        }
        const std::size_t take = std::min(piece.size(), kRecordMax - fill);
        std::memcpy(gathered + fill, piece.data(), take);
        fill += take;
        piece.remove_prefix(take);
        if (fill == kRecordMax) {
          if (!Encrypt(gathered, fill)) return IOStatus::kError;
          fill = 0;
        }
      }
    }
    if (fill != 0 && !Encrypt(gathered, fill)) return IOStatus::kError;
    return SendScratch() ? IOStatus::kOk : IOStatus::kError;
  }

  void CloseWrite() override {
    if (!broken_ && SSL_is_init_finished(ssl_.get())) {
      ERR_clear_error();
      (void)SSL_shutdown(ssl_.get());
      (void)SendScratch();
      ERR_clear_error();
    }
    FinishWhenSent();
  }

 private:
  IOStatus ReadRecord(char* data, std::size_t size, std::size_t* got) {
    ERR_clear_error();
    const int rc = SSL_read_ex(ssl_.get(), data, size, got);
    if (!SendScratch()) return IOStatus::kError;  // answers to key updates
    if (rc == 1) return IOStatus::kOk;
    switch (SSL_get_error(ssl_.get(), rc)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return IOStatus::kWouldBlock;
      case SSL_ERROR_ZERO_RETURN:
        return IOStatus::kClosed;
      default:
        error_text_ = server_ ? LastSSLError() : ClientError();
        if (error_text_.empty()) error_text_ = bio_.error != 0 ? ReadErrorText(bio_.error) : "unexpected EOF";
        broken_ = true;
        return IOStatus::kError;
    }
  }

  // The last error in Go's words; empties OpenSSL's queue.
  std::string ClientError() {
    const unsigned long code = ERR_peek_error();
    const int reason = ERR_GET_REASON(code);
    std::string text = LastSSLError();
    if (std::string verification = VerificationError(ssl_.get()); !verification.empty()) return verification;
    if (code == 0) return {};
    if (std::string_view(bio_.first, bio_.seen) == "HTTP/") return "http: server gave HTTP response to HTTPS client";
    if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
      return "remote error: tls: " + GoAlertText(reason - SSL_AD_REASON_OFFSET);
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG)
      return "tls: first record does not look like a TLS handshake";
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) return "EOF";
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL) return "tls: server selected unsupported protocol version";
    return "tls: " + text;
  }

  bool Encrypt(const char* data, std::size_t size) {
    std::size_t written = 0;
    if (SSL_write_ex(ssl_.get(), data, size, &written) == 1 && written == size) return true;
    error_text_ = LastSSLError();
    broken_ = true;
    CipherScratch().clear();
    return false;
  }

  bool SendScratch() {
    std::string& scratch = CipherScratch();
    if (scratch.empty()) return true;
    const bool ok = SendOrKeep(scratch) == IOStatus::kOk && unsent() <= kUnsentMax;
    scratch.clear();
    if (scratch.capacity() > kKeepCiphertext) scratch.shrink_to_fit();
    return ok;
  }

  BIOState bio_{};
  SSLPtr ssl_;
  std::shared_ptr<const void> keep_;
  bool server_;
  IOStatus next_read_ = IOStatus::kOk;  // the end or the error that the last Read met behind its bytes
  bool blocked_ = false;                // the last Read met the end of what has arrived
  bool plain_http_ = false;
  bool broken_ = false;
};

}  // namespace

std::unique_ptr<Transport> NewTLSTransport(int fd, SSLPtr ssl, bool server, std::shared_ptr<const void> keep) {
  return std::make_unique<TLSTransport>(fd, std::move(ssl), server, std::move(keep));
}

std::string LastSSLError() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (text.empty()) text = reason != nullptr ? reason : "TLS error " + std::to_string(code);
  }
  return text;
}

std::vector<X509Ptr> ParseCertificates(std::string_view pem) {
  std::vector<X509Ptr> out;
  BIOPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (X509* certificate = PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr)) out.emplace_back(certificate);
  ERR_clear_error();
  return out;
}

KeyPtr ParsePrivateKey(std::string_view pem) {
  BIOPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  // An encrypted key would make OpenSSL prompt on the terminal; the callback says there is no pass phrase.
  const auto no_pass_phrase = [](char*, int, int, void*) { return -1; };
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_pass_phrase, nullptr));
  ERR_clear_error();
  return key;
}

Result<void> UseCertificate(SSL_CTX* context, std::string_view cert_pem, std::string_view key_pem,
                            const std::string& what) {
  auto chain = ParseCertificates(cert_pem);
  if (chain.empty()) return Error{"tls: failed to find any PEM data in certificate input: " + what};
  auto key = ParsePrivateKey(key_pem);
  if (!key) return Error{"tls: failed to find any PEM data in key input: " + what};
  if (SSL_CTX_use_certificate(context, chain[0].get()) != 1) return Error{"tls: " + what + ": " + LastSSLError()};
  for (std::size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context, chain[i].get());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    (void)LastSSLError();
    return Error{"tls: private key does not match public key"};
  }
  return {};
}

Result<void> ConfigureContext(SSL_CTX* context, int min_version, const std::string& ciphers,
                              const std::string& groups) {
  SSL_CTX_set_min_proto_version(context, min_version);
  SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
  // Ciphers and versions that flags name are allowed, also if OpenSSL's default level would refuse them.
  SSL_CTX_set_security_level(context, min_version < TLS1_2_VERSION ? 0 : 1);
  if (!ciphers.empty() && SSL_CTX_set_cipher_list(context, ciphers.c_str()) != 1)
    return Error{"tls: " + LastSSLError()};
  // AES-128 first as Go prefers it: a tenth cheaper than AES-256 here.
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  if (SSL_CTX_set1_groups_list(context, groups.c_str()) != 1) return Error{"tls: " + LastSSLError()};
  SSL_CTX_set_mode(context,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                   SSL_OP_PRIORITIZE_CHACHA | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_read_ahead(context, 1);  // one system call for a record instead of two
  return {};
}

Result<std::string> ReadFile(const std::string& path) {
  auto text = base::ReadFile(path);
  if (!text.ok()) return Error{text.error()};
  return *std::move(text);
}

}  // namespace keelson::net
