#include "audit/tail.h"

#include <algorithm>

namespace keelson::audit {
namespace {

// The event without objects, and with texts of bounded length.
Event Shortened(const Event& event) {
  Event shown = event;
  shown.level = Level::kMetadata;
  shown.request_object = nullptr;
  shown.response_object = nullptr;
  const auto cut = [](std::string& text, std::size_t most) {
    if (text.size() > most) text = text.substr(0, most) + "...";
  };
  cut(shown.request_uri, Tail::kURIBytesMax);
  for (auto& [key, value] : shown.annotations) cut(value, Tail::kAnnotationBytesMax);
  return shown;
}

}  // namespace

void Tail::Add(const Event& event) {
  std::string line;
  Shortened(event).WriteJSON([&line](std::string_view piece) { line += piece; }, Event::Form::kItem);
  line += '\n';
  auto entry = std::make_shared<Entry>();
  entry->user = event.user.name;
  entry->verb = event.verb;
  if (event.object_ref) entry->resource = event.object_ref->resource;
  entry->line = base::SharedBytes::FromString(std::move(line));
  const std::lock_guard lock(mutex_);
  entry->number = ++last_;
  bytes_ += entry->line.size();
  entries_.push_back(std::move(entry));
  while (entries_.size() > kEventsMax || bytes_ > kBytesMax) {
    bytes_ -= entries_.front()->line.size();
    entries_.pop_front();
  }
  for (const auto& wake : wakes_) wake();
}

bool Tail::full() {
  const std::lock_guard lock(mutex_);
  return wakes_.size() >= kFollowersMax;
}

std::unique_ptr<Tail::Follower> Tail::Follow(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  if (wakes_.size() >= kFollowersMax) return nullptr;
  ++followers_;
  return std::make_unique<Follower>(shared_from_this(), wakes_.insert(wakes_.end(), std::move(wake)));
}

Tail::Follower::~Follower() {
  const std::lock_guard lock(tail_->mutex_);
  tail_->wakes_.erase(at_);
  --tail_->followers_;
}

std::vector<Tail::EntryPtr> Tail::Follower::After(std::uint64_t after, std::size_t most) const {
  const std::lock_guard lock(tail_->mutex_);
  const auto& entries = tail_->entries_;
  const auto begin = std::ranges::upper_bound(entries, after, {}, [](const EntryPtr& entry) { return entry->number; });
  const auto count = std::min<std::size_t>(most, static_cast<std::size_t>(entries.end() - begin));
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace keelson::audit
