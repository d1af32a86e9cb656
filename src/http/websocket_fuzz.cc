// WebSocket frames: any bytes in any pieces; what is accepted is the same however it was cut.
#include "base/check.h"
#include "base/strings.h"
#include "http/websocket.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::http;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  WebSocketReader whole(4096, true);
  WebSocketReader cut(4096, true);
  std::vector<WebSocketMessage> first;
  std::vector<WebSocketMessage> second;
  const auto code = whole.Feed(bytes, first);
  std::uint16_t cut_code = 0;
  const std::size_t step = data[0] % 7 + 1;
  bool closed = false;
  for (std::size_t at = 0; at < bytes.size() && cut_code == 0 && !closed; at += step) {
    cut_code = cut.Feed(bytes.substr(at, step), second);
    closed = !second.empty() && second.back().opcode == WebSocketOpcode::kClose;
  }
  KS_CHECK(code == cut_code);
  KS_CHECK(first.size() == second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    KS_CHECK(first[i].opcode == second[i].opcode && first[i].data == second[i].data);
    KS_CHECK(first[i].data.size() <= 4096);
    if (first[i].opcode == WebSocketOpcode::kText) KS_CHECK(keelson::base::IsValidUTF8(first[i].data));
  }
  return 0;
}
