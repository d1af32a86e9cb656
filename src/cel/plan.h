// The planned form of an expression: nodes in one arena, as cel-go's interpretables. Private to the run-time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/go_regex.h"
#include "cel/declarations.h"
#include "cel/functions.h"
#include "cel/program.h"
#include "cel/run_cost.h"

namespace keelson::cel::plan {

enum class Op : std::uint8_t {
  kConst,
  kAttribute,
  kAnd,
  kOr,
  kEquals,
  kNotEquals,
  kCall,
  kList,
  kMap,
  kStruct,
  kFold,
  kSetMembership,
  kOptionalOr,
  kOptionalOrValue,
};

struct PlanNode {
  Op op;
  std::uint32_t id;  // of the expression; of an attribute, once planned: AttributeId
};

struct ConstNode : PlanNode {
  Val value;
};

struct Attribute;

// A step from an object to one of its members.
struct Qualifier {
  enum class Kind : std::uint8_t {
    kConstant,
    kAttribute,  // a[b.c]
    kRelative,   // a[f(x)]: a separate attribute for the cost tracker
  };
  Kind kind = Kind::kConstant;
  bool optional = false;
  bool test_only = false;
  std::uint32_t id = 0;
  Val key;
  Attribute* attribute = nullptr;
  Qualifier* next = nullptr;
};

// A variable or value with the qualifiers applied to it. cel-go observes the cost of an attribute as a whole.
struct Attribute {
  enum class Kind : std::uint8_t { kVariable, kLocal, kRelative, kConditional };
  enum class Local : std::uint8_t { kAccumulator, kIterator, kIterator2 };
  Kind kind;
  Local local = Local::kAccumulator;
  std::uint32_t id = 0;
  std::uint32_t final_id = 0;         // AttributeId, once planned
  std::uint32_t slot = 0;             // of the variable; the depth of the comprehension for locals
  const PlanNode* operand = nullptr;  // relative: the value; conditional: the condition
  Attribute* truthy = nullptr;
  Attribute* falsy = nullptr;
  Qualifier* first = nullptr;
  Qualifier* last = nullptr;
};

// The id of the last qualifier, or its own. For the planner; it no longer changes when planning is done.
std::uint32_t AttributeId(const Attribute& attribute);

struct AttributeNode : PlanNode {
  Attribute* attribute;
  bool test_only;  // has(…): keeps the id of the expression
};

std::uint32_t NodeId(const PlanNode& node);

struct ArgsNode : PlanNode {  // and, or, equals, list, map (keys and values in turn), optional or
  std::span<const PlanNode* const> args;
  std::span<const bool> optionals;  // lists and maps with optional entries, else empty
};

struct StructNode : ArgsNode {
  std::string_view type;
  std::span<const std::string_view> fields;
};

struct Candidate {
  const Overload* overload;
  Implementation function;
};

enum class RegexUse : std::uint8_t { kNone, kMatches, kFind, kFindAll };

struct CallNode : ArgsNode {
  std::string_view function;
  CallForm form;
  RegexUse regex_use;
  bool non_strict;
  bool guarded;      // bound by overload: the arguments are checked before the call
  bool type_guards;  // not their number only
  std::uint16_t trait;
  CallCost cost;
  Implementation implementation;  // null: none, or one of the candidates
  const Overload* overload;       // of a guarded call
  std::span<const Candidate> candidates;
  const base::GoRegex* regex;
};

struct FoldNode : PlanNode {
  std::uint32_t depth;
  bool two_variables;
  const PlanNode* range;
  const PlanNode* init;
  const PlanNode* condition;
  const PlanNode* step;
  const PlanNode* result;
};

struct SetMembershipNode : PlanNode {
  const PlanNode* arg;
  const Map* set;
};

}  // namespace keelson::cel::plan

namespace keelson::cel {

struct Program::Plan {
  Arena arena;
  EnvironmentPtr env;
  std::vector<std::unique_ptr<const base::GoRegex>> regexes;
  std::vector<std::string_view> variables;
  const plan::PlanNode* root = nullptr;
  std::uint32_t id_count = 0;
  std::uint32_t depth = 0;  // of nested comprehensions
};

}  // namespace keelson::cel
