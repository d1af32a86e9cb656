#include "cel/syntax_parser.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cel/expr_builder.h"
#include "cel/grammar.h"
#include "cel/parser.h"
#include "cel/syntax_tree.h"
#include "cel/syntax_visitor.h"

namespace keelson::cel {
namespace grammar {
namespace {

constexpr int kRecoveriesMax = 30;
constexpr int kRecoveryTokensMax = 256;
constexpr int kSyntaxErrorsMax = 100;

// A failure that unwinds to the end of the rule in which it happened.
struct Failure {
  enum class Kind : std::uint8_t { kMismatch, kNoViableAlternative };
  Kind kind = Kind::kMismatch;
  std::size_t offending = 0;  // token
  std::size_t start = 0;      // kNoViableAlternative: first token of the decision
  TokenSet expected = 0;      // kMismatch
};

class SyntaxParser {
 public:
  SyntaxParser(std::string_view source, Issues& issues) : source_(source), issues_(issues) {
    Lexer lexer(source);
    for (;;) {
      const Token token = lexer.Next();
      if (token.type == TokenType::kError) {
        lexer_errors_.push_back(token);
        Notify(token.offset, "token recognition error at: '" + std::string(token.text) + "'");
        if (aborted_) return;
        continue;
      }
      tokens_.push_back(token);
      if (token.type == TokenType::kEnd) break;
    }
  }

  // The tree, or null where parsing was given up.
  const Node* Run() {
    if (aborted_) return nullptr;
    const Node* root = RunRule(Rule::kStart, 0, -1);
    return aborted_ ? nullptr : root;
  }

 private:
  struct Prediction {
    int alternative = 0;     // 1 and up; 0 = none is viable
    std::size_t failed = 0;  // the token at which that became clear
  };

  const Token& Current() const { return tokens_[at_]; }
  TokenType LookAhead(std::size_t n) const { return tokens_[std::min(at_ + n - 1, tokens_.size() - 1)].type; }
  bool stopped() const { return failure_.has_value() || aborted_; }

  const Node* RunRule(Rule rule, int precedence, int invoking_state);
  void RunSequence(const std::vector<Element>& sequence, Node*& node);
  void RunElement(const Element& element, Node*& node);
  void RunToken(const Element& element, Node& node);
  void RunChoice(const Element& element, Node*& node);
  void RunOptional(const Element& element, Node*& node);
  void RunStar(const Element& element, Node*& node);
  void RunPlus(const Element& element, Node*& node);
  void RunLeftRecursion(const Element& element, Node*& node);
  int Predict(const Element& element, int state);
  Prediction Decide(const Element& element, int state) const;
  Prediction DecideOperator(const Element& element) const;
  Prediction DecideListElement(const Element& element) const;
  Prediction DecideMinus(const Element& element) const;
  Prediction DecidePrimary() const;
  Prediction DecideMemberSuffix() const;

  // Error strategy.
  void Notify(std::int32_t offset, std::string message);
  void Abort(std::string message);
  void Consume();
  void EndErrorCondition();
  void Sync();
  bool CheckAttempts();
  void ReportFailure(const Failure& failure);
  void ReportUnwantedToken();
  void Recover();
  const Token* RecoverInline();
  const Token* DeleteToken();
  bool InsertToken();
  const Token* MissingToken();
  void ConsumeUntil(TokenSet set);
  TokenSet ExpectedTokens() const;
  TokenSet RecoverySet() const;
  TokenSet NextTokensInContext(int state) const;
  Failure Mismatch() const { return {Failure::Kind::kMismatch, at_, at_, ExpectedTokens()}; }
  std::string TokenText(const Token& token) const;
  std::string TextBetween(std::size_t first, std::size_t last) const;

  std::string_view source_;
  Issues& issues_;
  const Grammar& grammar_ = Grammar::Get();
  std::vector<Token> tokens_;
  std::vector<Token> lexer_errors_;
  std::deque<Node> nodes_;
  std::deque<Token> conjured_;
  std::deque<std::string> texts_;
  std::size_t at_ = 0;
  int state_ = 0;
  std::vector<int> stack_;  // states that invoked the rules being parsed, outermost first
  std::vector<int> precedences_;
  std::array<int, kRuleCount> depth_{};
  std::optional<Failure> failure_;
  bool aborted_ = false;
  bool recovering_ = false;
  std::size_t last_error_index_ = static_cast<std::size_t>(-1);
  std::vector<int> last_error_states_;
  int recoveries_ = 0;
  int recovery_tokens_left_ = -1;  // while recovering with a limit
  int reports_ = 0;
};

void SyntaxParser::Abort(std::string message) {
  if (aborted_) return;
  aborted_ = true;
  if (!message.empty()) issues_.Report(-1, std::move(message));
}

void SyntaxParser::Notify(std::int32_t offset, std::string message) {
  if (aborted_) return;
  for (const std::string_view word : {"true", "false", "null"}) {
    // cel-go rewords "no viable alternative at input '.true'".
    constexpr std::string_view kPrefix = "no viable alternative at input '";
    if (message.size() == kPrefix.size() + word.size() + 2 && message.starts_with(kPrefix) &&
        message.ends_with(std::string(word) + "'"))
      message = "mismatched input '" + std::string(word) + "' expecting IDENTIFIER";
  }
  if (reports_ < kSyntaxErrorsMax) {
    ++reports_;
    issues_.Report(offset, "Syntax error: " + message);
    return;
  }
  issues_.Report(offset, "Syntax error: More than " + std::to_string(kSyntaxErrorsMax) + " syntax errors");
  aborted_ = true;
}

const Node* SyntaxParser::RunRule(Rule rule, int precedence, int invoking_state) {
  const Definition& definition = grammar_.definition(rule);
  auto& depth = depth_[static_cast<std::size_t>(rule)];
  if (invoking_state >= 0) stack_.push_back(invoking_state);
  state_ = definition.start;
  Node* node = &nodes_.emplace_back();
  node->rule = rule;
  node->start = &tokens_[at_];
  if (++depth > kRecursionMax) Abort("expression recursion limit exceeded: " + std::to_string(kRecursionMax));
  if (definition.left_recursive) precedences_.push_back(precedence);
  if (!aborted_) {
    if (rule == Rule::kMember) node->alternative = Alternative::kPrimaryExpr;
    RunSequence(definition.body, node);
    if (failure_ && !aborted_) {
      const Failure failure = *failure_;
      failure_.reset();
      ReportFailure(failure);
      Recover();
    }
  }
  if (definition.left_recursive) precedences_.pop_back();
  --depth;
  if (invoking_state >= 0) {
    stack_.pop_back();
    state_ = invoking_state;
  }
  return node;
}

void SyntaxParser::RunSequence(const std::vector<Element>& sequence, Node*& node) {
  for (const auto& element : sequence) {
    RunElement(element, node);
    if (stopped()) return;
  }
}

void SyntaxParser::RunElement(const Element& element, Node*& node) {
  switch (element.kind) {
    case Element::Kind::kToken:
      return RunToken(element, *node);
    case Element::Kind::kRule: {
      state_ = element.state;
      const Node* child = RunRule(element.rule, element.precedence, element.state);
      node->parts.push_back({.label = element.label, .node = child});
      return;
    }
    case Element::Kind::kBlock:
      return RunChoice(element, node);
    case Element::Kind::kOptional:
      return RunOptional(element, node);
    case Element::Kind::kStar:
      if (grammar_.definition(node->rule).left_recursive) return RunLeftRecursion(element, node);
      return RunStar(element, node);
    case Element::Kind::kPlus:
      return RunPlus(element, node);
    case Element::Kind::kPrecedence:
      state_ = element.state;
      return;
  }
}

void SyntaxParser::RunToken(const Element& element, Node& node) {
  state_ = element.state;
  const Token* token = &Current();
  if ((element.tokens & Bit(token->type)) != 0) {
    EndErrorCondition();
    Consume();
  } else {
    token = RecoverInline();
    if (stopped() || token == nullptr) return;
  }
  node.parts.push_back({.label = element.label, .token = token});
}

// The alternative that ANTLR's adaptive prediction would choose: for this grammar at most the names of a qualified name
// are looked at beyond two tokens. Among alternatives that fit equally the first wins; where none fits, an alternative
// that ended the rule before the offending token does.
int SyntaxParser::Predict(const Element& element, int state) {
  const Prediction prediction = Decide(element, state);
  if (prediction.alternative == 0)
    failure_ = Failure{Failure::Kind::kNoViableAlternative, std::min(prediction.failed, tokens_.size() - 1), at_, 0};
  return prediction.alternative;
}

SyntaxParser::Prediction SyntaxParser::Decide(const Element& element, int state) const {
  const TokenSet token = Bit(Current().type);
  const Rule rule = grammar_.state(state).rule;
  if (element.kind == Element::Kind::kStar && state == element.state)
    return grammar_.definition(rule).left_recursive ? DecideOperator(element) : DecideListElement(element);
  if (element.kind == Element::Kind::kPlus) return DecideMinus(element);
  if (rule == Rule::kMember) return DecideMemberSuffix();
  if (rule == Rule::kPrimary && (token & (Bit(TokenType::kIdentifier) | Bit(TokenType::kDot))) != 0)
    return DecidePrimary();
  const bool minus = Current().type == TokenType::kMinus;
  const bool number = LookAhead(2) == TokenType::kInt || LookAhead(2) == TokenType::kFloat;
  if (minus && rule == Rule::kLiteral) return {!number ? 0 : LookAhead(2) == TokenType::kInt ? 1 : 3, at_ + 1};
  if (minus && rule == Rule::kUnary) {
    if (number) return {1, at_ + 1};  // a negative literal rather than the negation of a literal
    return {(element.first[0] & Bit(LookAhead(2))) != 0 ? 3 : 0, at_ + 1};
  }
  for (std::size_t i = 0; i < element.first.size(); ++i)
    if ((element.first[i] & token) != 0) return {static_cast<int>(i) + 1, at_};
  return {0, at_};
}

// Go on (1) or end (2) the loop of a left-recursive rule. Operators that bind less than the operand being read end it.
SyntaxParser::Prediction SyntaxParser::DecideOperator(const Element& element) const {
  for (std::size_t i = 0; i < element.first.size(); ++i)
    if ((element.first[i] & Bit(Current().type)) != 0 && element.alternatives[i][0].precedence >= precedences_.back())
      return {1, at_};
  return {2, at_};
}

// A comma begins another element (1) unless it is the trailing one.
SyntaxParser::Prediction SyntaxParser::DecideListElement(const Element& element) const {
  const TokenSet elements = grammar_.NextTokens(element.alternatives[0][1].state);
  return {Current().type == TokenType::kComma && (elements & Bit(LookAhead(2))) != 0 ? 1 : 2, at_};
}

// Another minus (1) or the operand (2).
SyntaxParser::Prediction SyntaxParser::DecideMinus(const Element& element) const {
  const TokenSet operand = grammar_.NextTokens(element.loop_back);
  if (Current().type != TokenType::kMinus) return {(operand & Bit(Current().type)) != 0 ? 2 : 0, at_};
  return {(operand & Bit(LookAhead(2))) != 0 ? 1 : 0, at_ + 1};
}

// An identifier (1), a call (2) or a message (6): names joined by dots, then '(' or '{' or anything else.
SyntaxParser::Prediction SyntaxParser::DecidePrimary() const {
  constexpr int kIdent = 1, kCall = 2, kMessage = 6;
  const auto type = [this](std::size_t index) { return tokens_[std::min(index, tokens_.size() - 1)].type; };
  std::size_t i = at_;
  if (type(i) == TokenType::kDot) ++i;
  if (type(i) != TokenType::kIdentifier) return {0, i};
  if (type(++i) == TokenType::kLParen) return {kCall, i};
  while (type(i) == TokenType::kDot && type(i + 1) == TokenType::kIdentifier) i += 2;
  return {type(i) == TokenType::kLBrace ? kMessage : kIdent, i};
}

// A selection (1), a call (2) or an index (3).
SyntaxParser::Prediction SyntaxParser::DecideMemberSuffix() const {
  if (Current().type == TokenType::kLBracket) return {3, at_};
  const TokenType name = LookAhead(2);
  if (name == TokenType::kQuestion || name == TokenType::kEscIdentifier) return {1, at_ + 1};
  if (name != TokenType::kIdentifier) return {0, at_ + 1};
  return {LookAhead(3) == TokenType::kLParen ? 2 : 1, at_ + 2};
}

void SyntaxParser::RunChoice(const Element& element, Node*& node) {
  state_ = element.state;
  Sync();
  if (stopped()) return;
  std::size_t chosen = 0;
  if (element.adaptive) {
    chosen = static_cast<std::size_t>(Predict(element, element.state));
    if (stopped()) return;
  } else {
    for (std::size_t i = 0; i < element.first.size() && chosen == 0; ++i)
      if ((element.first[i] & Bit(Current().type)) != 0) chosen = i + 1;
    if (chosen == 0) {
      failure_ = Failure{Failure::Kind::kNoViableAlternative, at_, at_, 0};
      return;
    }
  }
  node->alternative = element.names[chosen - 1];
  RunSequence(element.alternatives[chosen - 1], node);
}

void SyntaxParser::RunOptional(const Element& element, Node*& node) {
  state_ = element.state;
  Sync();
  if (stopped()) return;
  if ((element.first[0] & Bit(Current().type)) != 0) RunSequence(element.alternatives[0], node);
}

void SyntaxParser::RunStar(const Element& element, Node*& node) {
  state_ = element.state;
  const auto enter = [&] {
    Sync();
    if (stopped()) return false;
    if (!element.adaptive) return (element.first[0] & Bit(Current().type)) != 0;
    return Predict(element, element.state) == 1 && !stopped();
  };
  while (enter()) {
    RunSequence(element.alternatives[0], node);
    if (stopped()) return;
    state_ = element.loop_back;
  }
}

void SyntaxParser::RunPlus(const Element& element, Node*& node) {
  state_ = element.state;
  Sync();
  if (stopped()) return;
  for (;;) {
    RunSequence(element.alternatives[0], node);
    if (stopped()) return;
    state_ = element.loop_back;
    Sync();
    if (stopped()) return;
    if (!element.adaptive) {
      if ((element.first[0] & Bit(Current().type)) == 0) return;
    } else if (Predict(element, element.loop_back) != 1 || stopped()) {
      return;
    }
  }
}

// The loop of operators behind the first operand: what was read so far becomes the left operand of a new node.
void SyntaxParser::RunLeftRecursion(const Element& element, Node*& node) {
  state_ = element.state;
  for (;;) {
    Sync();
    if (stopped()) return;
    if (Predict(element, element.state) != 1 || stopped()) return;
    std::size_t chosen = 1;
    if (element.alternatives.size() > 1) {
      state_ = element.block;
      Sync();
      if (stopped()) return;
      chosen = static_cast<std::size_t>(Predict(element, element.block));
      if (stopped()) return;
    }
    Node* outer = &nodes_.emplace_back();
    outer->rule = node->rule;
    outer->start = node->start;
    outer->alternative = element.names[chosen - 1];
    outer->parts.push_back({.label = Label::kLeft, .node = node});
    node = outer;
    RunSequence(element.alternatives[chosen - 1], node);
    if (stopped()) return;
    state_ = element.loop_back;
  }
}

void SyntaxParser::Consume() {
  if (recovery_tokens_left_ == 0) {
    Abort("error recovery token lookahead limit exceeded: " + std::to_string(kRecoveryTokensMax));
    return;
  }
  if (recovery_tokens_left_ > 0) --recovery_tokens_left_;
  if (Current().type != TokenType::kEnd) ++at_;
}

void SyntaxParser::EndErrorCondition() {
  recovering_ = false;
  last_error_states_.clear();
  last_error_index_ = static_cast<std::size_t>(-1);
}

bool SyntaxParser::CheckAttempts() {
  if (recoveries_ == kRecoveriesMax) {
    Notify(Current().offset, "error recovery attempt limit exceeded: " + std::to_string(kRecoveriesMax));
    aborted_ = true;
    return false;
  }
  ++recoveries_;
  return true;
}

TokenSet SyntaxParser::ExpectedTokens() const {
  TokenSet following = grammar_.NextTokens(state_);
  TokenSet expected = following & ~Bit(TokenType::kEpsilon);
  for (std::size_t i = stack_.size(); i-- > 0 && (following & Bit(TokenType::kEpsilon)) != 0;) {
    following = grammar_.NextTokens(grammar_.state(stack_[i]).transitions[0].follow);
    expected |= following & ~Bit(TokenType::kEpsilon);
  }
  if ((following & Bit(TokenType::kEpsilon)) != 0) expected |= Bit(TokenType::kEnd);
  return expected;
}

TokenSet SyntaxParser::RecoverySet() const {
  TokenSet set = 0;
  for (const int invoking : stack_) set |= grammar_.NextTokens(grammar_.state(invoking).transitions[0].follow);
  return set & ~Bit(TokenType::kEpsilon);
}

TokenSet SyntaxParser::NextTokensInContext(int state) const {
  TokenSet following = grammar_.NextTokens(state);
  TokenSet set = following & ~Bit(TokenType::kEpsilon);
  for (std::size_t i = stack_.size(); i-- > 0 && (following & Bit(TokenType::kEpsilon)) != 0;) {
    following = grammar_.NextTokens(grammar_.state(stack_[i]).transitions[0].follow);
    set |= following & ~Bit(TokenType::kEpsilon);
  }
  if ((following & Bit(TokenType::kEpsilon)) != 0) set |= Bit(TokenType::kEnd);
  return set;
}

void SyntaxParser::Sync() {
  if (recovering_ || aborted_) return;
  const TokenSet next = grammar_.NextTokens(state_);
  if ((next & (Bit(TokenType::kEpsilon) | Bit(Current().type))) != 0) return;
  switch (grammar_.state(state_).type) {
    case StateType::kBlockStart:
    case StateType::kStarBlockStart:
    case StateType::kPlusBlockStart:
    case StateType::kStarLoopEntry:
      if (DeleteToken() == nullptr) failure_ = Mismatch();
      return;
    case StateType::kPlusLoopBack:
    case StateType::kStarLoopBack:
      ReportUnwantedToken();
      ConsumeUntil(ExpectedTokens() | RecoverySet());
      return;
    default:
      return;
  }
}

void SyntaxParser::ReportFailure(const Failure& failure) {
  if (recovering_) return;
  recovering_ = true;
  const Token& offending = tokens_[failure.offending];
  if (failure.kind == Failure::Kind::kMismatch) {
    Notify(offending.offset, "mismatched input " + TokenText(offending) + " expecting " + Describe(failure.expected));
    return;
  }
  const std::string input =
      tokens_[failure.start].type == TokenType::kEnd ? "<EOF>" : TextBetween(failure.start, failure.offending);
  Token shown{.text = input};
  Notify(offending.offset, "no viable alternative at input " + TokenText(shown));
}

void SyntaxParser::ReportUnwantedToken() {
  if (recovering_) return;
  recovering_ = true;
  Notify(Current().offset, "extraneous input " + TokenText(Current()) + " expecting " + Describe(ExpectedTokens()));
}

void SyntaxParser::Recover() {
  if (aborted_ || !CheckAttempts()) return;
  recovery_tokens_left_ = kRecoveryTokensMax;
  if (last_error_index_ == at_ && std::ranges::find(last_error_states_, state_) != last_error_states_.end()) Consume();
  last_error_index_ = at_;
  last_error_states_.push_back(state_);
  if (!aborted_) ConsumeUntil(RecoverySet());
  recovery_tokens_left_ = -1;
}

const Token* SyntaxParser::RecoverInline() {
  if (!CheckAttempts()) return nullptr;
  recovery_tokens_left_ = kRecoveryTokensMax;
  const Token* result = nullptr;
  if (const Token* matched = DeleteToken()) {
    Consume();
    result = matched;
  } else if (InsertToken()) {
    result = MissingToken();
  } else {
    failure_ = Mismatch();
  }
  recovery_tokens_left_ = -1;
  return result;
}

// Skips one token where the token behind it is expected.
const Token* SyntaxParser::DeleteToken() {
  if ((ExpectedTokens() & Bit(LookAhead(2))) == 0) return nullptr;
  ReportUnwantedToken();
  Consume();
  EndErrorCondition();
  return &Current();
}

// Acts as if the missing token were there, where the current token could follow it.
bool SyntaxParser::InsertToken() {
  const int next = grammar_.state(state_).transitions[0].target;
  if ((NextTokensInContext(next) & Bit(Current().type)) == 0) return false;
  if (recovering_) return true;
  recovering_ = true;
  Notify(Current().offset, "missing " + Describe(ExpectedTokens()) + " at " + TokenText(Current()));
  return true;
}

const Token* SyntaxParser::MissingToken() {
  const TokenSet expected = ExpectedTokens();
  TokenType type = TokenType::kEnd;
  for (unsigned i = 1; i < static_cast<unsigned>(TokenType::kEnd); ++i) {
    if ((expected & (TokenSet{1} << i)) == 0) continue;
    type = static_cast<TokenType>(i);
    break;
  }
  if ((expected & Bit(TokenType::kEnd)) != 0) type = TokenType::kEnd;
  const std::string name = LiteralName(type);
  texts_.push_back(name.starts_with('\'') ? "<missing " + name + ">"
                                          : (type == TokenType::kEnd ? "<missing EOF>" : "<missing undefined>"));
  const Token& near = Current().type == TokenType::kEnd && at_ > 0 ? tokens_[at_ - 1] : Current();
  conjured_.push_back({type, near.offset, texts_.back()});
  return &conjured_.back();
}

void SyntaxParser::ConsumeUntil(TokenSet set) {
  while (!aborted_ && Current().type != TokenType::kEnd && (set & Bit(Current().type)) == 0) Consume();
}

std::string SyntaxParser::TokenText(const Token& token) const {
  std::string out = "'";
  if (token.text.empty() && token.type == TokenType::kEnd) return "'<EOF>'";
  for (const char c : token.text) {
    if (c == '\t') {
      out += "\\t";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// The source from one token to another with white space and comments, without characters that are not part of a token.
std::string SyntaxParser::TextBetween(std::size_t first, std::size_t last) const {
  const char* begin = tokens_[first].text.data();
  const Token& stop = tokens_[last];
  const char* end =
      stop.type == TokenType::kEnd ? source_.data() + source_.size() : stop.text.data() + stop.text.size();
  std::string out;
  for (const auto& error : lexer_errors_) {
    const char* from = error.text.data();
    if (from < begin || from >= end) continue;
    out.append(begin, from);
    begin = from + error.text.size();
  }
  return out.append(begin, end);
}

}  // namespace
}  // namespace grammar

void ParseWithRecovery(const Environment& env, Ast& ast, Issues& issues) {
  grammar::SyntaxParser parser(ast.source().text(), issues);
  const grammar::Node* tree = parser.Run();
  if (tree == nullptr) return;
  ExprBuilder builder(ast, env);
  Expr* root = grammar::SyntaxVisitor(env, builder, issues).Run(*tree);
  if (builder.overflowed()) issues.Report(-1, "expression expands to too many nodes");
  if (root == nullptr || !issues.empty()) return;
  ast.set_root(root);
  ast.set_id_count(builder.next_id());
}

}  // namespace keelson::cel
