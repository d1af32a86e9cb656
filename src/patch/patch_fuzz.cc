// A JSON list [document, patch]: every kind of patch leaves the document as it was, and answers or refuses without
// harm.
#include "base/check.h"
#include "object/json_text.h"
#include "patch/json_patch.h"
#include "patch/merge_patch.h"
#include "patch/strategic_merge.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson;
  base::Arena arena;
  const auto input = object::ParseJSON(arena, {reinterpret_cast<const char*>(data), size});
  if (!input) return 0;
  const Value document = (*input)[std::size_t{0}];
  const Value change = (*input)[std::size_t{1}];
  const std::string before = object::ToJSON(document);
  if (patch::CheckJSONPatch(change, true).ok())
    IgnoreError(patch::ApplyJSONPatch(arena, document, change), "any answer will do");
  IgnoreError(patch::ApplyMergePatch(arena, document, change, true), "any answer will do");
  static const schema::Struct* const pod = schema::FindKind("", "v1", "Pod");
  if (document.is_map())
    IgnoreError(patch::ApplyStrategicMergePatch(arena, document, change, *pod), "any answer will do");
  KS_CHECK(object::ToJSON(document) == before);
  return 0;
}
