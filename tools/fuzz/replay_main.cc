// Replaces libFuzzer's main if fuzzing is off: runs the target once over every file of the folders it is given.
// `--mutate=SECONDS [--seed=N]` then goes on with mutations of these files, without coverage to guide it: enough to
// look for crashes in a build without instrumentation.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// A target whose threads run on ends the process here.
extern "C" __attribute__((weak)) void KeelsonFuzzEnd();

namespace {

constexpr std::size_t kInputMax = 1 << 16;

void RunOne(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

int End() {
  if (KeelsonFuzzEnd != nullptr) KeelsonFuzzEnd();
  return 0;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, std::uint64_t seed) : seeds_(std::move(seeds)), random_(seed) {}

  std::string Next() {
    std::string input = Pick(seeds_);
    for (std::size_t i = 1 + Below(4); i > 0; --i) Mutate(input);
    if (input.size() > kInputMax) input.resize(kInputMax);
    return input;
  }

 private:
  std::size_t Below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
  const std::string& Pick(const std::vector<std::string>& from) { return from[Below(from.size())]; }
  // A part between two marks of structured text, or of any length.
  std::pair<std::size_t, std::size_t> Part(const std::string& text) {
    const std::size_t at = Below(text.size());
    if (Below(2) == 0) return {at, Below(std::min<std::size_t>(text.size() - at, 64)) + 1};
    constexpr std::string_view kMarks = "\"{}[],:/?&=\n ";
    const auto begin = std::min(text.find_first_of(kMarks, at), text.size());
    const auto end = std::min(text.find_first_of(kMarks, begin + 1), text.size());
    return {begin, end - begin};
  }
  void Mutate(std::string& input) {
    if (input.empty()) input = " ";
    const auto [at, length] = Part(input);
    const std::string& other = Pick(seeds_);
    switch (Below(7)) {
      case 0:
        input[Below(input.size())] = static_cast<char>(random_());
        break;
      case 1:
        input.erase(at, length);
        break;
      case 2:
        input.insert(at, input.substr(at, length));
        break;
      case 3:
      case 4: {
        const auto [from, size] = Part(other);
        input.replace(at, length, other.substr(from, size));
        break;
      }
      case 5: {
        static const std::vector<std::string> kValues{"null",
                                                      "-1",
                                                      "0",
                                                      "9223372036854775807",
                                                      "9223372036854775808",
                                                      "1e400",
                                                      "true",
                                                      "\"\"",
                                                      "{}",
                                                      "[]",
                                                      "[null]",
                                                      "{\"a\":null}",
                                                      "\xff",
                                                      "%00",
                                                      "..",
                                                      "*",
                                                      "1h",
                                                      "1Ki",
                                                      "::1",
                                                      "0001-01-01T00:00:00Z",
                                                      "$(x)",
                                                      "\\u0000"};
        input.replace(at, length, Pick(kValues));
        break;
      }
      default:
        input.insert(at, std::string(1 + Below(300), input[Below(input.size())]));
    }
  }

  const std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> inputs;
  int seconds = 0;
  std::uint64_t seed = std::random_device()();
  RunOne("");
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--mutate=")) {
      seconds = std::atoi(argv[i] + 9);
      continue;
    }
    if (argument.starts_with("--seed=")) {
      seed = std::strtoull(argv[i] + 7, nullptr, 10);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      inputs.emplace_back((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      RunOne(inputs.back());
    }
  }
  std::printf("replayed %zu inputs\n", inputs.size());
  if (seconds == 0 || inputs.empty()) return End();
  std::printf("mutating for %d s, --seed=%llu\n", seconds, static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Mutator mutator(std::move(inputs), seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::size_t runs = 0;
  const char* const keep =
      std::getenv("KEELSON_FUZZ_LAST");  // the input that is being run, for whoever looks at a crash
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    const std::string input = mutator.Next();
    if (keep != nullptr) std::ofstream(keep, std::ios::binary) << input;
    RunOne(input);
  }
  std::printf("%zu mutations\n", runs);
  return End();
}
