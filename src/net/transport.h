// A non-blocking byte channel over one connected descriptor, in plain text or in TLS. The driver above waits for
// readiness. Bytes that the socket does not take at once are kept here; they are bounded because a driver writes no
// more while some are kept. Thread safety: one thread. Ownership: the descriptor belongs to the driver and must outlive
// the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::net {

enum class IOStatus : std::uint8_t {
  kOk,
  kWouldBlock,  // wait until readable, or, when unsent() is not 0, until writable
  kClosed,      // the peer has ended its side properly
  kError,       // see error_text()
};

// The result of the TLS handshake.
struct TLSState {
  bool alpn_h2 = false;
  bool resumed = false;
  std::string version;                      // TLSv1.3
  std::string cipher;                       // TLS_AES_128_GCM_SHA256
  std::string server_name;                  // SNI
  std::vector<std::string> peer_chain_der;  // leaf first
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual IOStatus Handshake() { return IOStatus::kOk; }
  virtual TLSState TakeTLSState() { return {}; }  // once, after the handshake
  virtual bool encrypted() const { return false; }
  // The peer spoke plain HTTP to a TLS port; the caller may answer by WriteRaw.
  virtual bool plain_http_seen() const { return false; }

  virtual IOStatus Read(char* data, std::size_t size, std::size_t* got) = 0;
  // After a Read that was kOk: the socket gave less than there was room for and nothing is kept above it, so another
  // Read would only be kWouldBlock. False where that is not known.
  virtual bool drained() const { return short_read_; }
  // Takes all of it; kError when the connection is broken. Afterwards unsent() is true if the socket was full.
  virtual IOStatus Write(std::span<const std::string_view> pieces) = 0;
  virtual void CloseWrite() = 0;  // close_notify where there is one, then a FIN once everything is sent

  IOStatus Flush();  // kOk when nothing is left
  std::size_t unsent() const { return unsent_.size() - unsent_offset_; }
  void WriteRaw(std::string_view bytes) { SendOrKeep(bytes); }  // past the encryption
  const std::string& error_text() const { return error_text_; }
  // `tcp 127.0.0.1:40000->127.0.0.1:443`: for errors in Go's words (`read tcp ...: read: connection reset by peer`).
  // Call it beforehand, because a broken socket has lost its peer address.
  void DescribePeers();

 protected:
  explicit Transport(int fd) : fd_(fd) {}
  IOStatus SendOrKeep(std::string_view bytes);
  void FinishWhenSent();
  IOStatus ReceiveSome(char* data, std::size_t size, std::size_t* got);
  std::string ReadErrorText(int error) const { return ErrorText("read", error); }
  std::string ErrorText(std::string_view operation, int error) const;

  int fd_;
  std::string error_text_;
  bool short_read_ = false;  // of the last receive

 private:
  std::unique_ptr<std::string> peers_;  // of outgoing connections
  std::string unsent_;
  std::size_t unsent_offset_ = 0;
  bool finish_ = false;
};

std::unique_ptr<Transport> NewPlainTransport(int fd);

}  // namespace keelson::net
