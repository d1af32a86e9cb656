// One pass over a padded copy of the text. A syntax error only stops the pass: json_syntax.cc then finds Go's words for
// it. Type errors are remembered and the value passed over, because a syntax error further on comes first.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>

#include "base/strings.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/json_frame.h"
#include "codec/json_tokens.h"
#include "codec/scalars.h"
#include "codec/scan.h"
#include "codec/scratch.h"

namespace keelson::codec {
namespace {

using base::Arena;
using object::Member;
using schema::Field;
using schema::Kind;
using schema::Struct;
using schema::Type;

// Below this a map's keys are compared pairwise for duplicates; above it the Value's own index finds them.
constexpr std::size_t kPairwiseMax = 16;

const char* PaddedCopy(Arena& arena, std::string_view text) {
  char* copy = arena.NewArray<char>(text.size() + kScanPadding);
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  std::memset(copy + text.size(), 0, kScanPadding);
  return copy;
}

class Reader : JSONTokens {
 public:
  Reader(Arena& arena, std::string_view text, const DecodeOptions& options)
      : JSONTokens(arena, PaddedCopy(arena, text)),
        strict_(options.strict),
        begin_(at_),
        end_(at_ + text.size()),
        members_(arena),
        items_(arena) {}

  // Reads where the text lies. REQUIRES: as JSONTokens.
  Reader(Arena& arena, const char* text) : JSONTokens(arena, text), strict_(false), members_(arena), items_(arena) {}
  // The end of the value that begins here, or nullptr.
  const char* PassOver() {
    if (!Skip()) return nullptr;
    Space();
    return at_;
  }

  // False when the text is not well formed, or a type error was found that ends decoding at once.
  bool Document(const Struct* type, Value& out) {
    Space();
    if (type == nullptr) {
      if (!Any(out)) return false;
    } else if (*at_ == '{') {
      if (!ReadStruct(*type, out)) return false;
    } else {
      const Type root{Kind::kStruct, nullptr, type};
      if (!ReadTyped(root, nullptr, out)) return false;
      if (!out.is_map()) out = Value::Map(arena_);
    }
    Space();
    return at_ == end_;
  }

  bool ReadTypeMeta(TypeMeta& out) {
    Space();
    if (*at_ != '{') {
      if (*at_ != 'n') {
        TypeError(
            Describe(),
            R"(struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" })",
            nullptr);
      }
      if (!Skip()) return false;
    } else {
      if (!ReadTypeMetaMembers(out)) return false;
    }
    Space();
    return at_ == end_;
  }

  const std::string& error() const { return error_; }
  // In the order of the text: duplicates of a map are found at its end.
  std::vector<std::string> strict_errors() {
    std::vector<std::string> texts;
    texts.reserve(strict_errors_.size());
    for (Strict& error : strict_errors_) texts.push_back(std::move(error.text));
    return texts;
  }

 private:
  // ---- untyped ----

  bool Any(Value& out) {
    switch (*at_) {
      case '{':
        return AnyMap(out);
      case '[':
        return AnyList(out);
      case '"': {
        ++at_;
        std::string_view text;
        if (!String(text)) return false;
        out = Value(text);
        return true;
      }
      case 't':
        out = Value(true);
        return Literal("true", 4);
      case 'f':
        out = Value(false);
        return Literal("false", 5);
      case 'n':
        out = Value();
        return Literal("null", 4);
      default: {
        std::string_view number;
        bool integer = false;
        if (!Number(number, integer)) return false;
        if (!ParseNumber(number, out)) TypeError("number " + std::string(number), "float64", nullptr);
        return true;
      }
    }
  }

  bool AnyList(Value& out) {
    return Items(out, [this](Value& item) { return Any(item); });
  }
  bool AnyMap(Value& out) {
    return Members(out, [this](Value& value) { return Any(value); });
  }

  // A list; `read` reads an item.
  template <class Read>
  bool Items(Value& out, Read read) {
    if (++depth_ > kDepthMax) return false;
    ++at_;
    const std::size_t start = items_.size();
    JSONFrame frame{frame_, nullptr, nullptr, {}, 0};
    frame_ = &frame;
    Space();
    if (*at_ == ']') {
      ++at_;
    } else {
      for (;;) {
        Value item;
        if (!read(item)) return false;
        items_.Push(item);
        ++frame.index;
        Space();
        const char c = *at_++;
        if (c == ']') break;
        if (c != ',') return false;
        Space();
      }
    }
    out = Value::ListOf(arena_, items_.From(start));
    items_.Cut(start);
    frame_ = frame.parent;
    --depth_;
    return true;
  }

  // A map; `read` reads a member's value.
  template <class Read>
  bool Members(Value& out, Read read) {
    if (++depth_ > kDepthMax) return false;
    ++at_;
    const std::size_t start = members_.size();
    JSONFrame frame{frame_};
    frame_ = &frame;
    Space();
    if (*at_ == '}') {
      ++at_;
    } else {
      for (;;) {
        if (!Key(frame.key)) return false;
        Value value;
        if (!read(value)) return false;
        members_.Push({frame.key, value});
        bool more = false;
        if (!MoreMembers(more)) return false;
        if (!more) break;
      }
    }
    FinishMap(start, frame, out);
    return true;
  }

  bool Key(std::string_view& key) {
    if (*at_ != '"') return false;
    ++at_;
    if (!String(key)) return false;
    return Colon();
  }
  bool Colon() {
    if (*at_ == ':') [[likely]] {
      ++at_;
      Space();
      return true;
    }
    Space();
    if (*at_++ != ':') return false;
    Space();
    return true;
  }
  bool MoreMembers(bool& more) {
    Space();
    const char c = *at_++;
    more = c == ',';
    if (!more) return c == '}';
    Space();
    return true;
  }

  // Makes the map of what was read since `start`; of keys that repeat the last one stays, in the first one's place.
  void FinishMap(std::size_t start, const JSONFrame& frame, Value& out) {
    const std::span<Member> read = members_.From(start);
    frame_ = frame.parent;
    if (read.size() > kPairwiseMax || HasDuplicate(read)) {
      out = Value::Map(arena_, read.size());
      for (const Member& member : read) {
        if (Value* found = out.Find(member.key)) {
          StrictError("duplicate field ", member.key, IsInText(member.key) ? member.key.data() : at_);
          *found = member.value;
        } else {
          out.Set(arena_, member.key, member.value);
        }
      }
    } else {
      out = Value::MapOf(arena_, read);
    }
    members_.Cut(start);
    --depth_;
  }

  static bool HasDuplicate(std::span<const Member> members) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (members[k].key == members[i].key) return true;
      }
    }
    return false;
  }

  // ---- by schema ----

  bool ReadStruct(const Struct& type, Value& out) {
    if (++depth_ > kDepthMax) return false;
    ++at_;
    const std::size_t start = members_.size();
    std::uint64_t seen[2] = {0, 0};
    JSONFrame frame{frame_, &type};
    frame_ = &frame;
    Space();
    if (*at_ == '}') {
      ++at_;
    } else {
      for (;;) {
        if (*at_ != '"') return false;
        ++at_;
        std::string_view key;
        if (!String(key)) return false;
        if (!Colon()) return false;
        const std::uint16_t position = type.FindPosition(key);
        if (position == Struct::kNoPosition) [[unlikely]] {
          frame_ = frame.parent;
          StrictError("unknown field ", key);
          frame_ = &frame;
          if (!Skip()) return false;
        } else {
          const schema::JSONField& row = type.json[position];
          frame.field = row.field;
          std::uint64_t& word = seen[position / 64 & 1];
          const std::uint64_t bit = std::uint64_t{1} << (position % 64);
          const bool again = (word & bit) != 0;
          word |= bit;
          if (!ReadField(*frame.field, row, again, start)) return false;
        }
        bool more = false;
        if (!MoreMembers(more)) return false;
        if (!more) break;
      }
    }
    out = Value::MapOf(arena_, members_.From(start));
    members_.Cut(start);
    frame_ = frame.parent;
    --depth_;
    return true;
  }

  bool ReadField(const Field& field, const schema::JSONField& row, bool again, std::size_t start) {
    Value value;
    if (again) [[unlikely]] {
      const JSONFrame* own = frame_;
      frame_ = own->parent;
      StrictError("duplicate field ", field.name);
      frame_ = own;
    }
    const bool null = *at_ == 'n';
    if (!ReadTyped(*field.type, &field, value)) return false;
    if (again) [[unlikely]] {
      Again(field, null, value, start);
      return true;
    }
    if (value.is_null() || (!field.pointer && IsZero(*field.type, value))) return true;
    value.set_place(row.place);
    members_.Push({{row.quoted + 1, row.name_size}, value});
    return true;
  }

  // A field that was there before: Go decodes into the same place, so structs and maps merge and null changes only
  // pointers, lists and maps.
  void Again(const Field& field, bool null, Value value, std::size_t start) {
    const auto members = members_.From(start);
    const auto old = std::ranges::find(members, field.name, &Member::key);
    const bool merges = field.type->kind == Kind::kStruct || field.type->kind == Kind::kMap;
    if (old != members.end() && old->value.is_map() && value.is_map() && merges) {
      Merge(*field.type, old->value, value);
      return;
    }
    const bool nil = field.pointer || field.type->kind == Kind::kList || field.type->kind == Kind::kMap ||
                     field.type->kind == Kind::kBytes;
    if (null && !nil) return;
    const bool drop = value.is_null() || (!field.pointer && IsZero(*field.type, value));
    if (old == members.end()) {
      if (!drop) members_.Push({field.name, value});
    } else if (!drop) {
      old->value = value;
    } else {
      *old = members.back();
      members_.Cut(members_.size() - 1);
    }
  }

  void Merge(const Type& type, Value into, const Value& from) {
    for (const Member& member : from.members()) {
      Value* old = into.Find(member.key);
      const Field* field = type.kind == Kind::kStruct ? type.structure->FindField(member.key) : nullptr;
      if (old != nullptr && field != nullptr && field->type->kind == Kind::kStruct && old->is_map() &&
          member.value.is_map()) {
        Merge(*field->type, *old, member.value);
      } else {
        into.Set(arena_, member.key, member.value);
      }
    }
  }

  // `out` is null for JSON's null, the zero time, and what did not fit.
  bool ReadTyped(const Type& type, const Field* field, Value& out) {
    const char c = *at_;
    switch (type.kind) {
      case Kind::kString:
        if (c != '"') return Mismatch(type);
        {
          ++at_;
          std::string_view text;
          if (!String(text)) return false;
          out = Value(text);
        }
        return true;
      case Kind::kStruct:
        if (c != '{') return Mismatch(type);
        return ReadStruct(*type.structure, out);
      case Kind::kList:
        if (c != '[') return Mismatch(type);
        return ReadList(*type.element, out);
      case Kind::kMap:
        if (c != '{') return Mismatch(type);
        return ReadMap(*type.element, out);
      case Kind::kBool:
        if (c == 't') {
          out = Value(true);
          return Literal("true", 4);
        }
        if (c == 'f') {
          out = Value(false);
          return Literal("false", 5);
        }
        return Mismatch(type);
      case Kind::kInt32:
        return ReadInt(type, INT32_MIN, INT32_MAX, false, out);
      case Kind::kInt64:
        return ReadInt(type, INT64_MIN, INT64_MAX, false, out);
      case Kind::kDouble:
        return ReadDouble(type, out);
      case Kind::kIntOrString:
        if (c == '"') {
          ++at_;
          std::string_view text;
          if (!String(text)) return false;
          out = Value(text);
          return true;
        }
        return ReadInt(Type{Kind::kInt32}, INT32_MIN, INT32_MAX, true, out);
      case Kind::kBytes:
      case Kind::kTime:
      case Kind::kMicroTime:
      case Kind::kDuration:
        return ReadText(type, field, out);
      case Kind::kQuantity:
        return ReadQuantity(out);
      case Kind::kRaw:
      case Kind::kFieldsV1:
      case Kind::kJSON: {
        const char* start = at_;
        if (!Skip()) return false;
        if (c != 'n') out = Value::Raw({start, static_cast<std::size_t>(at_ - start)});
        return true;
      }
      case Kind::kEither:
        return ReadEither(type, field, out);
    }
    return false;
  }

  bool ReadList(const Type& element, Value& out) {
    return Items(out, [&](Value& item) { return ReadElement(element, item); });
  }
  bool ReadMap(const Type& element, Value& out) {
    return Members(out, [&](Value& value) { return ReadElement(element, value); });
  }
  bool ReadElement(const Type& element, Value& out) {
    if (!ReadTyped(element, nullptr, out)) return false;
    if (out.is_null()) out = ZeroOf(arena_, element);
    return true;
  }

  bool ReadInt(const Type& type, std::int64_t low, std::int64_t high, bool fatal, Value& out) {
    if (*at_ != '-' && !IsDigit(*at_)) return Mismatch(type, fatal);
    std::string_view text;
    bool integer = false;
    if (!Number(text, integer)) return false;
    std::int64_t value = 0;
    if (integer) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      integer = error == std::errc() && value >= low && value <= high;
    }
    if (!integer) return TypeError("number " + std::string(text), GoTypeAt(frame_, type), fatal ? "fatal" : nullptr);
    out = Value(value);
    return true;
  }

  bool ReadDouble(const Type& type, Value& out) {
    if (*at_ != '-' && !IsDigit(*at_)) return Mismatch(type);
    std::string_view text;
    bool integer = false;
    double value = 0;
    if (!Number(text, integer)) return false;
    if (!ParseDouble(text, value)) return TypeError("number " + std::string(text), "float64", nullptr);
    out = Value(value);
    return true;
  }

  // Bytes, times and durations: a string in JSON, checked and made canonical.
  bool ReadText(const Type& type, const Field* field, Value& out) {
    const bool bytes = type.kind == Kind::kBytes;
    std::string_view text;
    if (*at_ == 'n' && type.kind == Kind::kDuration && field != nullptr && !field->pointer) {
      if (!Literal("null", 4)) return false;
      return Fatal("time: invalid duration \"\"");  // Go parses the empty string then.
    }
    if (*at_ == '[' && bytes) return ReadByteArray(out);
    if (*at_ != '"') return bytes ? Mismatch(type) : Mismatch(Type{Kind::kString}, true);
    ++at_;
    if (!String(text)) return false;
    std::string error;
    switch (type.kind) {
      case Kind::kBytes:
        if (CanonicalBase64(arena_, text, out, error)) return true;
        if (error_.empty()) error_ = error;  // Go goes on after this one.
        return true;
      case Kind::kTime:
      case Kind::kMicroTime:
        return CanonicalTime(arena_, text, type.kind == Kind::kMicroTime, out, error) || Fatal(error);
      default:
        return CanonicalDuration(arena_, text, out, error) || Fatal(error);
    }
  }

  // encoding/json also takes an array of numbers for a []byte.
  bool ReadByteArray(Value& out) {
    Value numbers;
    const bool read = Items(numbers, [&](Value& number) {
      if (*at_ == 'n') {
        number = Value(0);
        return Literal("null", 4);
      }
      std::string what = Describe();
      if (what != "number") return Skip() && TypeError(what, "uint8", nullptr);
      std::string_view text;
      bool integer = false;
      if (!Number(text, integer)) return false;
      unsigned value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (!integer || error != std::errc() || value > 255)
        return TypeError("number " + std::string(text), "uint8", nullptr);
      number = Value(static_cast<std::int64_t>(value));
      return true;
    });
    if (!read) return false;
    std::string bytes;
    for (const Value& number : numbers.items()) bytes.push_back(static_cast<char>(number.as_int()));
    std::string text(Base64Size(bytes.size()), '\0');
    WriteBase64(bytes.data(), bytes.size(), text.data());
    out = Value::String(arena_, text);
    return true;
  }

  // Any value is taken as text, as Quantity.UnmarshalJSON does.
  bool ReadQuantity(Value& out) {
    std::string_view text;
    if (*at_ == '"') {
      ++at_;
      if (!String(text)) return false;
    } else {
      const char* start = at_;
      if (!Skip()) return false;
      text = {start, static_cast<std::size_t>(at_ - start)};
      if (text == "null") return true;
    }
    std::string error;
    return CanonicalQuantity(arena_, text, out, error) || Fatal(error);
  }

  // One of the unnamed alternatives, chosen by the value's first character. Unknown fields below are not reported: Go
  // uses a custom UnmarshalJSON there.
  bool ReadEither(const Type& type, const Field* field, Value& out) {
    const bool strict = strict_;
    const char c = *at_;
    for (const Field* alternative : type.structure->json_fields) {
      const Kind kind = alternative->type->kind;
      const bool fits = (c == '{' && kind == Kind::kStruct) || (c == '[' && kind == Kind::kList) ||
                        ((c == 't' || c == 'f') && kind == Kind::kBool);
      if (!fits) continue;
      strict_ = false;
      const bool ok = ReadTyped(*alternative->type, alternative, out);
      strict_ = strict;
      return ok;
    }
    if (!Skip()) return false;
    const bool boolean =
        std::ranges::any_of(type.structure->json_fields, [](const Field* f) { return f->type->kind == Kind::kBool; });
    if (boolean && (c != 'n' || field == nullptr || !field->pointer)) return Fatal("boolean or JSON schema expected");
    return true;
  }

  bool ReadTypeMetaMembers(TypeMeta& out) {
    static constexpr Type kText{Kind::kString};
    ++at_;
    Space();
    if (*at_ == '}') {
      ++at_;
      return true;
    }
    for (;;) {
      std::string_view key;
      if (!Key(key)) return false;
      if (key == "apiVersion" || key == "kind") {
        Value value;
        if (*at_ != '"' && *at_ != 'n') {
          TypeError(Describe(), "string", key.data(), key);
          if (!Skip()) return false;
        } else if (!ReadTyped(kText, nullptr, value)) {
          return false;
        } else if (value.is_string()) {
          (key == "kind" ? out.kind : out.api_version) = value.as_string();
        }
      } else if (!Skip()) {
        return false;
      }
      bool more = false;
      if (!MoreMembers(more)) return false;
      if (!more) return true;
    }
  }

  // ---- errors ----

  // Something else than the type wants: null is nothing, everything else an error that does not end decoding.
  [[gnu::noinline]] bool Mismatch(const Type& type, bool fatal = false) {
    if (*at_ == 'n') return Literal("null", 4);
    const std::string what = Describe();
    if (!Skip()) return false;
    return TypeError(what, GoTypeAt(frame_, type), fatal ? "fatal" : nullptr);
  }

  std::string Describe() const {
    switch (*at_) {
      case '{':
        return "object";
      case '[':
        return "array";
      case '"':
        return "string";
      case 't':
      case 'f':
        return "bool";
      default:
        return "number";
    }
  }

  // Returns false when `fatal`: decoding ends there in Go, because a type's own decoder returned the error.
  [[gnu::noinline]] bool TypeError(const std::string& what, const std::string& type, const char* fatal,
                                   std::string_view lone_field = {}) {
    std::string text = "json: cannot unmarshal " + what + " into Go ";
    text += lone_field.empty() ? GoPlace(frame_) : "struct field ." + std::string(lone_field);
    text += " of type " + type;
    const bool ends = fatal != nullptr && lone_field.empty();
    if (error_.empty() || ends) error_ = std::move(text);
    return !ends;
  }

  bool Fatal(std::string_view text) {
    error_ = text;
    return false;
  }

  struct Strict {
    const char* at;
    std::string text;
  };

  // False for a key with escapes, which is made anew.
  bool IsInText(std::string_view key) const {
    return std::less_equal<>()(begin_, key.data()) && std::less<>()(key.data(), end_);
  }

  void StrictError(std::string_view what, std::string_view key) { StrictError(what, key, at_); }
  [[gnu::noinline]] void StrictError(std::string_view what, std::string_view key, const char* at) {
    if (!strict_ || strict_errors_.size() >= kStrictErrorsMax) return;
    std::string path = PathOf(frame_);
    if (!path.empty()) path += '.';
    path += key;
    std::string text = std::string(what) + base::GoQuote(path);
    if (std::ranges::find(strict_errors_, text, &Strict::text) == strict_errors_.end())
      strict_errors_.insert(std::ranges::upper_bound(strict_errors_, at, std::less<>(), &Strict::at),
                            {at, std::move(text)});
  }

  bool strict_;
  const char* begin_ = nullptr;
  const char* end_ = nullptr;
  const JSONFrame* frame_ = nullptr;
  Scratch<Member> members_;
  Scratch<Value> items_;
  std::string error_;
  std::vector<Strict> strict_errors_;
};

DecodeError ErrorOf(const Reader& reader, std::string_view text, bool complete) {
  if (!complete) {
    if (std::string syntax = JSONSyntaxError(text); !syntax.empty())
      return {DecodeError::Kind::kSyntax, std::move(syntax)};
  }
  return {DecodeError::Kind::kType, reader.error()};
}

Outcome<Decoded, DecodeError> Decode(Arena& arena, std::string_view text, const Struct* type,
                                     const DecodeOptions& options) {
  constexpr std::size_t kTreePerByte = 3;  // what the tree takes, roughly
  arena.Reserve(text.size() * (1 + kTreePerByte) + kScanPadding);
  Reader reader(arena, text, options);
  Decoded decoded;
  const bool complete = reader.Document(type, decoded.value);
  if (complete && reader.error().empty()) {
    decoded.strict_errors = reader.strict_errors();
    return decoded;
  }
  return ErrorOf(reader, text, complete);
}

}  // namespace

Outcome<Decoded, DecodeError> DecodeJSON(Arena& arena, std::string_view text, const Struct& type,
                                         const DecodeOptions& options) {
  return Decode(arena, text, &type, options);
}

Outcome<Decoded, DecodeError> DecodeJSON(Arena& arena, std::string_view text, const DecodeOptions& options) {
  return Decode(arena, text, nullptr, options);
}

bool IsJSONInPlace(Arena& arena, std::string_view text) {
  return Reader(arena, text.data()).PassOver() == text.data() + text.size();
}

Outcome<TypeMeta, DecodeError> FindTypeMeta(Arena& arena, std::string_view text) {
  Reader reader(arena, text, {});
  TypeMeta meta;
  const bool complete = reader.ReadTypeMeta(meta);
  if (complete && reader.error().empty()) return meta;
  return ErrorOf(reader, text, complete);
}

}  // namespace keelson::codec
