// Values, types and expressions made of the bytes of a fuzz input. For fuzz targets only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cel/cost_estimator.h"
#include "cel/environment.h"
#include "cel/program.h"
#include "cel/value.h"

namespace keelson::cel {

// Decisions read from the input; zeros where it ends.
class FuzzBytes {
 public:
  explicit FuzzBytes(std::string_view bytes) : rest_(bytes) {}
  std::uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }
  std::uint32_t Below(std::uint32_t count) { return Byte() % count; }  // REQUIRES: 0 < count < 256
  std::uint64_t Word() {
    std::uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | Byte();
    return word;
  }
  std::string_view Text(std::size_t bytes_max) {
    const std::string_view text = rest_.substr(0, bytes_max);
    rest_.remove_prefix(text.size());
    return text;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// A value of any kind that a variable may have.
class FuzzValues {
 public:
  static constexpr int kDepthMax = 4;
  static constexpr std::uint32_t kEntriesMax = 12;

  FuzzValues(Arena& arena, FuzzBytes& bytes) : arena_(arena), bytes_(bytes) {}

  Val Int() { return Val::Int(bytes_.Below(2) == 0 ? bytes_.Byte() - 8 : static_cast<std::int64_t>(bytes_.Word())); }
  Val Uint() { return Val::Uint(bytes_.Below(2) == 0 ? bytes_.Byte() : bytes_.Word()); }
  Val Double() {
    const std::uint64_t word = bytes_.Word();
    double value = 0;
    static_assert(sizeof(value) == sizeof(word));
    __builtin_memcpy(&value, &word, sizeof(value));
    return Val::Double(bytes_.Below(2) == 0 ? bytes_.Byte() / 4.0 : value);
  }
  // Valid UTF-8, as every string of an object is; some of it outside of ASCII.
  Val String() {
    static constexpr std::string_view kTexts[] = {
        "",       "a",     "1Gi",   "1.2.3", "10.0.0.1/8", "::1", "h://",        "2024-01-01", "日本",
        "(a+)+$", "%s %d", "1h30m", "-5",    "true",       "ÄÖ",  "a,b,c,d,e,f", "0x1p-2",     "\xF0\x9F\x98\x80"};
    const std::uint32_t choice = bytes_.Below(32);
    if (choice < std::size(kTexts)) return Val::String(kTexts[choice]);
    const std::size_t size = bytes_.Byte();
    std::string text(bytes_.Text(size));
    for (char& c : text) c = static_cast<char>(c & 0x7F);
    return Val::String(arena_.Copy(text));
  }
  Val Bytes() { return Val::Bytes(arena_.Copy(bytes_.Text(bytes_.Byte()))); }
  Val Duration() { return Val::Duration(static_cast<std::int64_t>(bytes_.Word())); }
  Val Timestamp() {
    constexpr std::int64_t kSecondsMin = -62'135'596'800, kSecondsMax = 253'402'300'799;  // years 1 to 9999
    const auto seconds = static_cast<std::int64_t>(bytes_.Word() % (kSecondsMax - kSecondsMin)) + kSecondsMin;
    return Val::Timestamp(seconds, static_cast<std::int32_t>(bytes_.Word() % 1'000'000'000));
  }
  template <class Make>
  Val List(Make make) {
    const std::uint32_t size = bytes_.Below(kEntriesMax);
    cel::List* const list = NewList(arena_, size);
    for (std::uint32_t i = 0; i < size; ++i) Append(arena_, *list, make());
    return Val::Of(list);
  }
  template <class MakeKey, class Make>
  Val MapOf(MakeKey make_key, Make make) {
    const std::uint32_t size = bytes_.Below(kEntriesMax);
    Map* const map = NewMap(arena_, size);
    for (std::uint32_t i = 0; i < size; ++i) {
      const Val key = make_key();
      map->Set(arena_, key, make());
    }
    return Val::Of(map);
  }
  Val Key() {
    switch (bytes_.Below(4)) {
      case 0:
        return Int();
      case 1:
        return Uint();
      case 2:
        return Val::Bool(bytes_.Below(2) != 0);
      default:
        return String();
    }
  }
  Val Any(int depth = 0) {
    switch (bytes_.Below(depth < kDepthMax ? 14 : 9)) {
      case 0:
        return Val::Null();
      case 1:
        return Val::Bool(bytes_.Below(2) != 0);
      case 2:
        return Int();
      case 3:
        return Uint();
      case 4:
        return Double();
      case 5:
        return String();
      case 6:
        return Bytes();
      case 7:
        return Duration();
      case 8:
        return Timestamp();
      case 9:
        return Val::OptionalOf(arena_, Any(depth + 1));
      case 10:
        return List([&] { return Any(depth + 1); });
      case 11:
        return MapOf([&] { return Key(); }, [&] { return Any(depth + 1); });
      case 12:
        return List([&] { return Int(); });
      default:
        return MapOf([&] { return String(); }, [&] { return Any(depth + 1); });
    }
  }

 private:
  Arena& arena_;
  FuzzBytes& bytes_;
};

inline constexpr const Type* kFuzzIntParams[] = {&kIntType};
inline constexpr const Type* kFuzzStringParams[] = {&kStringType, &kStringType};
inline constexpr Type kFuzzIntListType{.kind = Kind::kList, .param_count = 1, .name = "list", .params = kFuzzIntParams};
inline constexpr Type kFuzzStringListType{
    .kind = Kind::kList, .param_count = 1, .name = "list", .params = kFuzzStringParams};
inline constexpr Type kFuzzStringMapType{
    .kind = Kind::kMap, .param_count = 2, .name = "map", .params = kFuzzStringParams};

// self (dyn), b n u d s y t p of simple types, l of integers, ls of strings, m from strings to strings.
inline EnvironmentPtr FuzzEnvironment() {
  return BaseEnvironment(ExpressionMode::kStored)
      ->Extend({.libraries = {Library::kBindings},
                .variables = {{"self", &kDynType},
                              {"b", &kBoolType},
                              {"n", &kIntType},
                              {"u", &kUintType},
                              {"d", &kDoubleType},
                              {"s", &kStringType},
                              {"y", &kBytesType},
                              {"t", &kTimestampType},
                              {"p", &kDurationType},
                              {"l", &kFuzzIntListType},
                              {"ls", &kFuzzStringListType},
                              {"m", &kFuzzStringMapType}}});
}

inline ValueActivation FuzzActivation(Arena& arena, FuzzBytes& bytes) {
  FuzzValues values(arena, bytes);
  ValueActivation activation;
  activation.Set("self", values.Any());
  activation.Set("b", Val::Bool(bytes.Below(2) != 0));
  activation.Set("n", values.Int());
  activation.Set("u", values.Uint());
  activation.Set("d", values.Double());
  activation.Set("s", values.String());
  activation.Set("y", values.Bytes());
  activation.Set("t", values.Timestamp());
  activation.Set("p", values.Duration());
  activation.Set("l", values.List([&] { return values.Int(); }));
  activation.Set("ls", values.List([&] { return values.String(); }));
  activation.Set("m", values.MapOf([&] { return values.String(); }, [&] { return values.String(); }));
  return activation;
}

// The sizes that the variables really have: the estimate made with them bounds the cost from above.
class FuzzSizes final : public SizeEstimator {
 public:
  FuzzSizes(Arena& arena, ValueActivation& activation) : arena_(arena), activation_(activation) {}
  std::optional<Estimate> EstimateSize(std::span<const std::string_view> path, const Type&) const override {
    if (path.empty() || path.size() > 2) return std::nullopt;
    Val value;
    if (!activation_.Find(arena_, path[0], &value)) return std::nullopt;
    if (path.size() == 1) return Fixed(value);
    if (value.is_list()) return Widest(value.list().size, [&](std::uint32_t i) { return value.list().Get(arena_, i); });
    if (!value.is_map()) return std::nullopt;
    const Map& map = value.map();
    if (path[1] == "@keys") return Widest(map.size, [&](std::uint32_t i) { return *map.KeyAt(arena_, i); });
    return Widest(map.size, [&](std::uint32_t i) { return map.ValueAt(arena_, i); });
  }

 private:
  static std::optional<Estimate> Fixed(const Val& value) {
    const auto size = SizeOf(value);
    return size ? std::optional(Estimate::Fixed(*size)) : std::nullopt;
  }
  template <class At>
  static std::optional<Estimate> Widest(std::uint32_t count, At at) {
    std::optional<Estimate> widest;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto size = Fixed(at(i));
      if (!size) return std::nullopt;
      widest = widest ? widest->Union(*size) : *size;
    }
    return widest.value_or(Estimate::Fixed(0));
  }

  Arena& arena_;
  ValueActivation& activation_;
};

}  // namespace keelson::cel
