// Konnectivity packets from any bytes: the reader never fails a check, and a packet that was read is the same packet
// after it is written and read again.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "http/konnectivity_packet.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::http;
  KonnectivityPacketReader reader;
  reader.Append({reinterpret_cast<const char*>(data), size});
  for (;;) {
    auto packet = reader.Next();
    if (!packet.ok() || !*packet) return 0;
    const std::string written = EncodeKonnectivityPacket(**packet);
    KonnectivityPacketReader again;
    again.Append(written);
    auto second = again.Next();
    KS_CHECK(second.ok() && *second && EncodeKonnectivityPacket(**second) == written);
  }
}
