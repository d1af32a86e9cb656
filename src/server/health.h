// Health checks and their endpoints: /healthz, /livez, /readyz, each with ?verbose, ?exclude= and a path per check.
// Thread safety: all members from any thread; Add() also while serving.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/url.h"
#include "endpoints/page.h"

namespace keelson::server {

class HealthChecks {
 public:
  using Check = std::function<std::string()>;  // what is wrong; "" when healthy. Quick and non-blocking.
  struct On {
    bool healthz = true;
    bool livez = true;
    bool readyz = true;
  };
  // `group`: what ?exclude= may name besides the check itself ("etcd" covers etcd-override-N).
  void Add(std::string name, Check check, On on, std::string group = {});

  // Gets every result of a check that an endpoint ran. Before serving.
  using Observer = std::function<void(std::string_view endpoint, std::string_view check, bool healthy)>;
  void SetObserver(Observer observer) { observer_ = std::move(observer); }

  // The page of one of the three endpoints (without its slash); `check` is "" or a check's name.
  endpoints::Page Show(std::string_view endpoint, std::string_view check, const base::Query& query) const;
  bool Ready() const;  // all of readyz
  std::vector<std::string> Names(std::string_view endpoint) const;

 private:
  struct Entry {
    std::string name;
    Check check;
    On on;
    std::string group;
  };
  std::vector<Entry> ChecksOf(std::string_view endpoint) const;
  std::string Run(std::string_view endpoint, const Entry& entry) const;

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  Observer observer_;
};

}  // namespace keelson::server
