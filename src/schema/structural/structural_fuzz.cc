// Any JSON text builds or is refused; what builds can be walked whole, and builds to the same blob again.
#include "base/check.h"
#include "object/json_text.h"
#include "schema/structural/structural.h"

namespace {

using keelson::schema::structural::Node;

std::size_t Walk(const Node& node, int depth) {
  KS_CHECK(depth <= keelson::schema::structural::kDepthMax);
  if (!node) return 0;
  keelson::base::Arena arena;
  std::size_t seen = 1 + node.format().size() + node.pattern().size() + node.rule_count();
  node.DefaultValue(arena);
  for (std::size_t i = 0; i < node.property_count(); ++i) {
    KS_CHECK(node.Property(node.property_name(i)));
    seen += Walk(node.property(i), depth + 1);
  }
  for (std::size_t i = 0; i < node.enum_count(); ++i) seen += node.enum_text(i).size();
  for (std::size_t i = 0; i < node.rule_count(); ++i) seen += node.rule(i).rule.size();
  for (std::size_t i = 0; i < node.all_of_count(); ++i) seen += Walk(node.all_of(i), depth + 1);
  for (std::size_t i = 0; i < node.any_of_count(); ++i) seen += Walk(node.any_of(i), depth + 1);
  for (std::size_t i = 0; i < node.one_of_count(); ++i) seen += Walk(node.one_of(i), depth + 1);
  seen += Walk(node.not_schema(), depth + 1) + Walk(node.items(), depth + 1);
  return seen + Walk(node.additional_properties(), depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::schema::structural;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Pool pool;
  const auto built = pool.Build(text);
  if (built.ok()) {
    Walk(built->root(), 0);
    const auto again = pool.Build(text);
    KS_CHECK(again.ok() && *again == *built);
  }
  IgnoreError(built, "any answer will do");
  FindVersionSchema(text, "v1");
  return 0;
}
