// Laid out by libyaml's emitter, which Go's is a port of: block style, lines folded at 80, sequences not indented.
#include <yaml.h>

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "codec/yaml_resolve.h"
#include "object/json_text.h"

namespace keelson::codec {
namespace {

using object::Member;

bool IsLetter(char32_t rune) {
  return (rune >= 'a' && rune <= 'z') || (rune >= 'A' && rune <= 'Z') ||
         (rune >= 0xC0 && rune != 0xD7 && rune != 0xF7 && !(rune >= 0x2000 && rune < 0x2070));
}
bool IsDigit(char32_t rune) { return rune >= '0' && rune <= '9'; }

std::u32string Runes(std::string_view text) {
  std::u32string runes;
  while (!text.empty()) {
    const base::Rune rune = base::DecodeRune(text);
    runes += rune.value;
    text.remove_prefix(static_cast<std::size_t>(rune.length));
  }
  return runes;
}

// The order in which Go's yaml.v2 writes keys: letters after everything else, digits by their value.
bool KeyLess(const std::u32string& a, const std::u32string& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) continue;
    const bool a_letter = IsLetter(a[i]), b_letter = IsLetter(b[i]);
    if (a_letter && b_letter) return a[i] < b[i];
    if (a_letter || b_letter) return b_letter;
    std::uint64_t a_number = 0, b_number = 0;
    if (a[i] == '0' || b[i] == '0') {
      for (std::size_t k = i; k-- > 0 && IsDigit(a[k]);) {
        if (a[k] != '0') {
          a_number = b_number = 1;
          break;
        }
      }
    }
    std::size_t a_end = i, b_end = i;
    for (; a_end < a.size() && IsDigit(a[a_end]); ++a_end) a_number = a_number * 10 + (a[a_end] - '0');
    for (; b_end < b.size() && IsDigit(b[b_end]); ++b_end) b_number = b_number * 10 + (b[b_end] - '0');
    // Go computes in int64, wrapping as this does.
    if (a_number != b_number) return static_cast<std::int64_t>(a_number) < static_cast<std::int64_t>(b_number);
    if (a_end != b_end) return a_end < b_end;
    return a[i] < b[i];
  }
  return a.size() < b.size();
}

class Emitter {
 public:
  explicit Emitter(std::string& out) {
    yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_output(&emitter_, &Write, &out);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_event_t event;
    yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
    Emit(event);
    yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr, 1);
    Emit(event);
  }
  ~Emitter() { yaml_emitter_delete(&emitter_); }
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  void Finish() {
    yaml_event_t event;
    yaml_document_end_event_initialize(&event, 1);
    Emit(event);
    yaml_stream_end_event_initialize(&event);
    Emit(event);
  }

  void Node(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kNull:
        return Plain("null");
      case Value::Kind::kBool:
        return Plain(value.as_bool() ? "true" : "false");
      case Value::Kind::kInt:
        return Plain(std::to_string(value.as_int()));
      case Value::Kind::kDouble: {
        // Go reads it back as an unsigned integer.
        if (value.as_double() >= 0x1p63 && value.as_double() < 0x1p64) {
          std::string digits;
          object::AppendJSONDouble(digits, value.as_double());
          return Plain(digits);
        }
        return Plain(object::GoDouble(value.as_double()));
      }
      case Value::Kind::kString:
        return String(value.as_string());
      case Value::Kind::kRaw:
        return Raw(value.as_raw());
      case Value::Kind::kList:
        return List(value);
      case Value::Kind::kMap:
        return Map(value);
    }
  }

 private:
  static int Write(void* out, unsigned char* buffer, std::size_t size) {
    static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(buffer), size);
    return 1;
  }

  // libyaml fails only when memory runs out or events do not nest, which they do here.
  void Emit(yaml_event_t& event) { yaml_emitter_emit(&emitter_, &event); }

  void Scalar(std::string_view text, yaml_scalar_style_t style, const char* tag = nullptr) {
    yaml_event_t event;
    const int implicit = tag == nullptr ? 1 : 0;
    if (text.data() == nullptr) text = "";  // libyaml insists on a pointer.
    yaml_scalar_event_initialize(&event, nullptr, reinterpret_cast<const yaml_char_t*>(tag),
                                 reinterpret_cast<const yaml_char_t*>(text.data()), static_cast<int>(text.size()),
                                 implicit, implicit, style);
    Emit(event);
  }
  void Plain(std::string_view text) { Scalar(text, YAML_PLAIN_SCALAR_STYLE); }

  void String(std::string_view text) {
    if (!base::IsValidUTF8(text))
      return Scalar(base::Base64Encode(text), YAML_DOUBLE_QUOTED_SCALAR_STYLE, "tag:yaml.org,2002:binary");
    if (text.find('\n') != std::string_view::npos) return Scalar(text, YAML_LITERAL_SCALAR_STYLE);
    Scalar(text, ReadsAsString(text) ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
  }

  void Raw(std::string_view json) {
    base::Arena arena;
    const auto decoded = DecodeJSON(arena, json);
    decoded.ok() ? Node(decoded->value) : String(json);
  }

  void List(const Value& value) {
    yaml_event_t event;
    yaml_sequence_start_event_initialize(&event, nullptr, nullptr, 1, YAML_BLOCK_SEQUENCE_STYLE);
    Emit(event);
    for (const Value& item : value.items()) Node(item);
    yaml_sequence_end_event_initialize(&event);
    Emit(event);
  }

  void Map(const Value& value) {
    yaml_event_t event;
    yaml_mapping_start_event_initialize(&event, nullptr, nullptr, 1, YAML_BLOCK_MAPPING_STYLE);
    Emit(event);
    std::vector<std::pair<std::u32string, const Member*>> order;
    order.reserve(value.size());
    for (const Member& member : value.members()) order.emplace_back(Runes(member.key), &member);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return KeyLess(a.first, b.first); });
    for (const auto& [runes, member] : order) {
      String(member->key);
      Node(member->value);
    }
    yaml_mapping_end_event_initialize(&event);
    Emit(event);
  }

  yaml_emitter_t emitter_{};
};

}  // namespace

void EncodeYAML(const Value& value, std::string& out) {
  Emitter emitter(out);
  emitter.Node(value);
  emitter.Finish();
}

bool HasYAMLControlCharacters(std::string_view json) {
  for (std::size_t i = 0; i < json.size();) {
    const auto byte = static_cast<unsigned char>(json[i]);
    if (byte < 0x80) {
      if (byte == 0x7F || (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r')) return true;
      ++i;
      continue;
    }
    const base::Rune rune = base::DecodeRune(json.substr(i));
    if ((rune.value < 0xA0 && rune.value != 0x85) || rune.value == 0xFFFE || rune.value == 0xFFFF) return true;
    i += static_cast<std::size_t>(rune.length);
  }
  return false;
}

Outcome<void, DecodeError> JSONToYAML(base::Arena& arena, std::string_view json, std::string& out) {
  KS_TRY(const Decoded decoded, DecodeJSON(arena, json));
  EncodeYAML(decoded.value, out);
  return {};
}

Outcome<void, DecodeError> JSONToYAMLItem(base::Arena& arena, std::string_view json, std::string& out) {
  KS_TRY(const Decoded decoded, DecodeJSON(arena, json));
  // libyaml folds lines by their column, so the item is laid out at its indentation inside a list, and the lines above
  // it are cut off.
  Value list = Value::List(arena);
  list.Append(arena, decoded.value);
  Value around = Value::Map(arena);
  around.Set(arena, "i", list);
  std::string text;
  EncodeYAML(around, text);
  out += std::string_view(text).substr(text.find('\n') + 1);
  return {};
}

}  // namespace keelson::codec
