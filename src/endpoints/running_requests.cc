#include "endpoints/running_requests.h"

#include <pthread.h>

#include <mutex>

namespace keelson::endpoints {

struct RunningRequests::Thread {
  std::string name;
  std::mutex mutex;  // taken by another thread only for a report
  Entry* first = nullptr;
};

struct RunningRequests::Impl {
  mutable std::mutex mutex;
  std::vector<std::shared_ptr<Thread>> threads;
};

RunningRequests::RunningRequests() : impl_(std::make_unique<Impl>()) {}
RunningRequests::~RunningRequests() = default;

std::shared_ptr<RunningRequests::Thread> RunningRequests::Current() {
  // A thread serves one server as a rule; where it serves another next, it is looked up again.
  thread_local std::pair<const Impl*, std::shared_ptr<Thread>> known;
  if (known.first == impl_.get()) return known.second;
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  std::lock_guard lock(impl_->mutex);
  for (const auto& thread : impl_->threads) {
    if (thread->name == name) {
      known = {impl_.get(), thread};
      return thread;
    }
  }
  impl_->threads.push_back(std::make_shared<Thread>());
  impl_->threads.back()->name = name;
  known = {impl_.get(), impl_->threads.back()};
  return known.second;
}

RunningRequests::Entry::Entry(RunningRequests& running, const std::string& method, const std::string& target)
    : thread_(running.Current()), method_(method), target_(target) {
  std::lock_guard lock(thread_->mutex);
  next_ = thread_->first;
  if (next_ != nullptr) next_->previous_ = this;
  thread_->first = this;
}

RunningRequests::Entry::~Entry() {
  std::lock_guard lock(thread_->mutex);
  (previous_ != nullptr ? previous_->next_ : thread_->first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

std::vector<std::string> RunningRequests::Of(std::string_view name) const {
  std::lock_guard lock(impl_->mutex);
  std::vector<std::string> names;
  for (const auto& thread : impl_->threads) {
    if (thread->name != name) continue;
    std::lock_guard thread_lock(thread->mutex);
    for (const Entry* request = thread->first; request != nullptr && names.size() < kNamedMax; request = request->next_)
      names.push_back(request->method_ + " " + request->target_.substr(0, kTargetMax));
  }
  return names;
}

}  // namespace keelson::endpoints
