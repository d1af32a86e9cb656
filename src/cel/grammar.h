// The grammar of CEL as a transition network, with the shape that ANTLR gives it: error texts of cel-go follow from it.
// Built once; immutable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cel/lexer.h"

namespace keelson::cel::grammar {

// Sets of tokens. kEnd is printed first, as <EOF>; kEpsilon means that the rule may end here.
using TokenSet = std::uint64_t;
constexpr TokenSet Bit(TokenType type) { return TokenSet{1} << static_cast<unsigned>(type); }
// "{'[', '{', NUM_INT}" or the one token without braces.
std::string Describe(TokenSet set);
std::string LiteralName(TokenType type);

enum class Rule : std::uint8_t {
  kStart,
  kExpr,
  kConditionalOr,
  kConditionalAnd,
  kRelation,
  kCalc,
  kUnary,
  kMember,
  kPrimary,
  kExprList,
  kListInit,
  kFieldInitializerList,
  kOptField,
  kMapInitializerList,
  kEscapeIdent,
  kOptExpr,
  kLiteral,
};
inline constexpr std::size_t kRuleCount = 17;

// Names of the parts of a rule, as the visitor uses them.
enum class Label : std::uint8_t {
  kNone,
  kE,
  kE1,
  kE2,
  kOp,
  kOpt,
  kId,
  kArgs,
  kIndex,
  kOpen,
  kElems,
  kEntries,
  kFields,
  kCols,
  kValues,
  kKeys,
  kLeadingDot,
  kSign,
  kTok,
  kIds,
  kOps,
  kLeft,
  kRight,
  kChild,
};

// The labelled alternatives of rules.
enum class Alternative : std::uint8_t {
  kPlain,
  kMemberExpr,
  kLogicalNot,
  kNegate,
  kPrimaryExpr,
  kSelect,
  kMemberCall,
  kIndex,
  kIdent,
  kGlobalCall,
  kNested,
  kCreateList,
  kCreateStruct,
  kCreateMessage,
  kConstantLiteral,
  kSimpleIdentifier,
  kEscapedIdentifier,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kBoolTrue,
  kBoolFalse,
  kNull,
};

enum class StateType : std::uint8_t {
  kBasic,
  kRuleStart,
  kRuleStop,
  kBlockStart,
  kPlusBlockStart,
  kStarBlockStart,
  kBlockEnd,
  kPlusLoopBack,
  kStarLoopEntry,
  kStarLoopBack,
  kLoopEnd,
};

struct Transition {
  enum class Kind : std::uint8_t { kEpsilon, kTokens, kRule, kPrecedence };
  Kind kind = Kind::kEpsilon;
  int target = 0;
  TokenSet tokens = 0;  // kTokens
  int follow = 0;       // kRule: state after the rule
  int precedence = 0;   // kRule: argument; kPrecedence: least precedence
};

struct State {
  StateType type = StateType::kBasic;
  Rule rule = Rule::kStart;
  std::vector<Transition> transitions;
};

struct Element {
  enum class Kind : std::uint8_t { kToken, kRule, kBlock, kOptional, kStar, kPlus, kPrecedence };
  Kind kind = Kind::kToken;
  Label label = Label::kNone;
  TokenSet tokens = 0;
  Rule rule = Rule::kStart;
  int precedence = 0;
  bool adaptive = false;  // the decision looks further than one token
  std::vector<std::vector<Element>> alternatives;
  std::vector<Alternative> names;  // of the alternatives
  int state = 0;                   // before a token or rule; the decision of the others
  int block = 0;                   // stars: the state that begins the body
  int loop_back = 0;               // stars and pluses
  std::vector<TokenSet> first;     // of each alternative
};

struct Definition {
  std::vector<Element> body;
  bool left_recursive = false;
  int start = 0;
  int stop = 0;
};

class Grammar {
 public:
  static const Grammar& Get();
  const State& state(int number) const { return states_[number]; }
  const Definition& definition(Rule rule) const { return rules_[static_cast<std::size_t>(rule)]; }
  // Tokens that may come at a state, with kEpsilon where its rule may end.
  TokenSet NextTokens(int state) const { return next_[state]; }

 private:
  Grammar();
  int NewState(StateType type, Rule rule);
  void Epsilon(int from, int to) { states_[from].transitions.push_back({.target = to}); }
  int Build(Rule rule, std::vector<Element>& sequence, int from);
  int BuildElement(Rule rule, Element& element, int from);
  void BuildAlternatives(Rule rule, Element& element, int block, int end);
  TokenSet Look(int state, std::vector<bool>& seen) const;
  void ComputeFirst(std::vector<Element>& sequence);

  std::vector<State> states_;
  std::vector<Definition> rules_;
  std::vector<TokenSet> next_;
};

}  // namespace keelson::cel::grammar
