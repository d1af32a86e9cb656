#include <cstdint>

#include "proxy/spdy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  keelson::proxy::SPDYSession session;
  std::vector<keelson::proxy::SPDYSession::Event> events;
  std::string out;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t half = bytes.size() / 2;
  if (session.Feed(bytes.substr(0, half), events, out)) session.Feed(bytes.substr(half), events, out);
  return 0;
}
