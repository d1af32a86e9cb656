// Counts open watches by what they watch, so that a write can be charged for the watchers it wakes.
// Thread safety: all members from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "request/request_info.h"

namespace keelson::flowcontrol {

class WatchTracker {
 public:
  WatchTracker();
  ~WatchTracker();

  // Counted until it is destroyed. May outlive the tracker.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&&) noexcept = default;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration();

   private:
    friend class WatchTracker;
    void Forget();
    struct Entry;
    std::shared_ptr<Entry> entry_;
  };

  // Counts a watch by its RequestInfo; other requests, and watches that an index narrows to one node, are not counted.
  Registration Register(const request::RequestInfo& info);
  // Watches that an object of this write may concern: of all of the resource, of its namespace, of its name. 0 for
  // reads.
  int InterestedWatchers(const request::RequestInfo& info) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::flowcontrol
