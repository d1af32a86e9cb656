// Recorded answers of the real server, played against strategies without a server: the body of a request goes through
// decode, defaults, prepare and validate as the Store would take it, and the causes of the 422 must be the recorded
// ones. The recordings are read at test time (KEELSON_CORPUS, or ../shared/corpus beside the source root).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "registry/strategy.h"

namespace keelson::registry::testing {

struct CorpusOptions {
  std::string folder = "validation";
  // What allocators and admission would have done before validation; errors end the request. `old` is null on create.
  std::function<FieldErrors(const Call& call, Value object, Value old)> before_validation = nullptr;
  std::vector<std::string> skip;  // case names "pod/create-x" that need more than strategies
  // Also compare what is stored, rows and warnings with the recorded answers. The function takes away what others make
  // (allocated values, what admission adds); metadata that the Store makes is left out anyway.
  std::function<void(base::Arena& arena, Value object)> compare_without = nullptr;
};

struct CorpusResult {
  bool found = false;  // the recordings are there
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  std::vector<std::string> failures;  // name, what was expected, what came
};

// Runs every create, update and merge patch, of objects and of their subresources, that was accepted or answered 422,
// each against the object that the recording had then. Only kinds that `find` knows are looked at.
using FindStrategyFunction = const Strategy* (*)(std::string_view group, std::string_view kind);
CorpusResult RunCorpus(std::string_view file, FindStrategyFunction find, const CorpusOptions& options = {});

}  // namespace keelson::registry::testing
