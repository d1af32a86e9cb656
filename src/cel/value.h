// Run-time values of CEL: handles of sixteen bytes. Scalars are in the handle; lists, maps and opaque values live in
// the arena of the evaluation. Objects are views over object::Value with an optional structural schema: nothing is
// copied. Thread safety: none while a value is built; constants of a program are read by any number of evaluations.
// Lifetime: no longer than the arena, the viewed object and the schema.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "cel/type.h"
#include "object/netip.h"
#include "object/quantity.h"
#include "object/value.h"
#include "schema/structural/structural.h"

namespace keelson::cel {

using base::Arena;
using schema::structural::Node;

struct List;
struct Map;
struct Message;
struct QuantityObject;
struct Semver;
struct URL;
struct NamedFormat;
struct AuthorizerObject;

class Val {
 public:
  enum class Tag : std::uint8_t {
    kError,
    kNull,
    kBool,
    kInt,
    kUint,
    kDouble,
    kString,
    kBytes,
    kDuration,
    kTimestamp,
    kType,
    kList,
    kMap,
    kOptional,
    kPreserved,  // a value kept by x-kubernetes-preserve-unknown-fields: nothing but equality
    kMessage,    // Object{...}, JSONPatch{...}
    kQuantity,
    kURL,
    kIP,
    kCIDR,
    kSemver,
    kFormat,
    kAuthorizer,
    kPathCheck,
    kGroupCheck,
    kResourceCheck,
    kDecision,
  };

  constexpr Val() = default;  // null
  static constexpr Val Null() { return {}; }
  static constexpr Val Bool(bool value) { return Val(Tag::kBool, 0, static_cast<std::uint64_t>(value)); }
  static constexpr Val Int(std::int64_t value) { return Val(Tag::kInt, 0, static_cast<std::uint64_t>(value)); }
  static constexpr Val Uint(std::uint64_t value) { return Val(Tag::kUint, 0, value); }
  static Val Double(double value);
  // Texts are not copied: they must live as long as the value.
  static Val String(std::string_view text) { return Val(Tag::kString, text); }
  static Val Bytes(std::string_view bytes) { return Val(Tag::kBytes, bytes); }
  static Val TypeName(std::string_view name) { return Val(Tag::kType, name); }
  static Val Error(std::string_view message) { return Val(Tag::kError, message); }
  static Val Error(const char* literal) { return Error(std::string_view(literal)); }
  static Val Error(std::string&&) = delete;  // would dangle: ErrorIn(arena, ...)
  static constexpr Val Duration(std::int64_t nanoseconds) {
    return Val(Tag::kDuration, 0, static_cast<std::uint64_t>(nanoseconds));
  }
  // `offset` is the zone the text was written in, in minutes east of UTC: string() shows it.
  static constexpr Val Timestamp(std::int64_t seconds, std::int32_t nanos, std::int16_t offset = 0) {
    Val value(Tag::kTimestamp, static_cast<std::uint32_t>(nanos), static_cast<std::uint64_t>(seconds));
    value.aux_ = offset;
    return value;
  }
  static Val Of(const List* list) { return Val(Tag::kList, list); }
  static Val Of(const Map* map) { return Val(Tag::kMap, map); }
  static Val OptionalNone() { return Val(Tag::kOptional, static_cast<const void*>(nullptr)); }
  static Val OptionalOf(Arena& arena, Val value);
  static Val OfPointer(Tag tag, const void* pointer, std::int16_t aux = 0) {
    Val value(tag, pointer);
    value.aux_ = aux;
    return value;
  }

  Tag tag() const { return tag_; }
  bool is(Tag tag) const { return tag_ == tag; }
  bool is_error() const { return tag_ == Tag::kError; }
  bool is_null() const { return tag_ == Tag::kNull; }
  bool is_bool() const { return tag_ == Tag::kBool; }
  bool is_true() const { return tag_ == Tag::kBool && bits_ != 0; }
  bool is_false() const { return tag_ == Tag::kBool && bits_ == 0; }
  bool is_string() const { return tag_ == Tag::kString; }
  bool is_list() const { return tag_ == Tag::kList; }
  bool is_map() const { return tag_ == Tag::kMap; }
  bool is_optional() const { return tag_ == Tag::kOptional; }

  // REQUIRES: the tag fits.
  bool bool_value() const { return bits_ != 0; }
  std::int64_t int_value() const { return static_cast<std::int64_t>(bits_); }  // int, duration, timestamp seconds
  std::uint64_t uint_value() const { return bits_; }
  double double_value() const;
  std::string_view text() const { return {text_, size_}; }  // string, bytes, type name, error message
  std::int32_t nanos() const { return static_cast<std::int32_t>(size_); }
  std::int16_t aux() const { return aux_; }
  const List& list() const { return *static_cast<const List*>(pointer_); }
  const Map& map() const { return *static_cast<const Map*>(pointer_); }
  const void* pointer() const { return pointer_; }
  bool has_value() const { return pointer_ != nullptr; }                            // optional
  const Val& optional_value() const { return *static_cast<const Val*>(pointer_); }  // optional with a value
  const QuantityObject& quantity() const { return *static_cast<const QuantityObject*>(pointer_); }
  const URL& url() const { return *static_cast<const URL*>(pointer_); }
  const object::Addr& ip() const { return *static_cast<const object::Addr*>(pointer_); }
  const object::Prefix& cidr() const { return *static_cast<const object::Prefix*>(pointer_); }
  const Semver& semver() const { return *static_cast<const Semver*>(pointer_); }
  const NamedFormat& format() const { return *static_cast<const NamedFormat*>(pointer_); }
  const AuthorizerObject& authorizer() const { return *static_cast<const AuthorizerObject*>(pointer_); }
  const Message& message() const { return *static_cast<const Message*>(pointer_); }

 private:
  constexpr Val(Tag tag, std::uint32_t size, std::uint64_t bits) : tag_(tag), size_(size), bits_(bits) {}
  Val(Tag tag, std::string_view text) : tag_(tag), size_(static_cast<std::uint32_t>(text.size())), text_(text.data()) {}
  Val(Tag tag, const void* pointer) : tag_(tag), pointer_(pointer) {}

  Tag tag_ = Tag::kNull;
  std::int16_t aux_ = 0;
  std::uint32_t size_ = 0;  // bytes of the text; nanoseconds of a timestamp
  union {
    std::uint64_t bits_ = 0;
    const char* text_;
    const void* pointer_;
  };
};
static_assert(sizeof(Val) == 16);

// A schema laid over an object: null for dyn. Resources (root and x-kubernetes-embedded-resource) additionally show
// apiVersion, kind and metadata with name and generateName, whatever the schema says.
struct Shape {
  enum class Overlay : std::uint8_t { kNone, kResource, kMetadata, kText };
  Node node;
  Overlay overlay = Overlay::kNone;
  bool typed() const { return static_cast<bool>(node) || overlay != Overlay::kNone; }
};

struct List {
  enum class Form : std::uint8_t { kItems, kView, kConcat };
  Form form = Form::kItems;
  bool growing = false;  // the accumulator of a comprehension: Add appends in place
  bool typed = false;    // seen through a schema, or made of such a list: the schema decides == and +
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;
  union {
    Val* items = nullptr;
    const List* previous;  // kConcat
  };
  const List* next = nullptr;  // kConcat
  object::Value source;        // kView
  Node node;                   // typed: the schema of the list itself

  Val Get(Arena& arena, std::uint32_t index) const;  // REQUIRES: index < size
};

struct MapEntry {
  Val key;
  Val value;
};

// Members that are computed on first access: `variables` of a policy, `claims` of a token. As apiserver's lazy
// map it can be read by name and iterated (over values), and nothing else.
class LazyMembers {
 public:
  virtual ~LazyMembers() = default;
  virtual bool FindMember(Arena& arena, std::string_view name, Val* out) = 0;
  virtual std::string_view MemberName(std::size_t index) const = 0;
  virtual std::string_view type_name() const = 0;
};

struct Map {
  enum class Form : std::uint8_t { kEntries, kView, kLazy };
  static constexpr std::uint32_t kLinearMax = 8;

  Form form = Form::kEntries;
  bool growing = false;
  bool unescapes = false;  // kEntries: a key that is not there is looked for unescaped (claims)
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;
  std::uint32_t table_mask = 0;
  MapEntry* entries = nullptr;
  std::uint32_t* table = nullptr;  // index + 1; null while small
  object::Value source;            // kView
  Shape shape;                     // kView
  LazyMembers* lazy = nullptr;     // kLazy; must outlive the evaluation

  // Found: true. An error value in `out` with true where the key cannot be one of this map.
  bool Find(Arena& arena, const Val& key, Val* out) const;
  // The entries in order. Of a view, members without a schema are left out (nullopt).
  std::optional<Val> KeyAt(Arena& arena, std::uint32_t index) const;
  Val ValueAt(Arena& arena, std::uint32_t index) const;
  // Goes over a Go map's assignment semantics: replaces the value of an equal key. REQUIRES: kEntries, a hashable key.
  void Set(Arena& arena, const Val& key, const Val& value);
  void Erase(const Val& key);
  // By identity, without looking for an equal number of another kind. REQUIRES: kEntries.
  bool Has(const Val& key) const { return IndexOf(key) >= 0; }
  bool FindExact(const Val& key, Val* out) const;

 private:
  std::int64_t IndexOf(const Val& key) const;
};

// `value` holds no text, so its destructor need not run.
struct QuantityObject {
  object::Quantity value;
  std::string_view text;  // canonical
};
// `computed`: the result of add and sub. cel-go's equality is not defined for such a value.
Val NewQuantity(Arena& arena, const object::Quantity& quantity, bool computed = false);
std::optional<Val> ParseQuantityVal(Arena& arena, std::string_view text, std::string_view* error);

struct MessageField {
  std::string_view name;
  Val value;
};
struct Message {
  std::string_view type;
  std::span<const MessageField> fields;
};

List* NewList(Arena& arena, std::uint32_t capacity);
Val NewStringList(Arena& arena, std::span<const std::string_view> texts);
void Append(Arena& arena, List& list, const Val& item);  // REQUIRES: kItems
Map* NewMap(Arena& arena, std::uint32_t capacity);

// An object as CEL sees it: through a schema, or as the JSON that it is (numbers: integers are int, others double).
Val FromObject(Arena& arena, const object::Value& value, const Shape& shape = {});
// The other way, as ConvertToNative of a structpb value: for patches and apply configurations.
object::Value ToObject(Arena& arena, const Val& value);

Val ErrorIn(Arena& arena, std::string_view message);
Val ErrorIn(Arena& arena, std::string_view a, std::string_view b, std::string_view c = {}, std::string_view d = {});
inline Val NoSuchOverload() { return Val::Error("no such overload"); }
// cel-go's MaybeNoSuchOverloadErr: an error stays what it is.
inline Val NoSuchOverload(const Val& value) { return value.is_error() ? value : NoSuchOverload(); }

// The name of the run-time type: "int", "list", "google.protobuf.Duration", "kubernetes.Quantity".
std::string_view TypeNameOf(const Val& value);
// As Go's %T: "types.Int", "*types.baseList", "cel.Quantity"; some errors show it.
std::string_view GoTypeOf(const Val& value);
// As Go's %v of the value, for error texts.
std::string GoText(Arena& arena, const Val& value);
// cel-go's Type.IsAssignableRuntimeType: lists and maps are judged by their first element.
bool IsAssignableRuntimeType(Arena& arena, const Type& type, const Val& value);

// Equality with null handled first, as the == operator. The result is a bool or an error.
Val Equal(Arena& arena, const Val& a, const Val& b);
// lhs.Equal(rhs).
Val EqualMethod(Arena& arena, const Val& a, const Val& b);
// lhs.Compare(rhs): -1, 0, 1 as int or an error. REQUIRES: a has the comparer trait.
Val Compare(const Val& a, const Val& b);
// Whether a Go map may have it as a key; bytes may not (the reference panics).
bool IsHashable(const Val& value);
// Identity as a Go map key: same dynamic type and value.
bool SameKey(const Val& a, const Val& b);

// The number of code points; ASCII is counted without decoding.
std::size_t RuneCount(std::string_view text);
// As traits.Sizer; nullopt where the value has no size.
std::optional<std::uint64_t> SizeOf(const Val& value);
bool IsZeroValue(const Val& value);

// Traits of cel-go's types, as far as dispatch looks at them.
enum Trait : std::uint16_t {
  kAdder = 1 << 0,
  kComparer = 1 << 1,
  kContainer = 1 << 2,
  kDivider = 1 << 3,
  kIterable = 1 << 4,
  kMatcher = 1 << 5,
  kModder = 1 << 6,
  kMultiplier = 1 << 7,
  kNegator = 1 << 8,
  kReceiver = 1 << 9,
  kSizer = 1 << 10,
  kSubtractor = 1 << 11,
  kLister = 1 << 12,
};
std::uint16_t TraitsOf(const Val& value);

// Property names of object types (apiserver/pkg/cel/escaping.go).
std::string_view EscapeName(Arena& arena, std::string_view name);  // unchanged where no escape is needed
std::optional<std::string_view> UnescapeName(Arena& arena,
                                             std::string_view name);  // nullopt for what Escape never writes

}  // namespace keelson::cel
