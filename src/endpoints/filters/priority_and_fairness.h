// Priority and fairness in the handler chain (upstream's WithPriorityAndFairness): classifies each request, waits for
// its seats, and gives them back when its handler is done; a watch gives them back when its initial events are out.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "endpoints/exchange.h"
#include "endpoints/request_metrics.h"
#include "flowcontrol/controller.h"
#include "flowcontrol/memory_budget.h"

namespace keelson::endpoints::filters {

struct PriorityAndFairness {
  std::shared_ptr<flowcontrol::Controller> controller;
  // Objects of a resource, as exact as they are known; none: unknown. Called on I/O threads, must be quick.
  std::function<std::optional<flowcontrol::ObjectStats>(std::string_view group, std::string_view resource)> stats;
  std::shared_ptr<flowcontrol::MemoryBudget> memory;               // null: no --memory-limit
  std::chrono::nanoseconds wait_limit = std::chrono::seconds(15);  // of requests without a deadline
};

Handler WithPriorityAndFairness(Handler next, PriorityAndFairness options, RequestMetrics& metrics);

}  // namespace keelson::endpoints::filters
