// The cost of an evaluation that succeeds is never above the estimate's maximum, given the sizes that the variables
// have. The bytes choose a well-typed expression and the values of its variables.
// Left out of the grammar, because the reference itself does not keep the promise there (testdata/cel-kubernetes has
// such cases): startsWith and endsWith (estimated by the argument, charged by the receiver), join (charged twice the
// estimate), split (n+1 pieces of n characters, estimated as n), indexOf (charged by the bytes of texts, estimated by
// their characters), format.*.validate, and evaluations that fail.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "cel/compiler.h"
#include "cel/fuzz_inputs_test.h"
#include "cel/program.h"

namespace keelson::cel {
namespace {

class ExpressionWriter {
 public:
  static constexpr int kDepthMax = 5;

  explicit ExpressionWriter(FuzzBytes& bytes) : bytes_(bytes) {}

  std::string Bool(int depth = 0) {
    const auto sub = [&] { return Bool(depth + 1); };
    if (depth >= kDepthMax) return bytes_.Below(2) != 0 ? "b" : "true";
    switch (bytes_.Below(16)) {
      case 0:
        return "(" + sub() + " && " + sub() + ")";
      case 1:
        return "(" + sub() + " || " + sub() + ")";
      case 2:
        return "!" + sub();
      case 3:
        return "(" + Int(depth + 1) + Comparison() + Int(depth + 1) + ")";
      case 4:
        return "(" + String(depth + 1) + Comparison() + String(depth + 1) + ")";
      case 5:
        return String(depth + 1) + ".contains(" + String(depth + 1) + ")";
      case 6:
        return String(depth + 1) + ".matches('a+b*')";
      case 7:
        return "(" + Int(depth + 1) + " in " + Ints(depth + 1) + ")";
      case 8:
        return "(" + String(depth + 1) + " in " + Strings(depth + 1) + ")";
      case 9:
        return "(" + String(depth + 1) + " in " + Map() + ")";
      case 10:
        return Fold(depth, "all");
      case 11:
        return Fold(depth, "exists");
      case 12:
        return Fold(depth, "exists_one");
      case 13:
        return "(" + Strings(depth + 1) + " == " + Strings(depth + 1) + ")";
      case 14:
        return "sets.contains(" + Strings(depth + 1) + ", " + Strings(depth + 1) + ")";
      default:
        return bytes_.Below(2) != 0 ? "b" : "false";
    }
  }

 private:
  struct Local {
    std::string name;
    bool is_string;
  };

  std::string Comparison() {
    constexpr std::string_view kOperators[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
    return std::string(kOperators[bytes_.Below(6)]);
  }
  std::string Map() { return bytes_.Below(2) != 0 ? "m" : "{'a': s, 'b': 'c'}"; }

  std::string LocalOr(bool is_string, std::string_view otherwise) {
    std::vector<std::string_view> names;
    for (const Local& local : locals_)
      if (local.is_string == is_string) names.push_back(local.name);
    if (names.empty()) return std::string(otherwise);
    return std::string(names[bytes_.Below(static_cast<std::uint32_t>(names.size()))]);
  }

  std::string Int(int depth) {
    if (depth >= kDepthMax) return LocalOr(false, "n");
    switch (bytes_.Below(7)) {
      case 0:
        return "size(" + String(depth + 1) + ")";
      case 1:
        return "size(" + Strings(depth + 1) + ")";
      case 2:
        return "(" + Bool(depth + 1) + " ? " + Int(depth + 1) + " : " + Int(depth + 1) + ")";
      case 3:
        return Ints(depth + 1) + ".sum()";
      case 4:
        return std::to_string(bytes_.Byte());
      case 5:
        return "cel.bind(v" + std::to_string(depth) + ", " + Int(depth + 1) + ", v" + std::to_string(depth) +
               " / 7 + 1)";
      default:
        return LocalOr(false, "n");
    }
  }

  std::string String(int depth) {
    if (depth >= kDepthMax) return LocalOr(true, "s");
    switch (bytes_.Below(12)) {
      case 0:
        return "(" + String(depth + 1) + " + " + String(depth + 1) + ")";
      case 1:
        return String(depth + 1) + ".lowerAscii()";
      case 2:
        return String(depth + 1) + ".replace(" + String(depth + 1) + ", 'xy')";
      case 3:
        return String(depth + 1) + ".trim()";
      case 4:
        return "(" + Bool(depth + 1) + " ? " + String(depth + 1) + " : " + String(depth + 1) + ")";
      case 5:
        return String(depth + 1) + ".upperAscii()";
      case 6:
        return "string(" + Int(depth + 1) + ")";
      case 7:
        return "'abc'";
      case 8:
        return "m[?" + String(depth + 1) + "].orValue(" + String(depth + 1) + ")";
      case 9:
        return String(depth + 1) + ".find('[a-z]+')";
      case 10:
        return "cel.bind(w" + std::to_string(depth) + ", " + String(depth + 1) + ", w" + std::to_string(depth) +
               " + w" + std::to_string(depth) + ")";
      default:
        return LocalOr(true, "s");
    }
  }

  std::string Ints(int depth) {
    if (depth >= kDepthMax) return "l";
    switch (bytes_.Below(5)) {
      case 0:
        return "[" + Int(depth + 1) + ", " + Int(depth + 1) + "]";
      case 1:
        return Each(depth, "map", false);
      case 2:
        return "(" + Ints(depth + 1) + " + " + Ints(depth + 1) + ")";
      default:
        return "l";
    }
  }

  std::string Strings(int depth) {
    if (depth >= kDepthMax) return "ls";
    switch (bytes_.Below(6)) {
      case 0:
        return "[" + String(depth + 1) + ", " + String(depth + 1) + "]";
      case 1:
        return Each(depth, "map", true);
      case 2:
        return Each(depth, "filter", true);
      case 3:
        return "(" + Strings(depth + 1) + " + " + Strings(depth + 1) + ")";
      default:
        return "ls";
    }
  }

  // A macro with a condition as its body, over a list or the keys of a map.
  std::string Fold(int depth, std::string_view macro) {
    const std::string name = "x" + std::to_string(depth);
    const std::uint32_t choice = bytes_.Below(3);
    const std::string range = choice == 0 ? Ints(depth + 1) : choice == 1 ? Strings(depth + 1) : Map();
    locals_.push_back({name, choice != 0});
    const std::string body = Bool(depth + 1);
    locals_.pop_back();
    return range + "." + std::string(macro) + "(" + name + ", " + body + ")";
  }

  std::string Each(int depth, std::string_view macro, bool strings) {
    const std::string name = "x" + std::to_string(depth);
    const std::string range = strings ? Strings(depth + 1) : Ints(depth + 1);
    locals_.push_back({name, strings});
    const std::string body = macro == "filter" ? Bool(depth + 1) : strings ? String(depth + 1) : Int(depth + 1);
    locals_.pop_back();
    return range + "." + std::string(macro) + "(" + name + ", " + body + ")";
  }

  FuzzBytes& bytes_;
  std::vector<Local> locals_;
};

}  // namespace
}  // namespace keelson::cel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson;
  constexpr std::size_t kExpressionBytesMax = 8 * 1024;
  static const cel::EnvironmentPtr kEnv = cel::FuzzEnvironment();
  cel::FuzzBytes bytes({reinterpret_cast<const char*>(data), size});
  base::Arena arena;
  cel::ValueActivation activation = cel::FuzzActivation(arena, bytes);
  const std::string expression = cel::ExpressionWriter(bytes).Bool();
  if (expression.size() > kExpressionBytesMax) return 0;
  const auto compiled = cel::Compile(kEnv, expression);
  if (!compiled.ok()) std::fprintf(stderr, "%s\n%s\n", expression.c_str(), compiled.error().c_str());
  KS_CHECK(compiled.ok());
  const auto program = cel::Program::New(kEnv, **compiled);
  if (!program.ok()) return 0;
  const cel::FuzzSizes sizes(arena, activation);
  const cel::Estimate estimate = cel::EstimateCost(**compiled, {.sizes = &sizes});
  const auto result = (*program)->Evaluate(arena, activation);
  if (!result.ok()) return 0;
  if (result.cost > estimate.max)
    std::fprintf(stderr, "%s\ncost %llu estimate %llu\n", expression.c_str(),
                 static_cast<unsigned long long>(result.cost), static_cast<unsigned long long>(estimate.max));
  KS_CHECK(result.cost <= estimate.max);
  return 0;
}
