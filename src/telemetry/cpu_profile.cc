#include "telemetry/cpu_profile.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace keelson::telemetry {
namespace {

struct Sample {
  int depth = 0;
  std::array<void*, CPUProfile::kFramesMax> frames;
};

// The signal handler's buffer: it may only touch allocated memory.
struct Samples {
  std::atomic<std::size_t> next{0};
  std::vector<Sample> items{CPUProfile::kSamplesMax};
};

std::mutex g_mutex;  // over starting and stopping
std::unique_ptr<Samples> g_samples;
std::atomic<Samples*> g_target{nullptr};  // null: not sampling
std::atomic<int> g_inside{0};             // handlers that run now

void OnSignal(int) {
  const int saved = errno;
  ++g_inside;
  if (Samples* samples = g_target.load()) {
    const std::size_t index = samples->next.fetch_add(1);
    if (index < samples->items.size()) {
      Sample& sample = samples->items[index];
      sample.depth = backtrace(sample.frames.data(), CPUProfile::kFramesMax);
    }
  }
  --g_inside;
  errno = saved;
}

void SetTimer(int per_second) {
  itimerval timer{};
  if (per_second > 0) timer.it_interval.tv_usec = timer.it_value.tv_usec = 1'000'000 / per_second;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

// Protobuf, the little that profile.proto needs.
void Varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}
void Number(std::string& out, int field, std::uint64_t value) {
  Varint(out, static_cast<std::uint64_t>(field) << 3);
  Varint(out, value);
}
void Message(std::string& out, int field, const std::string& bytes) {
  Varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  Varint(out, bytes.size());
  out += bytes;
}

class ProfileWriter {
 public:
  ProfileWriter() { String(""); }

  std::uint64_t String(const std::string& text) {
    const auto [found, added] = strings_.try_emplace(text, strings_.size());
    if (added) Message(table_, 6, text);
    return found->second;
  }
  std::string ValueType(const std::string& type, const std::string& unit) {
    std::string out;
    Number(out, 1, String(type));
    Number(out, 2, String(unit));
    return out;
  }
  // Executable mappings of this process, by which pprof finds the file of an address.
  std::string Mappings() {
    std::string out;
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return out;
    char line[1024];
    while (std::fgets(line, sizeof(line), maps) != nullptr) {
      unsigned long start = 0, limit = 0, offset = 0;
      char permissions[8] = {}, path[512] = {};
      if (std::sscanf(line, "%lx-%lx %7s %lx %*s %*s %511s", &start, &limit, permissions, &offset, path) < 4) continue;
      if (permissions[2] != 'x') continue;
      ranges_.push_back({start, limit});
      std::string mapping;
      Number(mapping, 1, ranges_.size());
      Number(mapping, 2, start);
      Number(mapping, 3, limit);
      Number(mapping, 4, offset);
      Number(mapping, 5, String(path));
      Message(out, 3, mapping);
    }
    std::fclose(maps);
    return out;
  }
  std::uint64_t Location(std::uint64_t address) {
    const auto [found, added] = locations_.try_emplace(address, locations_.size() + 1);
    if (added) {
      std::string location;
      Number(location, 1, found->second);
      for (std::size_t i = 0; i < ranges_.size(); ++i) {
        if (address >= ranges_[i].first && address < ranges_[i].second) Number(location, 2, i + 1);
      }
      Number(location, 3, address);
      Message(location_table_, 4, location);
    }
    return found->second;
  }
  std::string Rest() const { return location_table_ + table_; }

 private:
  std::map<std::string, std::uint64_t> strings_;
  std::string table_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
  std::map<std::uint64_t, std::uint64_t> locations_;
  std::string location_table_;
};

constexpr int kHandlerFrames = 2;  // the handler itself and the kernel's return to user code

std::string Encode(const Samples& samples, base::Clock::SystemTime started, base::Clock::SystemTime ended) {
  constexpr std::uint64_t kPeriod = 1'000'000'000 / CPUProfile::kSamplesPerSecond;
  ProfileWriter writer;
  std::string out;
  Message(out, 1, writer.ValueType("samples", "count"));
  Message(out, 1, writer.ValueType("cpu", "nanoseconds"));
  out += writer.Mappings();
  std::map<std::vector<std::uint64_t>, std::uint64_t> stacks;
  const std::size_t count = std::min(samples.next.load(), samples.items.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Sample& sample = samples.items[i];
    std::vector<std::uint64_t> stack;
    for (int f = kHandlerFrames; f < sample.depth; ++f) {
      auto address = reinterpret_cast<std::uint64_t>(sample.frames[static_cast<std::size_t>(f)]);
      // Callers are noted by where they go on; the call itself is just before that.
      if (f > kHandlerFrames && address > 0) --address;
      stack.push_back(writer.Location(address));
    }
    ++stacks[stack];
  }
  for (const auto& [stack, times] : stacks) {
    std::string packed, values, message;
    for (const std::uint64_t location : stack) Varint(packed, location);
    Varint(values, times);
    Varint(values, times * kPeriod);
    Message(message, 1, packed);
    Message(message, 2, values);
    Message(out, 2, message);
  }
  const auto nanos = [](auto duration) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
  };
  Number(out, 9, nanos(started.time_since_epoch()));
  Number(out, 10, nanos(ended - started));
  Message(out, 11, writer.ValueType("cpu", "nanoseconds"));
  Number(out, 12, kPeriod);
  return out + writer.Rest();
}

}  // namespace

std::optional<CPUProfile> CPUProfile::Start() {
  std::lock_guard lock(g_mutex);
  if (g_target.load() != nullptr) return std::nullopt;
  void* warm[4];
  backtrace(warm, 4);  // the first call loads the unwinder, which a handler must not
  g_samples = std::make_unique<Samples>();
  struct sigaction action{};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGPROF, &action, nullptr);
  g_target = g_samples.get();
  SetTimer(kSamplesPerSecond);
  return CPUProfile(base::Clock::Real().Now());
}

CPUProfile::CPUProfile(CPUProfile&& other) noexcept
    : started_(other.started_), active_(std::exchange(other.active_, false)) {}

CPUProfile::~CPUProfile() {
  if (!active_) return;
  std::lock_guard lock(g_mutex);
  Stop();
}

void CPUProfile::Stop() {
  SetTimer(0);
  g_target = nullptr;
  while (g_inside != 0) std::this_thread::yield();
  // A late signal must be ignored; the default action would end the process.
  signal(SIGPROF, SIG_IGN);
  active_ = false;
}

std::string CPUProfile::Finish() {
  std::lock_guard lock(g_mutex);
  Stop();
  return Encode(*g_samples, started_, base::Clock::Real().Now());
}

}  // namespace keelson::telemetry
