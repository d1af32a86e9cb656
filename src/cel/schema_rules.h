// x-kubernetes-validations: compiles the rules of a schema's nodes and checks them as the creation of a
// CustomResourceDefinition does: texts, types, use of oldSelf, static cost of each rule and of the whole schema.
// Pure. The structural schema must outlive the results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cel/ast.h"
#include "cel/decl_type.h"
#include "cel/environment.h"
#include "schema/structural/structural.h"

namespace keelson::cel {

inline constexpr std::uint64_t kRuleCostLimit =
    10'000'000;  // static estimate of one rule, all its evaluations together
inline constexpr std::uint64_t kSchemaCostLimit = 100'000'000;  // of all rules of a schema

struct CompiledRule {
  std::string error;  // "compilation failed: …"; "" where there is none
  AstPtr rule;        // null with an error, and for an empty rule
  bool uses_old_self = false;
  bool optional_old_self = false;
  std::uint64_t max_cost = 0;
  std::string message_error;
  AstPtr message;  // messageExpression; null where there is none or it has an error
  std::uint64_t message_max_cost = 0;
  std::string field_path;  // normalised: "spec.replicas"
};

struct NodeRules {
  std::vector<CompiledRule> rules;    // as in the schema
  std::uint64_t max_cardinality = 0;  // evaluations under an unbounded list or map
  EnvironmentPtr env;                 // self and oldSelf
  EnvironmentPtr optional_env;        // oldSelf is optional
};

// Makes a program of a checked expression to see whether that fails: cel-go's text, or "".
using Instantiate = std::function<std::string(const EnvironmentPtr&, const Ast&)>;

// Compiles the rules of `node`, whose declared type is `type`. `owner` keeps `type` alive.
NodeRules CompileNodeRules(schema::structural::Node node, const DeclType& type, std::shared_ptr<const DeclTypes> owner,
                           ExpressionMode mode, const Instantiate& instantiate);

struct SchemaRuleError {
  enum class Type : std::uint8_t { kInvalid, kForbidden, kRequired, kNotSupported, kInternal };
  Type type = Type::kInvalid;
  std::string
      field;  // below openAPIV3Schema: ".properties[spec].x-kubernetes-validations[0].rule"; "" = the schema itself
  std::string value;  // JSON; "" where the type shows none
  std::string detail;
};

// Called for each node with rules, compiled, also where their texts have errors; `cardinality` is the product of the
// bounds of enclosing lists and maps, nothing where one is unbounded.
using ObserveRules = std::function<void(schema::structural::Node, std::string_view field,
                                        std::optional<std::uint64_t> cardinality, const NodeRules&)>;

// True for a node (by its `SchemaRuleError::field`) whose rules must not be compiled because the schema has errors at
// that node or below it.
using SkipRules = std::function<bool(std::string_view field)>;

// Errors of all rules of a schema. Paths are relative to `openAPIV3Schema`, which is `schema_path` in texts. With
// `skip` the caller has checked the texts of the rules itself; without it they are checked here, and a malformed text
// keeps the rules at and above its node from being compiled.
std::vector<SchemaRuleError> ValidateSchemaRules(schema::structural::Node root, std::string_view schema_path,
                                                 ExpressionMode mode, const Instantiate& instantiate,
                                                 const ObserveRules& observe = {}, const SkipRules& skip = {});

// Takes the next token of a field path off `rest`: '.', '[', ']', a single-quoted text, or the text up to one of these.
std::optional<std::string_view> NextFieldPathToken(std::string_view& rest);
// The text between single quotes without its escapes; nothing where an escape is unknown.
std::optional<std::string> UnescapeSingleQuoted(std::string_view text);

// The normalised form of a rule's fieldPath, or nothing where it leads to no field of the schema.
std::optional<std::string> ValidFieldPath(schema::structural::Node node, std::string_view path);

}  // namespace keelson::cel
