// The process's log, in klog's text format or as JSON lines, with klog's levels (-v) and per-file levels (--vmodule).
//   log::V(2).Info("Compacted store", "revision", revision, "keys", deleted);
//   log::Error("Failed to renew lease", "err", status, "lease", id);
// Thread safety: every function from any thread. A line is written whole. Before Start() lines are written by the
// caller; after it they go through one bounded buffer that a separate thread empties, so that a slow reader of the
// log never holds up a request: when the buffer is full, lines are dropped and their number is logged. One log per
// process on purpose, the only such thing here: passing it through every call would say nothing.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace keelson::log {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };
enum class Format : std::uint8_t { kText, kJSON };

// One value of a key/value pair. Views what it is given: made for the call, never kept.
class Value {
 public:
  enum class Kind : std::uint8_t { kBool, kInt, kUint, kDouble, kString, kDuration };

  Value(bool value) : kind_(Kind::kBool), int_(value) {}  // NOLINT: pairs are written as plain arguments
  Value(std::signed_integral auto value) : kind_(Kind::kInt), int_(value) {}       // NOLINT
  Value(std::unsigned_integral auto value) : kind_(Kind::kUint), uint_(value) {}   // NOLINT
  Value(std::floating_point auto value) : kind_(Kind::kDouble), double_(value) {}  // NOLINT
  Value(const char* text) : kind_(Kind::kString), int_(0), text_(text) {}          // NOLINT
  Value(std::string_view text) : kind_(Kind::kString), int_(0), text_(text) {}     // NOLINT
  Value(const std::string& text) : kind_(Kind::kString), int_(0), text_(text) {}   // NOLINT
  template <class Rep, class Period>
  Value(std::chrono::duration<Rep, Period> duration)  // NOLINT
      : kind_(Kind::kDuration), int_(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count()) {}
  // Anything with a message(): a Status, a storage error.
  template <class T>
    requires requires(const T& t) {
      { t.message() } -> std::convertible_to<std::string_view>;
    }
  Value(const T& error) : kind_(Kind::kString), int_(0), owned_(error.message()), text_(owned_) {}  // NOLINT

  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  Kind kind() const { return kind_; }
  bool AsBool() const { return int_ != 0; }
  std::int64_t AsInt() const { return int_; }
  std::uint64_t AsUint() const { return uint_; }
  double AsDouble() const { return double_; }
  std::string_view AsString() const { return text_; }

 private:
  Kind kind_;
  union {
    std::int64_t int_;
    std::uint64_t uint_;
    double double_;
  };
  std::string owned_;
  std::string_view text_;
};

namespace internal {

struct Line {
  Severity severity;
  int verbosity;
  bool structured;  // false: the message as it is, as klog.Info writes it
  std::string_view message;
  std::source_location where;
};
void Write(const Line& line, std::span<const Value> keys_and_values);
bool Enabled(int level, const char* file);

template <class... Args>
void WriteArgs(const Line& line, const Args&... args) {
  static_assert(sizeof...(Args) % 2 == 0, "keys and values come in pairs");
  if constexpr (sizeof...(Args) == 0) {
    Write(line, {});
  } else {
    const Value values[] = {Value(args)...};
    Write(line, values);
  }
}

}  // namespace internal

// A message that remembers where it was written. The text must be a literal or outlive the call.
struct Message {
  std::string_view text;
  std::source_location where;
  template <class T>
    requires std::convertible_to<T, std::string_view>
  Message(const T& text, std::source_location where = std::source_location::current())
      : text(text), where(where) {}  // NOLINT
};

class Verbose {
 public:
  Verbose(int level, bool enabled, std::source_location where) : level_(level), enabled_(enabled), where_(where) {}

  bool enabled() const { return enabled_; }
  explicit operator bool() const { return enabled_; }
  template <class... Args>
  void Info(std::string_view message, const Args&... keys_and_values) const {
    if (enabled_) internal::WriteArgs({Severity::kInfo, level_, true, message, where_}, keys_and_values...);
  }
  // The text as it is, without quotes and pairs (upstream's Infof): FLAG lines, traces.
  void Text(std::string_view text) const {
    if (enabled_) internal::Write({Severity::kInfo, level_, false, text, where_}, {});
  }

 private:
  int level_;
  bool enabled_;
  std::source_location where_;
};

inline Verbose V(int level, std::source_location where = std::source_location::current()) {
  return Verbose(level, internal::Enabled(level, where.file_name()), where);
}
template <class... Args>
void Info(Message message, const Args&... keys_and_values) {
  internal::WriteArgs({Severity::kInfo, 0, true, message.text, message.where}, keys_and_values...);
}
template <class... Args>
void Warning(Message message, const Args&... keys_and_values) {
  internal::WriteArgs({Severity::kWarning, 0, true, message.text, message.where}, keys_and_values...);
}
template <class... Args>
void Error(Message message, const Args&... keys_and_values) {
  internal::WriteArgs({Severity::kError, 0, true, message.text, message.where}, keys_and_values...);
}

// The text as it is, without quotes and pairs (upstream's Warningf, Errorf).
inline void Text(Severity severity, Message message) {
  internal::Write({severity, 0, false, message.text, message.where}, {});
}

// The verbosity of the source files whose names, without their ending, match a pattern ('*', '?').
struct VModule {
  std::string pattern;
  int level = 0;
};

struct Options {
  Format format = Format::kText;
  int verbosity = 0;
  std::vector<VModule> vmodule;      // --vmodule
  bool split_stream = false;         // errors to stderr, everything else to stdout
  std::size_t info_buffer_size = 0;  // bytes held back on stdout when split; 0: none
  std::chrono::nanoseconds flush_frequency = std::chrono::seconds{5};
  const base::Clock* clock = &base::Clock::Real();  // must outlive the log's use
};

void Configure(const Options& options);
int verbosity();
void SetVerbosity(int level);  // while running: PUT /debug/flags/v

// Starts the writing thread; its end flushes and stops it.
class Writer {
 public:
  Writer();
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
};
void Flush();  // Returns when everything logged before is written.

// For tests: every line goes to `sink` instead, until this ends.
class ScopedSink {
 public:
  explicit ScopedSink(std::function<void(Severity, std::string_view)> sink);
  ~ScopedSink();
  ScopedSink(const ScopedSink&) = delete;
  ScopedSink& operator=(const ScopedSink&) = delete;
};

}  // namespace keelson::log
