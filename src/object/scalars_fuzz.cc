// Quantities, times and durations: what parses also prints, and what is printed parses to the same. Arithmetic on any
// two quantities neither overflows nor runs long (the sanitizers and libFuzzer's timeout look).
#include <cmath>

#include "base/check.h"
#include "object/duration.h"
#include "object/quantity.h"
#include "object/time.h"

using namespace keelson::object;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t half = text.find(' ');
  const auto first = Quantity::Parse(text.substr(0, half));
  if (first.ok()) {
    char buffer[Quantity::kTextMax];
    KS_CHECK(Quantity::Canonical(text.substr(0, half), buffer).ok());
    const auto again = Quantity::Parse(first->ToString());
    // No suffix exists above E: 1 and 21 zeros is printed as "1", by upstream, too.
    const bool has_suffix = std::fabs(first->AsDouble()) < 1e21;
    KS_CHECK(!again.ok() || again->Compare(*first) == 0 || !has_suffix);
    first->Value(), first->MilliValue(), first->AsDouble(), first->IsInteger();
    const auto second = half == text.npos ? first : Quantity::Parse(text.substr(half + 1));
    if (second.ok()) {
      Quantity sum = *first;
      sum.Add(*second);
      sum.ToString();
      sum.Sub(*second);
      sum.RoundUp(-3);
      KS_CHECK(first->Compare(*second) == -second->Compare(*first));
    }
  }
  for (const bool micro : {false, true}) {
    if (const auto time = ParseTime(text, micro); time.ok()) {
      const std::string printed = micro ? FormatMicroTime(*time) : FormatTime(time->seconds);
      KS_CHECK(printed.size() <= kTimeTextMax);
    }
  }
  if (const auto duration = ParseDuration(text); duration.ok()) {
    const auto again = ParseDuration(FormatDuration(*duration));
    KS_CHECK(again.ok() && *again == *duration);
  }
  return 0;
}
