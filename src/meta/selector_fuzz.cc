// Property: a parsed selector prints, and its text parses to the same.
#include "base/check.h"
#include "meta/selector.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto labels = keelson::meta::LabelSelector::Parse(text); labels.ok()) {
    const auto again = keelson::meta::LabelSelector::Parse(labels->ToString());
    KS_CHECK(again.ok() && again->ToString() == labels->ToString());
  }
  if (const auto fields = keelson::meta::FieldSelector::Parse(text); fields.ok()) {
    const auto again = keelson::meta::FieldSelector::Parse(fields->ToString());
    KS_CHECK(again.ok());
  }
  return 0;
}
