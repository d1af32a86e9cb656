#include "flowcontrol/watch_tracker.h"

#include <mutex>
#include <string>
#include <utility>

#include "base/hash.h"
#include "meta/selector.h"

namespace keelson::flowcontrol {
namespace {

std::string Key(const request::RequestInfo& info, std::string_view name_space, std::string_view name) {
  std::string key = info.api_group;
  for (std::string_view part : {std::string_view(info.resource), name_space, name}) key.append(1, '\0').append(part);
  return key;
}

// Pods are indexed by spec.nodeName: a kubelet's watch is woken by the pods of its node only.
bool NarrowedByIndex(const request::RequestInfo& info) {
  if (info.resource != "pods" || info.field_selector.empty()) return false;
  const auto selector = meta::FieldSelector::Parse(info.field_selector);
  if (!selector.ok()) return false;
  const auto node = selector->RequiresExactMatch("spec.nodeName");
  return node && !node->empty();
}

}  // namespace

struct WatchTracker::Impl {
  mutable std::mutex mutex;
  base::StringMap<int> counts;  // bounded by the number of open watches
};

struct WatchTracker::Registration::Entry {
  std::shared_ptr<Impl> impl;
  std::string key;
};

WatchTracker::WatchTracker() : impl_(std::make_shared<Impl>()) {}
WatchTracker::~WatchTracker() = default;

WatchTracker::Registration& WatchTracker::Registration::operator=(Registration&& other) noexcept {
  Forget();
  entry_ = std::move(other.entry_);
  return *this;
}

WatchTracker::Registration::~Registration() { Forget(); }

void WatchTracker::Registration::Forget() {
  if (entry_ == nullptr) return;
  const auto entry = std::move(entry_);  // may own the mutex, so it goes after the lock
  std::lock_guard lock(entry->impl->mutex);
  auto found = entry->impl->counts.find(entry->key);
  if (--found->second == 0) entry->impl->counts.erase(found);
}

WatchTracker::Registration WatchTracker::Register(const request::RequestInfo& info) {
  Registration registration;
  if (info.verb != "watch" || NarrowedByIndex(info)) return registration;
  registration.entry_ = std::make_shared<Registration::Entry>(impl_, Key(info, info.name_space, info.name));
  std::lock_guard lock(impl_->mutex);
  ++impl_->counts[registration.entry_->key];
  return registration;
}

int WatchTracker::InterestedWatchers(const request::RequestInfo& info) const {
  if (info.verb == "get" || info.verb == "list" || info.verb == "watch" || info.verb == "proxy") return 0;
  std::lock_guard lock(impl_->mutex);
  if (impl_->counts.empty()) return 0;
  const auto count = [this](const std::string& key) {
    const auto found = impl_->counts.find(key);
    return found == impl_->counts.end() ? 0 : found->second;
  };
  int watchers = count(Key(info, "", ""));
  if (!info.name_space.empty()) watchers += count(Key(info, info.name_space, ""));
  if (!info.name.empty()) watchers += count(Key(info, info.name_space, info.name));
  return watchers;
}

}  // namespace keelson::flowcontrol
