#include "telemetry/trace.h"

#include <time.h>

#include <cstdio>

#include "base/duration.h"
#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::telemetry {
namespace {

using std::chrono::nanoseconds;

constexpr int kDetailLevel = 4;  // -v from which all steps of a logged trace are shown.

std::string Milliseconds(nanoseconds duration) { return std::to_string(duration.count() / 1'000'000) + "ms"; }

// "16-Nov-2026 04:00:00.000", or the time of day alone.
std::string FormatTime(base::Clock::SystemTime time, bool with_date) {
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[48];
  int at = 0;
  if (with_date) {
    at = std::snprintf(text, sizeof text, "%02d-%s-%04d ", local.tm_mday, kMonths[local.tm_mon % 12],
                       local.tm_year + 1900);
  }
  std::snprintf(text + at, sizeof text - static_cast<std::size_t>(at), "%02d:%02d:%02d.%03d", local.tm_hour,
                local.tm_min, local.tm_sec, static_cast<int>(ms % 1000));
  return text;
}

void AppendFields(std::string& out, const std::vector<TraceField>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) out += ',';
    out += fields[i].first;
    out += ':';
    out += fields[i].second;
  }
}

void AppendSummary(std::string& out, std::string_view message, nanoseconds duration, base::Clock::SystemTime time,
                   const std::vector<TraceField>& fields) {
  out += base::GoQuote(message);
  out += ' ';
  if (!fields.empty()) {
    AppendFields(out, fields);
    out += ' ';
  }
  out += Milliseconds(duration) + " (" + FormatTime(time, false) + ")";
}

}  // namespace

// A step, or a nested trace.
struct Trace::Item {
  std::string message;
  std::vector<TraceField> fields;
  nanoseconds at{};  // since the trace's start
  std::unique_ptr<Trace> nested;
};

Trace::Trace(const base::Clock& clock, std::string_view name, std::initializer_list<TraceField> fields)
    : clock_(clock), name_(name), fields_(fields), start_(clock.Now()), start_steady_(clock.Monotonic()) {}

Trace::~Trace() = default;

void Trace::AddField(std::string_view key, std::string value) { fields_.emplace_back(key, std::move(value)); }

void Trace::Step(std::string_view message, std::initializer_list<TraceField> fields) {
  if (items_.size() >= kItemsMax) return;
  items_.push_back(Item{std::string(message), fields, clock_.Monotonic() - start_steady_, nullptr});
}

Trace& Trace::Nest(std::string_view name, std::initializer_list<TraceField> fields) {
  if (items_.size() >= kItemsMax) return *this;
  auto nested = std::make_unique<Trace>(clock_, name, fields);
  nested->parent_ = this;
  Trace& made = *nested;
  items_.push_back(Item{.at = clock_.Monotonic() - start_steady_, .nested = std::move(nested)});
  return made;
}

nanoseconds Trace::TotalTime() const { return total_.value_or(clock_.Monotonic() - start_steady_); }

void Trace::LogIfLong(nanoseconds threshold, base::Random& random) {
  threshold_ = threshold;
  total_ = clock_.Monotonic() - start_steady_;
  if (parent_ == nullptr && log::V(2)) WriteIfLong(random);
}

bool Trace::IsLong() const { return total_ && (!threshold_ || threshold_->count() == 0 || *total_ >= *threshold_); }

// A step is worth a line when it took more than its share of the threshold, what nested traces may take set aside.
std::optional<nanoseconds> Trace::StepThreshold() const {
  if (!threshold_) return std::nullopt;
  auto shares = static_cast<std::int64_t>(items_.size()) + 1;
  nanoseconds remaining = *threshold_;
  for (const Item& item : items_) {
    if (item.nested != nullptr && item.nested->threshold_) {
      remaining -= *item.nested->threshold_;
      --shares;
    }
  }
  if (remaining < *threshold_ / 4) {
    remaining = *threshold_ / 4;
    shares = static_cast<std::int64_t>(items_.size()) + 1;
  }
  return remaining / shares;
}

void Trace::WriteIfLong(base::Random& random) const {
  if (!IsLong()) {
    for (const Item& item : items_) {
      if (item.nested != nullptr) item.nested->WriteIfLong(random);
    }
    return;
  }
  const std::string tag = "Trace[" + std::to_string(random.Below(INT32_MAX)) + "]: ";
  std::string out = tag + base::GoQuote(name_) + " ";
  if (!fields_.empty()) {
    AppendFields(out, fields_);
    out += ' ';
  }
  out += "(" + FormatTime(start_, true) + ") (total time: " + Milliseconds(*total_) + "):";
  WriteItems(out, "\n" + tag, StepThreshold());
  const std::string total = base::FormatDuration(*total_);
  out += "\n" + tag + "[" + total + "] [" + total + "] END\n";
  log::V(2).Text(out);
}

void Trace::WriteItems(std::string& out, const std::string& prefix, std::optional<nanoseconds> step_threshold) const {
  nanoseconds last{0};
  for (const Item& item : items_) {
    if (item.nested != nullptr) {
      item.nested->WriteNested(out, prefix, step_threshold);
      last = item.at + item.nested->total_.value_or(nanoseconds{0});
      continue;
    }
    const nanoseconds took = item.at - last;
    if (!step_threshold || step_threshold->count() == 0 || took >= *step_threshold || log::V(kDetailLevel)) {
      out += prefix + "---";
      AppendSummary(out, item.message, took,
                    start_ + std::chrono::duration_cast<base::Clock::SystemTime::duration>(item.at), item.fields);
    }
    last = item.at;
  }
}

void Trace::WriteNested(std::string& out, const std::string& prefix, std::optional<nanoseconds> step_threshold) const {
  if (IsLong() || log::V(kDetailLevel)) {
    out += prefix + "[";
    AppendSummary(out, name_, TotalTime(), start_, fields_);
    const auto own = StepThreshold();
    WriteItems(out, prefix + " ", own ? own : step_threshold);
    out += "]";
    return;
  }
  for (const Item& item : items_) {
    if (item.nested != nullptr) item.nested->WriteNested(out, prefix, step_threshold);
  }
}

}  // namespace keelson::telemetry
