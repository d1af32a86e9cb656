// The known word closest to a mistyped one.
#pragma once

#include <span>
#include <string_view>

namespace keelson::app {

// The nearest of `known` by edit distance, at most a third of the word's letters (and two at least) away; "" for none.
std::string_view Suggestion(std::string_view word, std::span<const std::string_view> known);

}  // namespace keelson::app
