// A JSON string literal for log lines. Private to telemetry: objects have their own codec.
#pragma once

#include <string>
#include <string_view>

#include "base/strings.h"

namespace keelson::telemetry {

inline void AppendJSONString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  if (!base::IsValidUTF8(text)) return AppendJSONString(out, base::ToValidUTF8(text));
  out += '"';
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (byte < 0x20) {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

}  // namespace keelson::telemetry
