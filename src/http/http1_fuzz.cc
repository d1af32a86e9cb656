// The HTTP/1.1 entry point: any bytes, in any pieces.
#include "http/session_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::http;
  if (size == 0) return 0;
  SessionLimits limits;
  limits.header_bytes_max = 4096;
  FuzzHost host;
  auto session = NewHttp1Session(host, limits);
  host.Run(*session, {reinterpret_cast<const char*>(data) + 1, size - 1}, data[0] == 0 ? 1 : data[0]);
  return 0;
}
