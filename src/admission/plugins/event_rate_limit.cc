// EventRateLimit: token buckets for events, by server, namespace, user, or source and object.
#include <list>
#include <mutex>

#include "admission/plugins/plugins.h"
#include "base/hash.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr std::size_t kCacheSizeDefault = 4096;

// One limit: a bucket per key. Thread safety: Accept() from any thread.
class Limit {
 public:
  Limit(Value limit, const base::Clock& clock)
      : type_(limit["type"].as_string()),
        per_second_(static_cast<double>(limit["qps"].as_int())),
        burst_(static_cast<double>(limit["burst"].as_int())),
        clock_(clock) {
    const auto size = static_cast<std::size_t>(limit["cacheSize"].as_int());
    buckets_max_ = type_ == "Server" ? 1 : size == 0 ? kCacheSizeDefault : size;
  }

  // Why the event is refused; "" when it is not.
  std::string Accept(const request::Context& context, const Attributes& attributes) {
    const std::string key = KeyOf(context, attributes);
    const auto now = clock_.Monotonic();
    std::lock_guard lock(mutex_);
    Bucket& bucket = Find(key, now);
    const std::chrono::duration<double> since = now - bucket.at;
    bucket.tokens = std::min(burst_, bucket.tokens + since.count() * per_second_);
    bucket.at = now;
    if (bucket.tokens < 1) return "limit reached on type " + type_ + " for key " + key;
    bucket.tokens -= 1;
    return "";
  }

 private:
  struct Bucket {
    std::string key;
    double tokens;
    base::Clock::SteadyTime at;
  };

  std::string KeyOf(const request::Context& context, const Attributes& attributes) const {
    if (type_ == "Namespace") return attributes.name_space;
    if (type_ == "User") return context.user ? context.user->name : "";
    if (type_ != "SourceAndObject") return "";
    std::string key;
    const Value source = attributes.object["source"], involved = attributes.object["involvedObject"];
    for (const std::string_view part : {"component", "host"}) key += source[part].as_string();
    for (const std::string_view part : {"kind", "namespace", "name", "uid", "apiVersion"})
      key += involved[part].as_string();
    return key;
  }

  // LRU: the most recently used bucket is first; the last is evicted when there are too many.
  Bucket& Find(const std::string& key, base::Clock::SteadyTime now) {
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      buckets_.splice(buckets_.begin(), buckets_, found->second);
    } else {
      buckets_.push_front({key, burst_, now});
      by_key_.emplace(key, buckets_.begin());
      if (buckets_.size() > buckets_max_) {
        by_key_.erase(buckets_.back().key);
        buckets_.pop_back();
      }
    }
    return buckets_.front();
  }

  std::string type_;
  double per_second_, burst_;
  std::size_t buckets_max_;
  const base::Clock& clock_;
  std::mutex mutex_;
  std::list<Bucket> buckets_;
  base::StringMap<std::list<Bucket>::iterator> by_key_;
};

class EventRateLimit final : public Plugin {
 public:
  explicit EventRateLimit(const PluginContext& context) {
    for (const Value limit : context.ConfigurationOf(name())["limits"].items())
      limits_.push_back(std::make_unique<Limit>(limit, *context.clock));
  }

  std::string_view name() const override { return "EventRateLimit"; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (!attributes.kind.group.empty() || attributes.kind.kind != "Event" || attributes.dry_run)
      co_return meta::Result<void>();
    std::vector<std::string> errors;
    for (const auto& limit : limits_) {
      if (std::string error = limit->Accept(context, attributes); !error.empty()) errors.push_back(std::move(error));
    }
    if (errors.empty()) co_return meta::Result<void>();
    co_return meta::NewTooManyRequests(errors.size() == 1 ? errors.front() : "[" + base::Join(errors, ", ") + "]", 0);
  }

 private:
  std::vector<std::unique_ptr<Limit>> limits_;
};

}  // namespace

std::string CheckEventRateLimit(Value configuration) {
  constexpr ConfigurationKind kKinds[] = {{"eventratelimit.admission.k8s.io", "v1alpha1", "Configuration"}};
  if (!configuration.is_null()) {
    if (std::string error = CheckConfigurationKind(configuration, kKinds); !error.empty()) return error;
  }
  meta::FieldErrors errors;
  const auto invalid = [&](std::string path, std::string value, std::string_view why) {
    errors.push_back({meta::FieldError::Type::kInvalid, std::move(path), std::move(value), std::string(why)});
  };
  const Value limits = configuration["limits"];
  if (limits.empty()) invalid("limits", "null", "must not be empty");
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const Value limit = limits[i];
    const std::string path = "limits[" + std::to_string(i) + "].";
    const std::string_view type = limit["type"].as_string();
    if (type != "Server" && type != "Namespace" && type != "User" && type != "SourceAndObject") {
      errors.push_back({meta::FieldError::Type::kNotSupported, path + "type", base::GoQuote(type),
                        R"(supported values: "Namespace", "Server", "SourceAndObject", "User")"});
    }
    const auto positive = [&](std::string_view field) {
      if (limit[field].as_int() <= 0)
        invalid(path + std::string(field), std::to_string(limit[field].as_int()), "must be positive");
    };
    positive("burst");
    positive("qps");
    if (type != "Server" && limit["cacheSize"].as_int() < 0)
      invalid(path + "cacheSize", std::to_string(limit["cacheSize"].as_int()), "must not be negative");
  }
  return errors.empty() ? "" : meta::AggregateMessage(errors);
}

std::unique_ptr<Plugin> NewEventRateLimit(const PluginContext& context) {
  return std::make_unique<EventRateLimit>(context);
}

}  // namespace keelson::admission
