// Recorded answers of the real server, played against strategies without a server: the body of a request goes through
// decode, defaults, prepare and validate as the Store would take it, and the causes of the 422 must be the recorded
// ones. The recordings are read at test time (KEELSON_CORPUS, by default test/recordings/corpus).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "registry/testing/player.h"

namespace keelson::registry::testing {

struct CorpusOptions {
  Player::BeforeValidation before_validation = nullptr;
  std::vector<std::string> skip;  // case names "pod/create-x" that need more than strategies
  // Takes away what others make (allocated values, what admission adds) before an object is compared with the recorded
  // one; metadata that the Store makes is left out anyway.
  std::function<void(base::Arena& arena, Value object)> compare_without;
};

struct CorpusResult {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  std::vector<std::string> failures;  // name, what was expected, what came
};

// The recordings below a folder or file of the corpus ("crud", "service.json"), sorted; none without a corpus.
std::vector<std::string> CorpusFiles(std::string_view below);

// Runs every create, update and merge patch, of objects and of their subresources, that was accepted or answered 422,
// each against the object that the recording had then; compares causes, and of what is accepted the object and the
// warnings. Recorded rows are compared with those of the objects that were recorded before them.
CorpusResult RunCorpus(const std::string& file, const CorpusOptions& options);

}  // namespace keelson::registry::testing
