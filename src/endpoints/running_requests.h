// The requests whose handlers run, by thread, so that the watchdog's report of a blocked I/O thread can name them.
// Thread safety: every member from any thread. A request is noted on the thread where its handler starts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::endpoints {

class RunningRequests {
  struct Thread;

 public:
  static constexpr std::size_t kNamedMax = 8;     // in one report
  static constexpr std::size_t kTargetMax = 200;  // bytes of a request's target

  RunningRequests();
  ~RunningRequests();

  // Notes a request until it is destroyed. The strings outlive it and do not change meanwhile: text is made of them
  // only for a report.
  class Entry {
   public:
    Entry(RunningRequests& running, const std::string& method, const std::string& target);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    friend class RunningRequests;
    const std::shared_ptr<Thread> thread_;
    const std::string& method_;
    const std::string& target_;
    Entry* previous_ = nullptr;  // among the thread's, guarded by its mutex
    Entry* next_ = nullptr;
  };

  // Those of the thread with this name ("io-0"), the one that started last first.
  std::vector<std::string> Of(std::string_view thread) const;

 private:
  std::shared_ptr<Thread> Current();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::endpoints
