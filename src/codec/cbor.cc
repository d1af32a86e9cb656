#include "codec/cbor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/strings.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "object/time.h"

namespace keelson::codec {
namespace {

using base::Arena;
using object::Member;
using schema::Kind;
using schema::Struct;
using schema::Type;

enum Major : std::uint8_t { kUnsigned, kNegative, kByteString, kTextString, kArray, kMap, kTag, kSimple };

constexpr std::uint64_t kTagTimeText = 0, kTagTimeEpoch = 1, kTagBignum = 2, kTagNegativeBignum = 3, kTagBase64URL = 21,
                        kTagBase64 = 22, kTagBase16 = 23;

double HalfToDouble(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1f;
  const double mantissa = half & 0x3ff;
  const double value = exponent == 0    ? std::ldexp(mantissa, -24)
                       : exponent != 31 ? std::ldexp(mantissa + 1024, exponent - 25)
                       : mantissa == 0  ? INFINITY
                                        : NAN;
  return (half & 0x8000) != 0 ? -value : value;
}

class Reader {
 public:
  Reader(Arena& arena, std::string_view bytes) : arena_(arena), bytes_(bytes) {}

  bool Document(Value& out) {
    if (bytes_.empty()) return Fail("EOF");
    if (bytes_.starts_with(kCBORMagic)) at_ = kCBORMagic.size();
    if (!Item(out)) return false;
    if (at_ == bytes_.size()) return true;
    return Fail("cbor: " + std::to_string(bytes_.size() - at_) + " bytes of extraneous data starting at index " +
                std::to_string(at_));
  }
  const std::string& error() const { return error_; }

 private:
  bool Fail(std::string text) {
    if (error_.empty()) error_ = std::move(text);
    return false;
  }

  struct Head {
    Major major;
    std::uint8_t info;
    std::uint64_t value;
    bool indefinite;
  };
  bool ReadHead(Head& head) {
    if (at_ >= bytes_.size()) return Fail("unexpected EOF");
    const auto first = static_cast<unsigned char>(bytes_[at_++]);
    head = {static_cast<Major>(first >> 5), static_cast<std::uint8_t>(first & 0x1f),
            static_cast<std::uint64_t>(first & 0x1f), false};
    if (head.info < 24) return true;
    if (head.info > 27) {
      head.indefinite = head.info == 31;
      return head.indefinite || Fail("cbor: invalid additional information " + std::to_string(head.info));
    }
    const std::size_t size = std::size_t{1} << (head.info - 24);
    if (bytes_.size() - at_ < size) return Fail("unexpected EOF");
    head.value = 0;
    for (std::size_t i = 0; i < size; ++i) head.value = head.value << 8 | static_cast<unsigned char>(bytes_[at_++]);
    return true;
  }

  bool AtBreak() {
    if (at_ >= bytes_.size() || static_cast<unsigned char>(bytes_[at_]) != 0xff) return false;
    ++at_;
    return true;
  }

  bool Item(Value& out) {
    Head head{};
    if (!ReadHead(head)) return false;
    switch (head.major) {
      case kUnsigned:
      case kNegative:
        if (head.indefinite || head.value > static_cast<std::uint64_t>(INT64_MAX))
          return Fail("cbor: integer overflows int64");
        out = Value(head.major == kUnsigned ? static_cast<std::int64_t>(head.value)
                                            : -1 - static_cast<std::int64_t>(head.value));
        return true;
      case kByteString:
      case kTextString: {
        std::string_view text;
        if (!String(head, text)) return false;
        if (!base::IsValidUTF8(text)) return Fail("cbor: invalid UTF-8 string");
        out = Value(text);
        return true;
      }
      case kArray:
        return Nested([&] { return Array(head, out); });
      case kMap:
        return Nested([&] { return Map(head, out); });
      case kTag:
        return Nested([&] { return Tagged(head.value, out); });
      case kSimple:
        return Simple(head, out);
    }
    return false;
  }

  template <class F>
  bool Nested(F read) {
    if (++depth_ > kCBORDepthMax) return Fail("cbor: exceeded max nested level " + std::to_string(kCBORDepthMax));
    if (!read()) return false;
    --depth_;
    return true;
  }

  bool String(const Head& head, std::string_view& out) {
    if (!head.indefinite) {
      if (head.value > bytes_.size() - at_) return Fail("unexpected EOF");
      out = arena_.Copy(bytes_.substr(at_, static_cast<std::size_t>(head.value)));
      at_ += static_cast<std::size_t>(head.value);
      return true;
    }
    std::string joined;
    while (!AtBreak()) {
      Head chunk{};
      if (!ReadHead(chunk)) return false;
      if (chunk.major != head.major || chunk.indefinite)
        return Fail("cbor: wrong element type in an indefinite-length string");
      if (chunk.value > bytes_.size() - at_) return Fail("unexpected EOF");
      joined += bytes_.substr(at_, static_cast<std::size_t>(chunk.value));
      at_ += static_cast<std::size_t>(chunk.value);
    }
    out = arena_.Copy(joined);
    return true;
  }

  bool Array(const Head& head, Value& out) {
    out = Value::List(arena_);
    for (std::uint64_t i = 0; head.indefinite ? !AtBreak() : i < head.value; ++i) {
      Value item;
      if (!Item(item)) return false;
      out.Append(arena_, item);
    }
    return true;
  }

  bool Map(const Head& head, Value& out) {
    out = Value::Map(arena_);
    for (std::uint64_t i = 0; head.indefinite ? !AtBreak() : i < head.value; ++i) {
      Value key, value;
      if (!Item(key)) return false;
      if (!key.is_string()) return Fail("cbor: a map's key must be a string");
      if (out.Has(key.as_string())) {
        return Fail("cbor: found duplicate map key " + base::GoQuote(key.as_string()) + " at map element index " +
                    std::to_string(i));
      }
      if (!Item(value)) return false;
      out.Set(arena_, key.as_string(), value);
    }
    return true;
  }

  bool Tagged(std::uint64_t tag, Value& out) {
    if (tag == kTagBignum || tag == kTagNegativeBignum) return Fail("cbor: bignum is not allowed");
    if (tag == kTagBase64 || tag == kTagBase64URL || tag == kTagBase16) {
      Head head{};
      if (!ReadHead(head)) return false;
      std::string_view bytes;
      if (head.major != kByteString || !String(head, bytes))
        return Fail("cbor: the content of an expected conversion must be a byte string");
      out = Value::String(arena_, tag == kTagBase64      ? base::Base64Encode(bytes)
                                  : tag == kTagBase64URL ? base::Base64URLEncode(bytes)
                                                         : base::HexEncode(bytes));
      return true;
    }
    if (!Item(out)) return false;
    if (tag == kTagTimeText && !out.is_string()) return Fail("cbor: tag 0 must be followed by text");
    if (tag == kTagTimeEpoch) {
      if (!out.is_int()) return Fail("cbor: tag 1 must be followed by an integer");
      constexpr std::int64_t kSecondsMin = -62167219200, kSecondsMax = 253402300799;
      if (out.as_int() < kSecondsMin || out.as_int() > kSecondsMax) return Fail("cbor: time out of range");
      out = Value::String(arena_, object::FormatTime(out.as_int()));
    }
    return true;
  }

  bool Simple(const Head& head, Value& out) {
    if (head.indefinite) return Fail("cbor: unexpected \"break\" code");
    double number = 0;
    switch (head.info) {
      case 20:
        out = Value(false);
        return true;
      case 21:
        out = Value(true);
        return true;
      case 22:
        out = Value();
        return true;
      case 25:
        number = HalfToDouble(static_cast<std::uint16_t>(head.value));
        break;
      case 26:
        number = std::bit_cast<float>(static_cast<std::uint32_t>(head.value));
        break;
      case 27:
        number = std::bit_cast<double>(head.value);
        break;
      default:
        return Fail("cbor: simple value " + std::to_string(head.value) + " is not recognized");
    }
    if (!std::isfinite(number)) return Fail("cbor: floating-point NaN and infinity are not allowed");
    out = Value(number);
    return true;
  }

  Arena& arena_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
};

// Writes the values that JSON would have; the schema, if given, only says which texts are []byte.
class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  void Item(const Value& value, const Type* type) {
    switch (value.kind()) {
      case Value::Kind::kNull:
        out_ += '\xf6';
        break;
      case Value::Kind::kBool:
        out_ += value.as_bool() ? '\xf5' : '\xf4';
        break;
      case Value::Kind::kInt:
        if (type != nullptr && type->kind == Kind::kDouble) {
          Float(static_cast<double>(value.as_int()));  // JSON does not distinguish 1 from 1.0, Go's float64 is a float
        } else {
          Integer(value.as_int());
        }
        break;
      case Value::Kind::kDouble:
        Float(value.as_double());
        break;
      case Value::Kind::kString:
        Text(value.as_string(), type != nullptr && type->kind == Kind::kBytes);
        break;
      case Value::Kind::kRaw:
        break;  // opened up before
      case Value::Kind::kList:
        Head(kArray, value.size());
        for (const Value& item : value.items())
          Item(item, type != nullptr && type->kind == Kind::kList ? type->element : nullptr);
        break;
      case Value::Kind::kMap:
        Map(value, type);
    }
  }

  void Head(Major major, std::uint64_t value) {
    const auto top = static_cast<unsigned char>(major << 5);
    if (value < 24) {
      out_ += static_cast<char>(top | value);
      return;
    }
    const int log = value <= 0xff ? 0 : value <= 0xffff ? 1 : value <= 0xffffffff ? 2 : 3;
    out_ += static_cast<char>(top | (24 + log));
    for (int i = (1 << log) - 1; i >= 0; --i) out_ += static_cast<char>(value >> (8 * i));
  }

 private:
  void Integer(std::int64_t value) {
    if (value >= 0) return Head(kUnsigned, static_cast<std::uint64_t>(value));
    Head(kNegative, static_cast<std::uint64_t>(-1 - value));
  }

  void Text(std::string_view text, bool bytes) {
    if (!bytes) {
      Head(kByteString, text.size());
      out_ += text;
      return;
    }
    std::string decoded(text.size() + 1, '\0');
    decoded.resize(ReadBase64(text, decoded.data()));
    Head(kTag, kTagBase64);
    Head(kByteString, decoded.size());
    out_ += decoded;
  }

  // The shortest of the three widths that keeps the value.
  void Float(double value) {
    const auto single = static_cast<float>(value);
    if (static_cast<double>(single) != value) {
      out_ += '\xfb';
      return Big(std::bit_cast<std::uint64_t>(value), 8);
    }
    const auto bits = std::bit_cast<std::uint32_t>(single);
    std::uint16_t half = 0;
    if (Half(bits, half) && HalfToDouble(half) == value) {
      out_ += '\xf9';
      return Big(half, 2);
    }
    out_ += '\xfa';
    Big(bits, 4);
  }
  void Big(std::uint64_t value, int size) {
    for (int i = size - 1; i >= 0; --i) out_ += static_cast<char>(value >> (8 * i));
  }
  static bool Half(std::uint32_t bits, std::uint16_t& out) {
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127;
    const std::uint32_t mantissa = bits & 0x7fffff;
    if (bits << 1 == 0) {
      out = sign;
      return true;
    }
    if (exponent >= -14 && exponent <= 15) {
      if ((mantissa & 0x1fff) != 0) return false;
      out = static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | mantissa >> 13);
      return true;
    }
    if (exponent < -24 || exponent > 15) return false;
    const std::uint32_t whole = mantissa | 0x800000;  // subnormal
    const int shift = -exponent - 1;
    if ((whole & ((1u << shift) - 1)) != 0) return false;
    out = static_cast<std::uint16_t>(sign | whole >> shift);
    return true;
  }

  // By the encoded keys: shorter ones first, then byte by byte.
  void Map(const Value& value, const Type* type) {
    std::vector<const Member*> order;
    order.reserve(value.size());
    for (const Member& member : value.members()) order.push_back(&member);
    std::sort(order.begin(), order.end(), [](const Member* a, const Member* b) {
      return a->key.size() != b->key.size() ? a->key.size() < b->key.size() : a->key < b->key;
    });
    Head(kMap, order.size());
    for (const Member* member : order) {
      Text(member->key, false);
      const Type* inner = nullptr;
      if (type != nullptr && type->kind == Kind::kMap) inner = type->element;
      if (type != nullptr && type->kind == Kind::kStruct) {
        if (const schema::Field* field = type->structure->FindField(member->key)) inner = field->type;
      }
      Item(member->value, inner);
    }
  }

  std::string& out_;
};

Outcome<Decoded, DecodeError> Decode(Arena& arena, std::string_view bytes, const Struct* type,
                                     const DecodeOptions& options) {
  Reader reader(arena, bytes);
  Decoded decoded;
  if (!reader.Document(decoded.value)) return DecodeError{DecodeError::Kind::kSyntax, reader.error()};
  if (type == nullptr) return decoded;
  std::string json;
  EncodeJSON(decoded.value, json);
  return DecodeJSON(arena, json, *type, options);
}

void Encode(Arena& arena, std::string_view json, const Type* type, std::string& out) {
  const auto tree = DecodeJSON(arena, json);
  Encoder(out).Item(tree.ok() ? tree->value : Value(), type);
}

}  // namespace

Outcome<Decoded, DecodeError> DecodeCBOR(Arena& arena, std::string_view bytes, const Struct& type,
                                         const DecodeOptions& options) {
  return Decode(arena, bytes, &type, options);
}

Outcome<Decoded, DecodeError> DecodeCBOR(Arena& arena, std::string_view bytes, const DecodeOptions& options) {
  return Decode(arena, bytes, nullptr, options);
}

void EncodeCBOR(Arena& arena, const Value& value, const Struct& type, std::string& out) {
  out += kCBORMagic;
  EncodeCBORItem(arena, value, type, out);
}

void EncodeCBOR(Arena& arena, const Value& value, std::string& out) {
  std::string json;
  EncodeJSON(value, json);
  JSONToCBOR(arena, json, out);
}

void EncodeCBORItem(Arena& arena, const Value& value, const Struct& type, std::string& out) {
  std::string json;
  EncodeJSON(value, type, json);
  const Type root{Kind::kStruct, nullptr, &type};
  Encode(arena, json, &root, out);
}

void JSONToCBOR(Arena& arena, std::string_view json, std::string& out) {
  out += kCBORMagic;
  Encode(arena, json, nullptr, out);
}

void AppendCBORHead(CBORMajor major, std::uint64_t value, std::string& out) {
  Encoder(out).Head(static_cast<Major>(major), value);
}

void AppendCBORText(std::string_view text, std::string& out) {
  AppendCBORHead(CBORMajor::kByteString, text.size(), out);
  out += text;
}

}  // namespace keelson::codec
