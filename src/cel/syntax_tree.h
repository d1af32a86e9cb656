// The parse tree of an expression that may have syntax errors: parts that could not be read are missing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cel/grammar.h"
#include "cel/lexer.h"

namespace keelson::cel::grammar {

struct Node;

struct Part {
  Label label = Label::kNone;
  const Token* token = nullptr;  // either a token
  const Node* node = nullptr;    // or a rule
};

struct Node {
  Rule rule = Rule::kStart;
  Alternative alternative = Alternative::kPlain;  // kPlain where prediction failed
  const Token* start = nullptr;
  std::vector<Part> parts;

  const Token* token(Label label) const {
    for (const auto& part : parts)
      if (part.label == label && part.token != nullptr) return part.token;
    return nullptr;
  }
  const Node* node(Label label) const {
    for (const auto& part : parts)
      if (part.label == label && part.node != nullptr) return part.node;
    return nullptr;
  }
  std::vector<const Token*> tokens(Label label) const {
    std::vector<const Token*> found;
    for (const auto& part : parts)
      if (part.label == label && part.token != nullptr) found.push_back(part.token);
    return found;
  }
  std::vector<const Node*> nodes(Label label) const {
    std::vector<const Node*> found;
    for (const auto& part : parts)
      if (part.label == label && part.node != nullptr) found.push_back(part.node);
    return found;
  }
};

}  // namespace keelson::cel::grammar
