// The log of slow requests: spans of kComponent as upstream's Trace[...] blocks.
#include <time.h>

#include <cstdio>

#include "base/duration.h"
#include "base/strings.h"
#include "telemetry/log.h"
#include "telemetry/trace.h"

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

void AppendFields(std::string& out, const std::vector<Attribute>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) out += ',';
    out += fields[i].key;
    out += ':';
    out += fields[i].is_number ? std::to_string(fields[i].number) : fields[i].text;
  }
}

// Writes one tree of spans. Items of a span (events and child spans) are in the order of their start.
class Writer {
 public:
  Writer(const std::vector<SpanData>& spans, base::Clock::SystemTime start, base::Random& random)
      : spans_(spans), children_(spans.size()), start_(start), random_(random) {
    for (std::uint32_t i = 0; i < spans.size(); ++i) {
      if (spans[i].instrumentation != Instrumentation::kComponent) continue;
      if (const auto parent = LoggedParent(i); parent != kNone) children_[parent].push_back(i);
    }
  }

  void WriteIfLong(std::uint32_t index) {
    const SpanData& span = spans_[index];
    if (!IsLong(span)) {
      for (const std::uint32_t child : children_[index]) WriteIfLong(child);
      return;
    }
    const std::string tag = "Trace[" + std::to_string(random_.Below(INT32_MAX)) + "]: ";
    std::string out = tag + base::GoQuote(span.name) + " ";
    if (!span.attributes.empty()) {
      AppendFields(out, span.attributes);
      out += ' ';
    }
    out += "(" + FormatTime(At(span.start), true) + ") (total time: " + Milliseconds(Total(span)) + "):";
    WriteItems(index, "\n" + tag, StepThreshold(index), out);
    const std::string total = base::FormatDuration(Total(span));
    out += "\n" + tag + "[" + total + "] [" + total + "] END\n";
    log::V(2).Text(out);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t LoggedParent(std::uint32_t index) const {
    std::uint32_t parent = spans_[index].parent;
    while (parent != kNone && spans_[parent].instrumentation != Instrumentation::kComponent)
      parent = spans_[parent].parent;
    return parent;
  }

  static nanoseconds Total(const SpanData& span) { return span.ended ? span.end - span.start : nanoseconds{0}; }
  static bool IsLong(const SpanData& span) { return span.ended && Total(span) >= span.log_threshold; }
  base::Clock::SystemTime At(nanoseconds offset) const {
    return start_ + std::chrono::duration_cast<base::Clock::SystemTime::duration>(offset);
  }

  void AppendSummary(std::string& out, std::string_view message, nanoseconds duration, nanoseconds at,
                     const std::vector<Attribute>& fields) const {
    out += base::GoQuote(message);
    out += ' ';
    if (!fields.empty()) {
      AppendFields(out, fields);
      out += ' ';
    }
    out += Milliseconds(duration) + " (" + FormatTime(At(at), false) + ")";
  }

  // A step is worth a line when it took more than its share of the threshold, with the time that child spans may take
  // set aside.
  nanoseconds StepThreshold(std::uint32_t index) const {
    const nanoseconds threshold = spans_[index].log_threshold;
    const auto items = static_cast<std::int64_t>(spans_[index].events.size() + children_[index].size());
    auto shares = items + 1;
    nanoseconds remaining = threshold;
    for (const std::uint32_t child : children_[index]) {
      if (!spans_[child].ended) continue;
      remaining -= spans_[child].log_threshold;
      --shares;
    }
    if (remaining < threshold / 4) {
      remaining = threshold / 4;
      shares = items + 1;
    }
    return remaining / shares;
  }

  void WriteItems(std::uint32_t index, const std::string& prefix, nanoseconds step_threshold, std::string& out) {
    const SpanData& span = spans_[index];
    const std::vector<std::uint32_t>& children = children_[index];
    nanoseconds last = span.start;
    std::size_t child = 0;
    std::size_t event = 0;
    while (child < children.size() || event < span.events.size()) {
      const bool nested = child < children.size() &&
                          (event == span.events.size() || spans_[children[child]].start < span.events[event].at);
      if (nested) {
        const std::uint32_t at = children[child++];
        WriteNested(at, prefix, step_threshold, out);
        last = spans_[at].start + Total(spans_[at]);
        continue;
      }
      const SpanEvent& step = span.events[event++];
      const nanoseconds took = step.at - last;
      if (took >= step_threshold || log::V(kDetailLevel)) {
        out += prefix + "---";
        AppendSummary(out, step.name, took, step.at, step.attributes);
      }
      last = step.at;
    }
  }

  void WriteNested(std::uint32_t index, const std::string& prefix, nanoseconds step_threshold, std::string& out) {
    const SpanData& span = spans_[index];
    if (IsLong(span) || log::V(kDetailLevel)) {
      out += prefix + "[";
      AppendSummary(out, span.name, Total(span), span.start, span.attributes);
      WriteItems(index, prefix + " ", StepThreshold(index), out);
      out += "]";
      return;
    }
    for (const std::uint32_t child : children_[index]) WriteNested(child, prefix, step_threshold, out);
  }

  const std::vector<SpanData>& spans_;
  std::vector<std::vector<std::uint32_t>> children_;
  const base::Clock::SystemTime start_;
  base::Random& random_;
};

}  // namespace

void Trace::LogIfLong(const Span& root, base::Random& random) const {
  if (!options_.log_slow || !root.recording() || !log::V(2).enabled()) return;
  std::vector<SpanData> spans;
  {
    std::lock_guard lock(mutex_);
    const SpanData& of = spans_[root.index_];
    // Spans below last no longer than the root does.
    if (of.end - of.start < std::min(of.log_threshold, nanoseconds(Span::kLogThreshold))) return;
    spans = spans_;
  }
  Writer(spans, start_, random).WriteIfLong(root.index_);
}

}  // namespace keelson::telemetry
