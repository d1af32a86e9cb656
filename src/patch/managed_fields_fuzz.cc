// FieldsV1 that parses prints, and the print parses to the same set; a list of entries decodes or says why not.
#include "base/check.h"
#include "object/json_text.h"
#include "patch/managed_fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson;
  base::Arena arena;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto set = patch::FieldSet::Parse(arena, text)) {
    const std::string printed = set->ToJSON();
    const auto again = patch::FieldSet::Parse(arena, printed);
    KS_CHECK(again.has_value() && *again == *set);
    KS_CHECK(patch::FieldSet::Union(arena, *set, *again) == *set);
    KS_CHECK(patch::FieldSet::Difference(arena, *set, *again).empty());
  }
  if (const auto list = object::ParseJSON(arena, text)) {
    if (auto entries = patch::DecodeManagedFields(arena, *list); entries.ok()) {
      patch::CapUpdateManagers(arena, *entries);
      patch::EncodeManagedFields(arena, *std::move(entries));
    }
  }
  return 0;
}
