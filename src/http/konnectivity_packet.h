// The packets of the konnectivity proxy protocol (sigs.k8s.io/apiserver-network-proxy) in gRPC's framing, without
// sockets:
//
//   gRPC message    flag (1 byte, 0) | length (4 bytes, big endian) | protobuf Packet
//   Packet          type 1 | dialRequest 2 | dialResponse 3 | data 4 | closeRequest 5 | closeResponse 6 | closeDial 7
//                   | drain 8
//
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::http {

enum class KonnectivityPacketType : std::uint8_t {
  kDialRequest = 0,
  kDialResponse = 1,
  kCloseRequest = 2,
  kCloseResponse = 3,
  kData = 4,
  kDialClose = 5,
  kDrain = 6,
};
std::string_view ToString(KonnectivityPacketType type);  // DIAL_REQ, the protocol's name

struct KonnectivityPacket {
  KonnectivityPacketType type = KonnectivityPacketType::kDialRequest;
  std::int64_t connect_id = 0;  // chosen by the agent; 0 before the dial has succeeded
  std::int64_t random = 0;      // of a dial, chosen by the client
  std::string protocol;         // of a dial request: tcp
  std::string address;          // of a dial request: host:port
  std::string error;
  std::string data;
};

// One framed message.
std::string EncodeKonnectivityPacket(const KonnectivityPacket& packet);

// Cuts a byte stream into packets.
class KonnectivityPacketReader {
 public:
  static constexpr std::size_t kMessageBytesMax = 4 * 1024 * 1024;  // gRPC's default for what is received

  void Append(std::string_view bytes);
  // The next whole packet, std::nullopt while bytes are missing. After an error the stream is of no more use.
  Outcome<std::optional<KonnectivityPacket>, std::string> Next();

 private:
  std::string buffer_;
  std::size_t offset_ = 0;
};

}  // namespace keelson::http
