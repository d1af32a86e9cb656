// The HTTP/2 entry point: any bytes after the preface, in any pieces.
#include "http/session_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::http;
  if (size == 0) return 0;
  SessionLimits limits;
  limits.header_bytes_max = 4096;
  limits.streams_max = 8;
  FuzzHost host;
  auto session = NewHttp2Session(host, limits);
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  bytes.append("\0\0\0\4\0\0\0\0\0", 9);
  bytes.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  host.Run(*session, bytes, data[0] == 0 ? 1 : data[0] * std::size_t{16});
  return 0;
}
