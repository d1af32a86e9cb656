// Kubernetes' dialect of JSONPath (client-go/util/jsonpath) over Values: additionalPrinterColumns, selectableFields,
// scale paths. Parsed once into a flat program; evaluation is bounded by kResultsMax and kStepsMax.
// Thread safety: immutable after Parse.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/outcome.h"
#include "object/value.h"

namespace keelson::object {

class JSONPath {
 public:
  static constexpr std::size_t kTextMax = 4096;      // bytes of a path; longer ones are refused
  static constexpr int kDepthMax = 32;               // nested filters and lists
  static constexpr std::size_t kResultsMax = 65536;  // values in flight at any time; more is an error
  static constexpr std::size_t kStepsMax = 1000000;  // values looked at by one evaluation

  // The path without braces, as definitions write it: `.spec.replicas`,
  // `.status.conditions[?(@.type=="Ready")].status`. The error is upstream's text.
  static Outcome<JSONPath, std::string> Parse(std::string_view path);

  // The values that the first expression of the path gives, in order; missing keys give no result. The error is
  // upstream's text (filters over values that are not lists, and so on). `steps`, which may be null, counts the values
  // looked at by several evaluations, which end at kStepsMax together.
  Outcome<std::vector<Value>, std::string> Find(base::Arena& arena, const Value& object,
                                                std::size_t* steps = nullptr) const;

  // A value as kubectl-style templates print it: strings bare, numbers by Go's %v, objects and lists as JSON.
  static std::string Print(const Value& value);

 private:
  struct Program;
  friend struct JSONPathParser;
  friend struct JSONPathWalk;
  explicit JSONPath(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace keelson::object
