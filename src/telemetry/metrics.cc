#include "telemetry/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <shared_mutex>

#include "base/check.h"

namespace keelson::telemetry {
namespace internal {

// The label values of a series in one piece of memory: where each ends, then their bytes. Custom resources make some
// fifteen series each, so their strings would be a good part of what a watched resource costs.
class PackedValues {
 public:
  explicit PackedValues(std::span<const std::string_view> values) : count_(values.size()) {
    std::size_t bytes = 0;
    for (const std::string_view value : values) bytes += value.size();
    KS_CHECK(bytes <= std::numeric_limits<End>::max());
    data_ = std::make_unique<char[]>(count_ * sizeof(End) + bytes);
    std::size_t end = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      std::ranges::copy(values[i], Texts() + end);
      end += values[i].size();
      const auto stored = static_cast<End>(end);
      std::memcpy(data_.get() + i * sizeof(End), &stored, sizeof(End));
    }
  }

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : EndOf(i - 1);
    return {Texts() + begin, EndOf(i) - begin};
  }
  bool operator==(std::span<const std::string_view> values) const {
    if (values.size() != count_) return false;
    for (std::size_t i = 0; i < count_; ++i) {
      if ((*this)[i] != values[i]) return false;
    }
    return true;
  }
  bool operator<(const PackedValues& other) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (const int order = (*this)[i].compare(other[i]); order != 0) return order < 0;
    }
    return false;
  }

 private:
  using End = std::uint16_t;  // Family::kValueBytesMax times a few labels
  std::size_t EndOf(std::size_t i) const {
    End end;
    std::memcpy(&end, data_.get() + i * sizeof(End), sizeof(End));
    return end;
  }
  char* Texts() const { return data_.get() + count_ * sizeof(End); }

  std::size_t count_;
  std::unique_ptr<char[]> data_;
};

struct Series {
  std::uint64_t hash;
  PackedValues values;
  void* metric;
  // Baseline of the last Reset(): subtracted from a counter, or from a histogram's buckets and sum.
  struct Before {
    std::vector<std::uint64_t> counts;
    double sum = 0;
  };
  std::unique_ptr<const Before> before = nullptr;  // null: not reset. Under the table's mutex.
};

// An insert-only hash table. Readers take no lock: slots go from null to a series and never back, and a bigger table is
// published by one pointer; the smaller ones stay until the end because a reader may still be in them (together they
// are smaller than the last).
class SeriesTable {
 public:
  explicit SeriesTable(std::size_t capacity) { Publish(capacity); }

  Series* Find(std::span<const std::string_view> values, std::uint64_t hash) const {
    const Slots& slots = *current_.load(std::memory_order_acquire);
    for (std::size_t i = hash & slots.mask;; i = (i + 1) & slots.mask) {
      Series* const series = slots.slots[i].load(std::memory_order_acquire);
      if (series == nullptr) return nullptr;
      if (series->hash == hash && series->values == values) return series;
    }
  }

  // REQUIRES: mutex held, not present.
  void Insert(std::unique_ptr<Series> series) {
    if ((all_.size() + 1) * 2 > current_.load()->mask + 1) Publish((current_.load()->mask + 1) * 2);
    Place(*current_.load(), series.get());
    all_.push_back(std::move(series));
  }

  mutable std::mutex mutex;
  const std::vector<std::unique_ptr<Series>>& all() const { return all_; }  // REQUIRES: mutex held.

 private:
  struct Slots {
    std::size_t mask;
    std::unique_ptr<std::atomic<Series*>[]> slots;
  };
  static void Place(Slots& slots, Series* series) {
    std::size_t i = series->hash & slots.mask;
    while (slots.slots[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & slots.mask;
    slots.slots[i].store(series, std::memory_order_release);
  }
  void Publish(std::size_t capacity) {
    auto slots = std::make_unique<Slots>(capacity - 1, std::make_unique<std::atomic<Series*>[]>(capacity));
    for (const auto& series : all_) Place(*slots, series.get());
    current_.store(slots.get(), std::memory_order_release);
    tables_.push_back(std::move(slots));
  }

  std::atomic<Slots*> current_{nullptr};
  std::vector<std::unique_ptr<Slots>> tables_;
  std::vector<std::unique_ptr<Series>> all_;
};

}  // namespace internal

namespace {

using internal::Series;

constexpr std::size_t kFirstCapacity = 8;
constexpr std::string_view kUnexpected = "unexpected";

std::uint64_t Hash(std::span<const std::string_view> values) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string_view value : values) {
    hash = (hash ^ std::hash<std::string_view>{}(value)) * 0x100000001b3;
  }
  return hash ^ (hash >> 29);
}

void AppendEscaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string_view TypeName(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

void AppendFamilyHeader(std::string& out, std::string_view name, std::string_view help, Stability stability,
                        MetricType type) {
  out += "# HELP ";
  out += name;
  out += ' ';
  if (stability != Stability::kNone) {
    out += '[';
    out += ToString(stability);
    out += "] ";
  }
  AppendEscaped(out, help, false);
  out += "\n# TYPE ";
  out += name;
  out += ' ';
  out += TypeName(type);
  out += '\n';
}

// name_suffix{labels,le="bound"} value
void AppendSample(std::string& out, std::string_view name, std::string_view suffix, std::string_view labels,
                  std::string_view bound, std::string_view value) {
  out += name;
  out += suffix;
  if (!labels.empty() || !bound.empty()) {
    out += '{';
    out += labels;
    if (!bound.empty()) {
      if (!labels.empty()) out += ',';
      out += "le=\"";
      out += bound;
      out += '"';
    }
    out += '}';
  }
  out += ' ';
  out += value;
  out += '\n';
}

// a="1",b="2", labels sorted by name whatever the order of declaration.
template <class Names, class Values>
std::string LabelText(const Names& names, const Values& values) {
  std::vector<std::size_t> order(std::size(names));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
  std::string text;
  for (const std::size_t i : order) {
    if (!text.empty()) text += ',';
    text += names[i];
    text += "=\"";
    AppendEscaped(text, values[i], true);
    text += '"';
  }
  return text;
}

}  // namespace

std::string_view ToString(Stability stability) {
  switch (stability) {
    case Stability::kNone:
      return "";
    case Stability::kAlpha:
      return "ALPHA";
    case Stability::kBeta:
      return "BETA";
    case Stability::kStable:
      return "STABLE";
  }
  return "";
}

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds.size() + 1)) {}

void Histogram::Observe(double value, std::uint64_t times) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();  // le: value <= bound
  counts_[static_cast<std::size_t>(bucket)].fetch_add(times, std::memory_order_relaxed);
  sum_.fetch_add(value * static_cast<double>(times), std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const { return Buckets().back(); }

std::vector<std::uint64_t> Histogram::Buckets() const {
  std::vector<std::uint64_t> cumulative(bounds_.size() + 1);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < cumulative.size(); ++i) {
    total += counts_[i].load(std::memory_order_relaxed);
    cumulative[i] = total;
  }
  return cumulative;
}

Family::Family(const MetricOptions& options, MetricType type)
    : name_(options.name),
      help_(options.help),
      stability_(options.stability),
      type_(type),
      labels_(options.labels.begin(), options.labels.end()),
      buckets_(options.buckets),
      table_(std::make_unique<internal::SeriesTable>(kFirstCapacity)) {
  KS_CHECK(std::is_sorted(buckets_.begin(), buckets_.end()));
}

Family::~Family() = default;

std::size_t Family::series_count() const {
  const std::lock_guard lock(table_->mutex);
  return table_->all().size();
}

void* Family::Lookup(std::span<const std::string_view> values) {
  KS_CHECK(values.size() == labels_.size());
  if (!allow_lists_.empty()) [[unlikely]] {
    std::vector<std::string_view> allowed(values.begin(), values.end());
    for (const AllowList& list : allow_lists_) {
      std::string_view& value = allowed[list.label];
      if (std::find(list.values.begin(), list.values.end(), value) == list.values.end()) value = kUnexpected;
    }
    const std::uint64_t hash = Hash(allowed);
    const Series* const series = table_->Find(allowed, hash);
    return series != nullptr ? series->metric : Insert(allowed, hash);
  }
  const std::uint64_t hash = Hash(values);
  const Series* const series = table_->Find(values, hash);
  return series != nullptr ? series->metric : Insert(values, hash);
}

void* Family::Insert(std::span<const std::string_view> values, std::uint64_t hash) {
  std::vector<std::string_view> cut;
  if (std::ranges::any_of(values, [](std::string_view value) { return value.size() > kValueBytesMax; })) {
    for (const std::string_view value : values) cut.push_back(value.substr(0, kValueBytesMax));
    values = cut;
    hash = Hash(values);
  }
  const std::lock_guard lock(table_->mutex);
  const Series* found = table_->Find(values, hash);
  std::vector<std::string_view> overflow;
  if (found == nullptr && table_->all().size() >= kSeriesMax) {
    overflow.assign(values.size(), kUnexpected);
    values = overflow;
    hash = Hash(values);
    found = table_->Find(values, hash);
  }
  if (found != nullptr) return found->metric;
  auto series = std::make_unique<Series>(hash, internal::PackedValues(values), NewSeries());
  void* const metric = series->metric;
  table_->Insert(std::move(series));
  return metric;
}

void Family::DropAll() {
  for (const auto& series : table_->all()) DeleteSeries(series->metric);
}

struct MetricsRegistry::Impl {
  mutable std::mutex mutex;
  std::map<std::string, std::unique_ptr<Family>, std::less<>> families;
  std::vector<std::function<void(Exposition&)>> collectors;
  std::vector<std::string> disabled;
  struct Allowed {
    std::string name, label;
    std::vector<std::string> values;
  };
  std::vector<Allowed> allowed;

  template <class T>
  std::pair<MetricVec<T>*, bool> Make(const MetricOptions& options, MetricType type);
};

template <class T>
std::pair<MetricVec<T>*, bool> MetricsRegistry::Impl::Make(const MetricOptions& options, MetricType type) {
  const std::lock_guard lock(mutex);
  auto found = families.find(options.name);
  if (found != families.end()) {
    Family& family = *found->second;
    KS_CHECK(family.type() == type && std::ranges::equal(family.labels(), options.labels));
    return {static_cast<MetricVec<T>*>(&family), false};
  }
  auto family = std::make_unique<MetricVec<T>>(options, type);
  family->disabled_ = std::find(disabled.begin(), disabled.end(), options.name) != disabled.end();
  for (const Allowed& allow : allowed) {
    if (allow.name != options.name) continue;
    for (std::size_t i = 0; i < options.labels.size(); ++i) {
      if (options.labels[i] == allow.label) family->allow_lists_.push_back({i, allow.values});
    }
  }
  MetricVec<T>* const made = family.get();
  families.emplace(std::string(options.name), std::move(family));
  return {made, true};
}

MetricsRegistry::MetricsRegistry() : impl_(std::make_unique<Impl>()) {}
MetricsRegistry::~MetricsRegistry() = default;

CounterVec& MetricsRegistry::Counters(const MetricOptions& options) {
  auto [family, made] = impl_->Make<Counter>(options, MetricType::kCounter);
  if (made && options.labels.empty()) family->Only();
  return *family;
}

GaugeVec& MetricsRegistry::Gauges(const MetricOptions& options) {
  auto [family, made] = impl_->Make<Gauge>(options, MetricType::kGauge);
  if (made && options.labels.empty()) family->Only();
  return *family;
}

HistogramVec& MetricsRegistry::Histograms(const MetricOptions& options) {
  auto [family, made] = impl_->Make<Histogram>(options, MetricType::kHistogram);
  if (made && options.labels.empty()) family->Only();
  return *family;
}

void MetricsRegistry::AddCollector(std::function<void(Exposition&)> collect) {
  const std::lock_guard lock(impl_->mutex);
  impl_->collectors.push_back(std::move(collect));
}

void MetricsRegistry::Disable(std::string_view name) {
  const std::lock_guard lock(impl_->mutex);
  impl_->disabled.emplace_back(name);
}

void MetricsRegistry::AllowLabelValues(std::string_view name, std::string_view label, std::vector<std::string> values) {
  const std::lock_guard lock(impl_->mutex);
  impl_->allowed.push_back({std::string(name), std::string(label), std::move(values)});
}

std::vector<const Family*> MetricsRegistry::Families() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<const Family*> all;
  for (const auto& [name, family] : impl_->families) all.push_back(family.get());
  return all;
}

namespace {

// Since the last Reset().
std::vector<std::uint64_t> SinceReset(std::vector<std::uint64_t> counts, const internal::Series& series) {
  if (!series.before) return counts;
  const std::vector<std::uint64_t>& before = series.before->counts;
  for (std::size_t i = 0; i < before.size() && i < counts.size(); ++i) counts[i] -= before[i];
  return counts;
}
std::vector<std::uint64_t> CountsOf(const internal::Series& series) {
  return SinceReset({static_cast<const Counter*>(series.metric)->value()}, series);
}
std::vector<std::uint64_t> BucketsOf(const internal::Series& series) {
  return SinceReset(static_cast<const Histogram*>(series.metric)->Buckets(), series);
}

bool HasChanged(const internal::Series& series, MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return CountsOf(series)[0] != 0;
    case MetricType::kGauge:
      return static_cast<const Gauge*>(series.metric)->value() != 0;
    case MetricType::kHistogram:
      return BucketsOf(series).back() != 0;
  }
  return true;
}

// A gauge named "..._info" has the value 1 and its labels as information; "..._timestamp_seconds" is when something
// happened last. One that is set to 0 is outdated: it is not exposed, as upstream deletes such series.
bool IsOutdated(const internal::Series& series, const Family& family) {
  return family.type() == MetricType::kGauge && !series.values.empty() &&
         (family.name().ends_with("_info") || family.name().ends_with("_timestamp_seconds")) &&
         static_cast<const Gauge*>(series.metric)->value() == 0;
}

}  // namespace

void MetricsRegistry::Reset() {
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [name, family] : impl_->families) {
    const std::lock_guard series_lock(family->table_->mutex);
    for (const auto& series : family->table_->all()) {
      auto before = std::make_unique<Series::Before>();
      switch (family->type()) {
        case MetricType::kCounter:
          before->counts = {static_cast<Counter*>(series->metric)->value()};
          break;
        case MetricType::kGauge:
          static_cast<Gauge*>(series->metric)->Set(0);
          break;
        case MetricType::kHistogram: {
          const auto& histogram = *static_cast<Histogram*>(series->metric);
          before->counts = histogram.Buckets();
          before->sum = histogram.sum();
          break;
        }
      }
      series->before = std::move(before);
    }
  }
}

namespace {

using Texts = std::map<std::string, std::string, std::less<>>;  // family → its lines, header included

class Collected final : public Exposition {
 public:
  Collected(Texts& texts, const std::vector<std::string>& disabled) : texts_(texts), disabled_(disabled) {}
  void Write(const MetricOptions& family, MetricType type, LabelValues values, double value) override {
    KS_CHECK(values.size() == family.labels.size());
    if (std::find(disabled_.begin(), disabled_.end(), family.name) != disabled_.end()) return;
    auto [entry, fresh] = texts_.try_emplace(std::string(family.name));
    if (fresh) AppendFamilyHeader(entry->second, family.name, family.help, family.stability, type);
    AppendSample(entry->second, family.name, "", LabelText(family.labels, std::span(values.begin(), values.size())), "",
                 FormatFloat(value));
  }

 private:
  Texts& texts_;
  const std::vector<std::string>& disabled_;
};

// `bounds`: the upper bounds of a histogram's buckets as text.
void AppendSeries(std::string& out, const Family& family, const Series& series, const std::string& labels,
                  const std::vector<std::string>& bounds) {
  switch (family.type()) {
    case MetricType::kCounter:
      AppendSample(out, family.name(), "", labels, "", FormatFloat(static_cast<double>(CountsOf(series)[0])));
      break;
    case MetricType::kGauge:
      AppendSample(out, family.name(), "", labels, "", FormatFloat(static_cast<Gauge*>(series.metric)->value()));
      break;
    case MetricType::kHistogram: {
      const auto& histogram = *static_cast<Histogram*>(series.metric);
      const std::vector<std::uint64_t> buckets = BucketsOf(series);
      for (std::size_t i = 0; i < buckets.size(); ++i) {
        AppendSample(out, family.name(), "_bucket", labels, bounds[i], FormatFloat(static_cast<double>(buckets[i])));
      }
      AppendSample(out, family.name(), "_sum", labels, "",
                   FormatFloat(histogram.sum() - (series.before ? series.before->sum : 0)));
      AppendSample(out, family.name(), "_count", labels, "", FormatFloat(static_cast<double>(buckets.back())));
      break;
    }
  }
}

}  // namespace

std::string MetricsRegistry::Expose() const {
  Texts texts;

  std::vector<std::function<void(Exposition&)>> collectors;
  std::vector<std::string> disabled;
  std::vector<Family*> families;
  {
    const std::lock_guard lock(impl_->mutex);
    collectors = impl_->collectors;
    disabled = impl_->disabled;
    for (const auto& [name, family] : impl_->families) families.push_back(family.get());
  }

  Collected collected(texts, disabled);
  for (const auto& collect : collectors) collect(collected);

  std::size_t total = 0;
  std::size_t left_out = 0;
  for (const auto& [name, text] : texts) total += text.size();
  for (Family* const family : families) {
    if (family->disabled_) continue;
    std::vector<const Series*> all;
    const std::lock_guard lock(family->table_->mutex);
    all.reserve(family->table_->all().size());
    for (const auto& series : family->table_->all()) {
      const bool shown = !series->before || series->values.empty() || HasChanged(*series, family->type());
      if (shown && !IsOutdated(*series, *family)) all.push_back(series.get());
    }
    if (all.empty()) continue;
    std::sort(all.begin(), all.end(), [](const Series* a, const Series* b) { return a->values < b->values; });
    std::vector<std::string> bounds;
    for (const double bound : family->buckets()) bounds.push_back(FormatFloat(bound));
    bounds.emplace_back("+Inf");

    std::string& out = texts[family->name()];
    AppendFamilyHeader(out, family->name(), family->help(), family->stability(), family->type());
    for (const Series* const series : all) {
      if (total + out.size() > kExposedBytesMax) break;
      const std::string labels = LabelText(family->labels(), series->values);
      AppendSeries(out, *family, *series, labels, bounds);
    }
    if (total + out.size() > kExposedBytesMax) {
      texts.erase(family->name());
      ++left_out;
    } else {
      total += out.size();
    }
  }

  std::string out;
  out.reserve(total);
  for (const auto& [name, text] : texts) out += text;
  if (left_out != 0) out += "# " + std::to_string(left_out) + " metric families were left out: the text is too large\n";
  return out;
}

std::string FormatFloat(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  // Shortest digits first, then Go's choice between the two notations for 'g': an exponent below -4 or from 6 up.
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 6) return std::string(text);
  char fixed[64];
  const auto fixed_end = std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed).ptr;
  return std::string(fixed, fixed_end);
}

std::vector<double> ExponentialBuckets(double start, double factor, int count) {
  std::vector<double> buckets;
  for (int i = 0; i < count; ++i) {
    buckets.push_back(start);
    start *= factor;
  }
  return buckets;
}

}  // namespace keelson::telemetry
