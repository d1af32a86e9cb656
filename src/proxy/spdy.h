// SPDY/3.1 as remote commands need it (the protocol between a Kubernetes client, the server and a kubelet): streams
// within one connection, without flow control. A state machine without a socket; the side that opens streams.
// Thread safety: none. Input is bounded: a frame larger than kFrameBytesMax or headers larger than kHeaderBytesMax end
// the session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::proxy {

class SPDYSession {
 public:
  static constexpr std::size_t kFrameBytesMax = 1024 * 1024;
  static constexpr std::size_t kHeaderBytesMax = 64 * 1024;

  using Headers = std::vector<std::pair<std::string, std::string>>;
  struct Event {
    enum class Kind : std::uint8_t { kReply, kData, kEnd, kReset, kGoAway };
    Kind kind;
    std::uint32_t stream = 0;
    std::string data;
  };

  SPDYSession();
  ~SPDYSession();
  SPDYSession(const SPDYSession&) = delete;
  SPDYSession& operator=(const SPDYSession&) = delete;

  // Bytes to send are appended to `out`. Header names are lower case.
  std::uint32_t OpenStream(const Headers& headers, std::string& out);
  static void Data(std::uint32_t stream, std::string_view bytes, bool end, std::string& out);
  void Ping(std::string& out);

  // Feeds received bytes; replies (to pings) are appended to `out`. False if the peer broke the protocol: reading
  // ends.
  bool Feed(std::string_view bytes, std::vector<Event>& events, std::string& out);

 private:
  struct Zlib;
  bool OnHeaders(std::string_view block);

  std::unique_ptr<Zlib> zlib_;
  std::string buffer_;
  std::uint32_t next_stream_ = 1;
  std::uint32_t next_ping_ = 1;
  bool failed_ = false;
};

}  // namespace keelson::proxy
