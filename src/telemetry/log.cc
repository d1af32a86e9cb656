#include "telemetry/log.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/escape.h"
#include "base/strings.h"

namespace keelson::log {
namespace {

constexpr std::size_t kBufferMax = 4 << 20;  // Bytes waiting for the writing thread; more is dropped and counted.

// klog's subset of globs: '*' any run, '?' one character; no classes are in use anywhere.
bool GlobMatches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return;  // Not reported: the log itself cannot be written.
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Everything the log has: settings as atomics for the fast checks, the rest under one mutex.
struct Log {
  std::atomic<int> verbosity{0};
  std::atomic<bool> has_vmodule{false};
  std::atomic<Format> format{Format::kText};
  std::atomic<const base::Clock*> clock{&base::Clock::Real()};

  std::mutex mutex;
  std::condition_variable wake, written;
  std::vector<VModule> modules;
  Options options;
  std::function<void(Severity, std::string_view)> sink;
  std::string to_stderr, to_stdout;  // waiting for the thread
  std::uint64_t dropped = 0;
  std::uint64_t queued = 0, done = 0;  // lines, for Flush()
  bool flush_wanted = false;
  bool stopping = false;
  std::thread thread;
};

Log& TheLog() {
  static Log* const log = new Log;  // Never destroyed: other statics may still log while the process ends.
  return *log;
}

int ThreadId() {
  thread_local const int id = static_cast<int>(::syscall(SYS_gettid));
  return id;
}

void AppendJSONString(std::string& out, std::string_view text) {
  out += '"';
  base::AppendJSONEscaped(out, base::IsValidUTF8(text) ? text : base::ToValidUTF8(text));
  out += '"';
}

void AppendPadded(std::string& out, int value, int width) {
  char digits[12];
  for (int i = width - 1; i >= 0; --i) {
    digits[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out.append(digits, static_cast<std::size_t>(width));
}

// "I1116 04:00:00.000000   12345 file.cc:12] ", klog's header.
void AppendHeader(std::string& out, const internal::Line& line, base::Clock::SystemTime now) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(micros / 1'000'000);
  thread_local std::time_t cached_second = -1;
  thread_local std::tm local{};
  if (seconds != cached_second) {
    ::localtime_r(&seconds, &local);
    cached_second = seconds;
  }
  out += "IWE"[static_cast<int>(line.severity)];
  AppendPadded(out, local.tm_mon + 1, 2);
  AppendPadded(out, local.tm_mday, 2);
  out += ' ';
  AppendPadded(out, local.tm_hour, 2);
  out += ':';
  AppendPadded(out, local.tm_min, 2);
  out += ':';
  AppendPadded(out, local.tm_sec, 2);
  out += '.';
  AppendPadded(out, static_cast<int>(micros % 1'000'000), 6);
  char id[16];
  const int length = std::snprintf(id, sizeof id, " %7d ", ThreadId());
  out.append(id, static_cast<std::size_t>(length));
  out += BaseName(line.where.file_name());
  out += ':';
  out += std::to_string(line.where.line());
  out += "] ";
}

void AppendNumber(std::string& out, const Value& value) {
  char digits[32];
  std::to_chars_result end{digits, {}};
  switch (value.kind()) {
    case Value::Kind::kBool:
      out += value.AsBool() ? "true" : "false";
      return;
    case Value::Kind::kInt:
      end = std::to_chars(digits, digits + sizeof digits, value.AsInt());
      break;
    case Value::Kind::kUint:
      end = std::to_chars(digits, digits + sizeof digits, value.AsUint());
      break;
    default:
      end = std::to_chars(digits, digits + sizeof digits, value.AsDouble());
  }
  out.append(digits, end.ptr);
}

// A value with line breaks is shown as it is between "=<" and " >", each line behind a tab; klog's form.
void AppendTextValue(std::string& out, std::string_view text) {
  std::size_t newline = text.find('\n');
  if (newline == std::string_view::npos) {
    out += '=';
    out += base::GoQuote(text);
    return;
  }
  out += "=<\n";
  while (newline != std::string_view::npos) {
    out += '\t';
    out += text.substr(0, newline + 1);
    text.remove_prefix(newline + 1);
    newline = text.find('\n');
  }
  if (text.empty()) {
    out += " >";
    return;
  }
  out += '\t';
  out += text;
  out += "\n >";
}

void FormatText(std::string& out, const internal::Line& line, std::span<const Value> values,
                base::Clock::SystemTime now) {
  AppendHeader(out, line, now);
  if (line.structured) {
    out += base::GoQuote(line.message);
  } else {
    out += line.message;
  }
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    out += ' ';
    out += values[i].AsString();
    const Value& value = values[i + 1];
    if (value.kind() == Value::Kind::kString) {
      AppendTextValue(out, value.AsString());
    } else if (value.kind() == Value::Kind::kDuration) {
      AppendTextValue(out, base::FormatDuration(std::chrono::nanoseconds{value.AsInt()}));
    } else {
      out += '=';
      AppendNumber(out, value);
    }
  }
  if (out.back() != '\n') out += '\n';
}

void FormatJSON(std::string& out, const internal::Line& line, std::span<const Value> values,
                base::Clock::SystemTime now) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  out += "{\"ts\":";
  out += std::to_string(micros / 1000);
  out += '.';
  AppendPadded(out, static_cast<int>(micros % 1000), 3);
  out += ",\"caller\":";
  std::string_view file = line.where.file_name();
  const std::size_t slash = file.rfind('/');  // folder/file.cc:line
  if (slash != std::string_view::npos && slash > 0) {
    const std::size_t before = file.rfind('/', slash - 1);
    if (before != std::string_view::npos) file.remove_prefix(before + 1);
  }
  AppendJSONString(out, std::string(file) + ":" + std::to_string(line.where.line()));
  out += ",\"msg\":";
  std::string_view message = line.message;
  while (!message.empty() && message.back() == '\n') message.remove_suffix(1);
  AppendJSONString(out, message);
  if (line.severity != Severity::kError) {
    out += ",\"v\":";
    out += std::to_string(line.verbosity);
  }
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    out += ',';
    AppendJSONString(out, values[i].AsString());
    out += ':';
    const Value& value = values[i + 1];
    switch (value.kind()) {
      case Value::Kind::kString:
        AppendJSONString(out, value.AsString());
        break;
      case Value::Kind::kDuration:
        AppendJSONString(out, base::FormatDuration(std::chrono::nanoseconds{value.AsInt()}));
        break;
      case Value::Kind::kDouble:
        if (!std::isfinite(value.AsDouble())) {
          out += "null";
          break;
        }
        [[fallthrough]];
      default:
        AppendNumber(out, value);
    }
  }
  out += "}\n";
}

void AppendDroppedNote(Log& log, std::string& out, std::uint64_t dropped) {
  const internal::Line line{Severity::kWarning, 0, true, "Dropped log lines", std::source_location::current()};
  const Value pair[] = {Value("lines"), Value(dropped)};
  const auto now = log.clock.load()->Now();
  if (log.format.load() == Format::kJSON) {
    FormatJSON(out, line, pair, now);
  } else {
    FormatText(out, line, pair, now);
  }
}

void RunWriter(Log& log) {
  std::string err, out;
  std::unique_lock lock(log.mutex);
  for (;;) {
    const bool hold_stdout = log.options.info_buffer_size > 0;
    auto ready = [&] {
      return log.stopping || log.flush_wanted || !log.to_stderr.empty() || log.dropped > 0 ||
             log.to_stdout.size() > log.options.info_buffer_size;
    };
    if (hold_stdout) {
      log.wake.wait_for(lock, log.options.flush_frequency, ready);
    } else {
      log.wake.wait(lock, ready);
    }
    err.clear(), out.clear();
    err.swap(log.to_stderr);
    out.swap(log.to_stdout);
    const std::uint64_t dropped = std::exchange(log.dropped, 0);
    const std::uint64_t reached = log.queued;
    const bool stop = log.stopping;
    log.flush_wanted = false;
    lock.unlock();
    if (dropped > 0) AppendDroppedNote(log, err, dropped);
    WriteAll(STDOUT_FILENO, out);
    WriteAll(STDERR_FILENO, err);
    lock.lock();
    log.done = reached;
    log.written.notify_all();
    if (stop && log.to_stderr.empty() && log.to_stdout.empty()) return;
  }
}

}  // namespace

namespace internal {

bool Enabled(int level, const char* file) {
  Log& log = TheLog();
  if (level <= log.verbosity.load(std::memory_order_relaxed)) return true;
  if (!log.has_vmodule.load(std::memory_order_relaxed)) return false;
  std::string_view name = BaseName(file);
  name = name.substr(0, name.rfind('.'));
  const std::lock_guard lock(log.mutex);
  for (const VModule& module : log.modules) {
    if (GlobMatches(module.pattern, name)) return level <= module.level;
  }
  return false;
}

void Write(const Line& line, std::span<const Value> keys_and_values) {
  Log& log = TheLog();
  thread_local std::string text;
  text.clear();
  const auto now = log.clock.load(std::memory_order_relaxed)->Now();
  if (log.format.load(std::memory_order_relaxed) == Format::kJSON) {
    FormatJSON(text, line, keys_and_values, now);
  } else {
    FormatText(text, line, keys_and_values, now);
  }

  const std::lock_guard lock(log.mutex);
  if (log.sink) {
    log.sink(line.severity, text);
    return;
  }
  const bool to_stdout = log.options.split_stream && line.severity != Severity::kError;
  if (!log.thread.joinable()) {
    WriteAll(to_stdout ? STDOUT_FILENO : STDERR_FILENO, text);
    return;
  }
  if (log.to_stderr.size() + log.to_stdout.size() + text.size() > kBufferMax) {
    ++log.dropped;
    return;
  }
  (to_stdout ? log.to_stdout : log.to_stderr) += text;
  ++log.queued;
  log.wake.notify_one();
}

}  // namespace internal

void Configure(const Options& options) {
  Log& log = TheLog();
  const std::lock_guard lock(log.mutex);
  log.options = options;
  log.modules = options.vmodule;
  log.has_vmodule = !log.modules.empty();
  log.verbosity = options.verbosity;
  log.format = options.format;
  log.clock = options.clock;
}

int verbosity() { return TheLog().verbosity.load(std::memory_order_relaxed); }
void SetVerbosity(int level) { TheLog().verbosity = level; }

Writer::Writer() {
  Log& log = TheLog();
  const std::lock_guard lock(log.mutex);
  log.stopping = false;
  log.thread = std::thread(RunWriter, std::ref(log));
}

Writer::~Writer() {
  Log& log = TheLog();
  std::thread thread;
  {
    const std::lock_guard lock(log.mutex);
    log.stopping = true;
    thread = std::move(log.thread);  // From here on callers write for themselves again.
  }
  log.wake.notify_all();
  thread.join();
}

void Flush() {
  Log& log = TheLog();
  std::unique_lock lock(log.mutex);
  if (!log.thread.joinable()) return;
  const std::uint64_t wanted = log.queued;
  log.flush_wanted = true;
  log.wake.notify_all();
  log.written.wait(lock, [&] { return log.done >= wanted; });
}

ScopedSink::ScopedSink(std::function<void(Severity, std::string_view)> sink) {
  const std::lock_guard lock(TheLog().mutex);
  TheLog().sink = std::move(sink);
}

ScopedSink::~ScopedSink() {
  const std::lock_guard lock(TheLog().mutex);
  TheLog().sink = nullptr;
}

}  // namespace keelson::log
