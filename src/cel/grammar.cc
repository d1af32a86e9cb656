#include "cel/grammar.h"

#include <iterator>
#include <string_view>
#include <utility>

namespace keelson::cel::grammar {
namespace {

constexpr std::string_view kTokenNames[] = {
    "<EPSILON>", "'=='",     "'!='",   "'in'",    "'<'",        "'<='",          "'>='",    "'>'",
    "'&&'",      "'||'",     "'['",    "']'",     "'{'",        "'}'",           "'('",     "')'",
    "'.'",       "','",      "'-'",    "'!'",     "'?'",        "':'",           "'+'",     "'*'",
    "'/'",       "'%'",      "'true'", "'false'", "'null'",     "WHITESPACE",    "COMMENT", "NUM_FLOAT",
    "NUM_INT",   "NUM_UINT", "STRING", "BYTES",   "IDENTIFIER", "ESC_IDENTIFIER"};

Element Tok(TokenType type, Label label = Label::kNone) {
  return {.kind = Element::Kind::kToken, .label = label, .tokens = Bit(type)};
}
Element Toks(TokenSet tokens, Label label) { return {.kind = Element::Kind::kToken, .label = label, .tokens = tokens}; }
Element Ref(Rule rule, Label label = Label::kChild, int precedence = 0) {
  return {.kind = Element::Kind::kRule, .label = label, .rule = rule, .precedence = precedence};
}
Element Pred(int precedence) { return {.kind = Element::Kind::kPrecedence, .precedence = precedence}; }

using Sequence = std::vector<Element>;

Element Loop(Element::Kind kind, Sequence body, bool adaptive = false) {
  Element element{.kind = kind, .adaptive = adaptive};
  element.alternatives.push_back(std::move(body));
  element.names.push_back(Alternative::kPlain);
  return element;
}
Element Opt(Sequence body) { return Loop(Element::Kind::kOptional, std::move(body)); }
Element Star(Sequence body, bool adaptive = false) { return Loop(Element::Kind::kStar, std::move(body), adaptive); }
Element Plus(Sequence body, bool adaptive = false) { return Loop(Element::Kind::kPlus, std::move(body), adaptive); }

using Named = std::pair<Alternative, Sequence>;
Element Choice(Element::Kind kind, std::vector<Named> alternatives, bool adaptive = true) {
  Element element{.kind = kind, .adaptive = adaptive};
  for (auto& [name, body] : alternatives) {
    element.names.push_back(name);
    element.alternatives.push_back(std::move(body));
  }
  return element;
}

Sequence PrimaryBody() {
  using enum TokenType;
  using enum Label;
  using A = Alternative;
  return {Choice(
      Element::Kind::kBlock,
      {{A::kIdent, {Opt({Tok(kDot, kLeadingDot)}), Tok(kIdentifier, kId)}},
       {A::kGlobalCall,
        {Opt({Tok(kDot, kLeadingDot)}), Tok(kIdentifier, kId), Tok(kLParen, kOp), Opt({Ref(Rule::kExprList, kArgs)}),
         Tok(kRParen)}},
       {A::kNested, {Tok(kLParen), Ref(Rule::kExpr, kE), Tok(kRParen)}},
       {A::kCreateList, {Tok(kLBracket, kOp), Opt({Ref(Rule::kListInit, kElems)}), Opt({Tok(kComma)}), Tok(kRBracket)}},
       {A::kCreateStruct,
        {Tok(kLBrace, kOp), Opt({Ref(Rule::kMapInitializerList, kEntries)}), Opt({Tok(kComma)}), Tok(kRBrace)}},
       {A::kCreateMessage,
        {Opt({Tok(kDot, kLeadingDot)}), Tok(kIdentifier, kIds), Star({Tok(kDot, kOps), Tok(kIdentifier, kIds)}),
         Tok(kLBrace, kOp), Opt({Ref(Rule::kFieldInitializerList, kEntries)}), Opt({Tok(kComma)}), Tok(kRBrace)}},
       {A::kConstantLiteral, {Ref(Rule::kLiteral)}}})};
}

Sequence MemberBody() {
  using enum TokenType;
  using enum Label;
  using A = Alternative;
  return {Ref(Rule::kPrimary),
          Choice(Element::Kind::kStar,
                 {{A::kSelect, {Pred(3), Tok(kDot, kOp), Opt({Tok(kQuestion, kOpt)}), Ref(Rule::kEscapeIdent, kId)}},
                  {A::kMemberCall,
                   {Pred(2), Tok(kDot, kOp), Tok(kIdentifier, kId), Tok(kLParen, kOpen),
                    Opt({Ref(Rule::kExprList, kArgs)}), Tok(kRParen)}},
                  {A::kIndex,
                   {Pred(1), Tok(kLBracket, kOp), Opt({Tok(kQuestion, kOpt)}), Ref(Rule::kExpr, Label::kIndex),
                    Tok(kRBracket)}}})};
}

Sequence LiteralBody() {
  using enum TokenType;
  using A = Alternative;
  const auto token = [](TokenType type) { return Sequence{Tok(type, Label::kTok)}; };
  return {
      Choice(Element::Kind::kBlock, {{A::kInt, {Opt({Tok(kMinus, Label::kSign)}), Tok(TokenType::kInt, Label::kTok)}},
                                     {A::kUint, token(TokenType::kUint)},
                                     {A::kDouble, {Opt({Tok(kMinus, Label::kSign)}), Tok(kFloat, Label::kTok)}},
                                     {A::kString, token(TokenType::kString)},
                                     {A::kBytes, token(TokenType::kBytes)},
                                     {A::kBoolTrue, token(kTrue)},
                                     {A::kBoolFalse, token(kFalse)},
                                     {A::kNull, token(TokenType::kNull)}})};
}

// kExpr, relations and calculations.
Sequence OperatorBody(Rule rule) {
  using enum TokenType;
  using enum Label;
  using A = Alternative;
  constexpr TokenSet kRelations =
      Bit(kEquals) | Bit(kNotEquals) | Bit(kIn) | Bit(kLess) | Bit(kLessEquals) | Bit(kGreaterEquals) | Bit(kGreater);
  constexpr TokenSet kProducts = Bit(kStar) | Bit(kSlash) | Bit(kPercent);
  constexpr TokenSet kSums = Bit(kPlus) | Bit(kMinus);
  switch (rule) {
    case Rule::kExpr:
      return {Ref(Rule::kConditionalOr, kE),
              Opt({Tok(kQuestion, kOp), Ref(Rule::kConditionalOr, kE1), Tok(kColon), Ref(Rule::kExpr, kE2)})};
    case Rule::kConditionalOr:
      return {Ref(Rule::kConditionalAnd, kE), Star({Tok(kLogicalOr, kOps), Ref(Rule::kConditionalAnd, kE1)})};
    case Rule::kConditionalAnd:
      return {Ref(Rule::kRelation, kE), Star({Tok(kLogicalAnd, kOps), Ref(Rule::kRelation, kE1)})};
    case Rule::kRelation:
      return {Ref(Rule::kCalc),
              Choice(Element::Kind::kStar,
                     {{A::kPlain, {Pred(1), Toks(kRelations, kOp), Ref(Rule::kRelation, kRight, 2)}}})};
    case Rule::kCalc:
      return {Ref(Rule::kUnary),
              Choice(Element::Kind::kStar, {{A::kPlain, {Pred(2), Toks(kProducts, kOp), Ref(Rule::kCalc, kRight, 3)}},
                                            {A::kPlain, {Pred(1), Toks(kSums, kOp), Ref(Rule::kCalc, kRight, 2)}}})};
    default:
      return {Choice(Element::Kind::kBlock, {{A::kMemberExpr, {Ref(Rule::kMember)}},
                                             {A::kLogicalNot, {Plus({Tok(kExclam, kOps)}), Ref(Rule::kMember)}},
                                             {A::kNegate, {Plus({Tok(kMinus, kOps)}, true), Ref(Rule::kMember)}}})};
  }
}

Sequence ListBody(Rule rule) {
  using enum TokenType;
  using enum Label;
  switch (rule) {
    case Rule::kExprList:
      return {Ref(Rule::kExpr, kE), Star({Tok(kComma), Ref(Rule::kExpr, kE)})};
    case Rule::kListInit:
      return {Ref(Rule::kOptExpr, kElems), Star({Tok(kComma), Ref(Rule::kOptExpr, kElems)}, true)};
    case Rule::kFieldInitializerList:
      return {Ref(Rule::kOptField, kFields), Tok(kColon, kCols), Ref(Rule::kExpr, kValues),
              Star({Tok(kComma), Ref(Rule::kOptField, kFields), Tok(kColon, kCols), Ref(Rule::kExpr, kValues)}, true)};
    case Rule::kMapInitializerList:
      return {Ref(Rule::kOptExpr, kKeys), Tok(kColon, kCols), Ref(Rule::kExpr, kValues),
              Star({Tok(kComma), Ref(Rule::kOptExpr, kKeys), Tok(kColon, kCols), Ref(Rule::kExpr, kValues)}, true)};
    case Rule::kOptField:
      return {Opt({Tok(kQuestion, kOpt)}), Ref(Rule::kEscapeIdent, kId)};
    case Rule::kOptExpr:
      return {Opt({Tok(kQuestion, kOpt)}), Ref(Rule::kExpr, kE)};
    default:
      return {Choice(Element::Kind::kBlock,
                     {{Alternative::kSimpleIdentifier, {Tok(kIdentifier, kId)}},
                      {Alternative::kEscapedIdentifier, {Tok(kEscIdentifier, kId)}}},
                     false)};
  }
}

Sequence Body(Rule rule) {
  switch (rule) {
    case Rule::kStart:
      return {Ref(Rule::kExpr, Label::kE), Tok(TokenType::kEnd)};
    case Rule::kMember:
      return MemberBody();
    case Rule::kPrimary:
      return PrimaryBody();
    case Rule::kLiteral:
      return LiteralBody();
    case Rule::kExpr:
    case Rule::kConditionalOr:
    case Rule::kConditionalAnd:
    case Rule::kRelation:
    case Rule::kCalc:
    case Rule::kUnary:
      return OperatorBody(rule);
    default:
      return ListBody(rule);
  }
}

}  // namespace

std::string LiteralName(TokenType type) {
  if (type == TokenType::kEnd) return "<EOF>";
  const auto index = static_cast<std::size_t>(type);
  return std::string(index < std::size(kTokenNames) ? kTokenNames[index] : "");
}

std::string Describe(TokenSet set) {
  std::string out;
  int count = 0;
  const auto add = [&](TokenType type) {
    if ((set & Bit(type)) == 0) return;
    if (count++ > 0) out += ", ";
    out += LiteralName(type);
  };
  add(TokenType::kEnd);
  for (unsigned i = 1; i < static_cast<unsigned>(TokenType::kEnd); ++i) add(static_cast<TokenType>(i));
  return count == 1 ? out : "{" + out + "}";
}

const Grammar& Grammar::Get() {
  static const Grammar grammar;
  return grammar;
}

Grammar::Grammar() : rules_(kRuleCount) {
  for (std::size_t i = 0; i < kRuleCount; ++i) {
    const auto rule = static_cast<Rule>(i);
    rules_[i].body = Body(rule);
    rules_[i].left_recursive = rule == Rule::kRelation || rule == Rule::kCalc || rule == Rule::kMember;
    rules_[i].start = NewState(StateType::kRuleStart, rule);
    rules_[i].stop = NewState(StateType::kRuleStop, rule);
  }
  for (std::size_t i = 0; i < kRuleCount; ++i)
    Epsilon(Build(static_cast<Rule>(i), rules_[i].body, rules_[i].start), rules_[i].stop);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    std::vector<bool> seen(states_.size());
    next_.push_back(Look(static_cast<int>(i), seen));
  }
  for (auto& rule : rules_) ComputeFirst(rule.body);
}

int Grammar::NewState(StateType type, Rule rule) {
  states_.push_back({.type = type, .rule = rule, .transitions = {}});
  return static_cast<int>(states_.size()) - 1;
}

int Grammar::Build(Rule rule, std::vector<Element>& sequence, int from) {
  for (auto& element : sequence) from = BuildElement(rule, element, from);
  return from;
}

void Grammar::BuildAlternatives(Rule rule, Element& element, int block, int end) {
  for (auto& alternative : element.alternatives) {
    const int left = NewState(StateType::kBasic, rule);
    Epsilon(block, left);
    Epsilon(Build(rule, alternative, left), end);
  }
}

int Grammar::BuildElement(Rule rule, Element& element, int from) {
  using Kind = Element::Kind;
  switch (element.kind) {
    case Kind::kToken:
    case Kind::kRule:
    case Kind::kPrecedence: {
      const int left = NewState(StateType::kBasic, rule);
      const int right = NewState(StateType::kBasic, rule);
      Epsilon(from, left);
      element.state = left;
      Transition transition{.target = right};
      if (element.kind == Kind::kToken) {
        transition.kind = Transition::Kind::kTokens;
        transition.tokens = element.tokens;
      } else if (element.kind == Kind::kPrecedence) {
        transition.kind = Transition::Kind::kPrecedence;
        transition.precedence = element.precedence;
      } else {
        transition.kind = Transition::Kind::kRule;
        transition.target = rules_[static_cast<std::size_t>(element.rule)].start;
        transition.follow = right;
        transition.precedence = element.precedence;
      }
      states_[left].transitions.push_back(transition);
      return right;
    }
    case Kind::kBlock:
    case Kind::kOptional: {
      element.state = NewState(StateType::kBlockStart, rule);
      const int end = NewState(StateType::kBlockEnd, rule);
      Epsilon(from, element.state);
      BuildAlternatives(rule, element, element.state, end);
      if (element.kind == Kind::kOptional) Epsilon(element.state, end);
      return end;
    }
    case Kind::kStar: {
      element.state = NewState(StateType::kStarLoopEntry, rule);
      element.block = NewState(StateType::kStarBlockStart, rule);
      element.loop_back = NewState(StateType::kStarLoopBack, rule);
      const int block_end = NewState(StateType::kBlockEnd, rule);
      const int end = NewState(StateType::kLoopEnd, rule);
      Epsilon(from, element.state);
      Epsilon(element.state, element.block);
      Epsilon(element.state, end);
      BuildAlternatives(rule, element, element.block, block_end);
      Epsilon(block_end, element.loop_back);
      Epsilon(element.loop_back, element.state);
      return end;
    }
    case Kind::kPlus: {
      element.state = NewState(StateType::kPlusBlockStart, rule);
      element.loop_back = NewState(StateType::kPlusLoopBack, rule);
      const int block_end = NewState(StateType::kBlockEnd, rule);
      const int end = NewState(StateType::kLoopEnd, rule);
      Epsilon(from, element.state);
      BuildAlternatives(rule, element, element.state, block_end);
      Epsilon(block_end, element.loop_back);
      Epsilon(element.loop_back, element.state);
      Epsilon(element.loop_back, end);
      return end;
    }
  }
  return from;
}

TokenSet Grammar::Look(int number, std::vector<bool>& seen) const {
  if (seen[number]) return 0;
  seen[number] = true;
  const State& state = states_[number];
  if (state.type == StateType::kRuleStop) return Bit(TokenType::kEpsilon);
  TokenSet set = 0;
  for (const auto& transition : state.transitions) {
    switch (transition.kind) {
      case Transition::Kind::kTokens:
        set |= transition.tokens;
        break;
      case Transition::Kind::kRule:  // no rule of the grammar is empty
        set |= Look(transition.target, seen) & ~Bit(TokenType::kEpsilon);
        break;
      default:
        set |= Look(transition.target, seen);
    }
  }
  return set;
}

void Grammar::ComputeFirst(std::vector<Element>& sequence) {
  for (auto& element : sequence) {
    const int block = element.kind == Element::Kind::kStar ? element.block : element.state;
    for (std::size_t i = 0; i < element.alternatives.size(); ++i) {
      element.first.push_back(next_[states_[block].transitions[i].target]);
      ComputeFirst(element.alternatives[i]);
    }
  }
}

}  // namespace keelson::cel::grammar
