// The tree of a CEL expression after macro expansion; once checked, each node carries its type and its reference.
// Thread safety: immutable after Compile(); shared by any number of evaluations.
// Ownership: nodes, texts and types live in the arena of the Ast; the Ast keeps its environment alive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "cel/type.h"

namespace keelson::cel {

struct Overload;    // cel/declarations.h
class Environment;  // cel/environment.h

enum class ExprKind : std::uint8_t {
  kUnspecified,
  kLiteral,
  kIdent,
  kSelect,
  kCall,
  kList,
  kMap,
  kStruct,
  kComprehension
};
enum class LiteralKind : std::uint8_t { kNull, kBool, kInt, kUint, kDouble, kString, kBytes };

struct Expr;
struct Comprehension;

// An element of a list literal, an entry of a map literal or a field of a struct literal.
struct Entry {
  std::uint32_t id = 0;      // lists: 0
  std::int32_t offset = -1;  // code point offset of the colon; lists: -1
  bool optional = false;     // ?x
  std::string_view field;    // structs only
  Expr* key = nullptr;       // maps only
  Expr* value = nullptr;
};

// The declaration an identifier or call was resolved to.
struct Reference {
  std::string_view name;                       // identifiers: fully qualified
  const Type* type_value = nullptr;            // identifiers that name a type: the type
  const std::int64_t* constant = nullptr;      // identifiers that name an enum constant
  std::span<const Overload* const> overloads;  // calls: candidates in declaration order
};

struct Expr {
  ExprKind kind = ExprKind::kUnspecified;
  LiteralKind literal = LiteralKind::kNull;
  bool test_only = false;    // select: has(operand.field)
  std::uint32_t id = 0;      // unique in the tree, 1 and up
  std::int32_t offset = -1;  // code point offset in the source; -1 = none
  std::uint32_t count = 0;   // call: arguments; list, map, struct: entries
  // ident: name · select: field · call: function ("_+_", "size") · struct: type name · literal: string or bytes
  std::string_view text;
  union {
    bool bool_value;
    std::int64_t int_value = 0;
    std::uint64_t uint_value;
    double double_value;
  };
  Expr* operand = nullptr;  // select: operand · member call: target (null = global call)
  union {
    Expr** args = nullptr;  // call
    Entry* entries;         // list, map, struct
    Comprehension* fold;    // comprehension
  };
  const Type* type = nullptr;            // after checking; type parameters are substituted
  const Reference* reference = nullptr;  // after checking: ident, call, struct

  std::span<Expr* const> arguments() const { return {args, count}; }
  std::span<const Entry> elements() const { return {entries, count}; }
};

struct Comprehension {
  std::string_view iter_var;
  std::string_view iter_var2;  // "" = one variable
  std::string_view accu_var;
  Expr* range = nullptr;
  Expr* init = nullptr;
  Expr* condition = nullptr;
  Expr* step = nullptr;
  Expr* result = nullptr;
};

// Line structure of a source text: positions of checker and run-time errors. Offsets and columns count code points.
class Source {
 public:
  explicit Source(std::string_view text);
  std::string_view text() const { return text_; }
  // 1-based line and 0-based column; {-1, -1} for a negative offset.
  struct Location {
    std::int32_t line = -1;
    std::int32_t column = -1;
  };
  Location Locate(std::int32_t offset) const;
  // The text of a 1-based line, without its end; empty view with null data where there is none.
  std::string_view Line(std::int32_t line) const;
  std::int32_t size() const { return size_; }  // in code points

 private:
  struct LineStart {
    std::int32_t offset;  // code points
    std::uint32_t byte;
  };
  std::string text_;
  std::vector<LineStart> lines_;
  std::int32_t size_ = 0;
};

class Ast {
 public:
  explicit Ast(std::string_view source) : source_(source) {}
  Ast(const Ast&) = delete;
  Ast& operator=(const Ast&) = delete;

  const Expr& root() const { return *root_; }
  const Source& source() const { return source_; }
  bool checked() const { return checked_; }
  const Type& result_type() const { return *root_->type; }
  const std::shared_ptr<const Environment>& environment() const { return environment_; }
  std::uint32_t id_count() const { return id_count_; }  // ids are below this
  std::size_t bytes() const { return sizeof(Ast) + arena_.reserved_bytes() + 2 * source_.text().size(); }

  // For the compiler only.
  base::Arena& arena() { return arena_; }
  Expr* mutable_root() { return root_; }
  void set_root(Expr* root) { root_ = root; }
  void set_checked() { checked_ = true; }
  void set_id_count(std::uint32_t count) { id_count_ = count; }
  void set_environment(std::shared_ptr<const Environment> environment) { environment_ = std::move(environment); }

 private:
  std::shared_ptr<const Environment> environment_;  // owns the declarations that nodes refer to
  base::Arena arena_;
  Source source_;
  Expr* root_ = nullptr;
  bool checked_ = false;
  std::uint32_t id_count_ = 1;
};

using AstPtr = std::shared_ptr<const Ast>;

}  // namespace keelson::cel
