// The served subset of upstream's metrics: each has upstream's type, stability and labels.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/completed_options.h"
#include "app/start_metrics.h"
#include "base/strings.h"
#include "endpoints/admission_metrics.h"
#include "endpoints/request_metrics.h"
#include "telemetry/metrics.h"

namespace keelson::app {
namespace {

struct Upstream {
  std::string type, stability;
  std::set<std::string> labels;
};

std::map<std::string, Upstream> ReadUpstream() {
  std::map<std::string, Upstream> all;
  std::ifstream file("src/app/testdata/metrics.tsv");
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    const auto cells = base::Split(line, '\t');
    Upstream& row = all[std::string(cells[0])];
    row.type = cells[1];
    row.stability = cells[2];
    for (const std::string_view label : base::Split(cells[3], ',')) {
      if (!label.empty() && label != "le") row.labels.emplace(label);
    }
  }
  return all;
}

std::string TypeText(telemetry::MetricType type) {
  if (type == telemetry::MetricType::kCounter) return "counter";
  return type == telemetry::MetricType::kGauge ? "gauge" : "histogram";
}

class MetricsList : public ::testing::Test {
 protected:
  MetricsList() {
    FlagSet flags = MakeFlags(options_);
    completed_ = *Complete(options_, flags, FeatureGates(), {.hostname = "node-1", .default_ipv4 = "192.0.2.2"});
    RegisterStartMetrics(registry_, completed_);
    requests_.emplace(registry_);
    admission_.emplace(registry_);
  }
  ServerRunOptions options_;
  CompletedOptions completed_;
  telemetry::MetricsRegistry registry_;
  std::optional<endpoints::RequestMetrics> requests_;
  std::optional<endpoints::AdmissionMetrics> admission_;
};

TEST_F(MetricsList, FamiliesEqualUpstream) {
  const auto upstream = ReadUpstream();
  ASSERT_GT(upstream.size(), 100u);
  for (const telemetry::Family* const family : registry_.Families()) {
    SCOPED_TRACE(family->name());
    if (family->name().starts_with("keelson_")) continue;
    const auto row = upstream.find(family->name());
    ASSERT_NE(row, upstream.end()) << "neither upstream's nor keelson_...";
    EXPECT_EQ(TypeText(family->type()), row->second.type);
    EXPECT_EQ(telemetry::ToString(family->stability()), row->second.stability);
    // A label with no value is not in upstream's recording, so ours may have more of upstream's, never fewer.
    for (const std::string& label : row->second.labels) {
      EXPECT_NE(std::find(family->labels().begin(), family->labels().end(), label), family->labels().end()) << label;
    }
  }
}

// Every STABLE and BETA metric of upstream, and where it is: served from the start, served by the folder named, or part
// of something that is not there. A name that is in none of them, or is served and said to be missing, fails the test.
TEST_F(MetricsList, StableAndBetaServed) {
  const std::set<std::string> want = {"apiserver_admission_controller_admission_duration_seconds",
                                      "apiserver_admission_step_admission_duration_seconds",
                                      "apiserver_current_inflight_requests",
                                      "apiserver_longrunning_requests",
                                      "apiserver_request_duration_seconds",
                                      "apiserver_request_total",
                                      "apiserver_response_sizes",
                                      "apiserver_watch_list_duration_seconds",
                                      "disabled_metrics_total",
                                      "hidden_metrics_total",
                                      "kubernetes_build_info",
                                      "kubernetes_feature_enabled"};
  const std::map<std::string, std::string> elsewhere = {
      {"registered_metrics_total", "a collector"},
      {"apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds", "auth"},
      {"apiserver_authentication_config_controller_automatic_reloads_total", "auth"},
      {"apiserver_storage_events_received_total", "storage"},
      {"apiserver_storage_objects", "storage"},
      {"apiserver_storage_size_bytes", "storage"},
      {"apiserver_flowcontrol_current_executing_requests", "flowcontrol"},
      {"apiserver_flowcontrol_current_executing_seats", "flowcontrol"},
      {"apiserver_flowcontrol_current_inqueue_requests", "flowcontrol"},
      {"apiserver_flowcontrol_dispatched_requests_total", "flowcontrol"},
      {"apiserver_flowcontrol_nominal_limit_seats", "flowcontrol"},
      {"apiserver_flowcontrol_rejected_requests_total", "flowcontrol"},
      {"apiserver_flowcontrol_request_wait_duration_seconds", "flowcontrol"},
  };
  const std::map<std::string, std::string> missing = {
      {"apiserver_cel_compilation_duration_seconds", "CEL"},
      {"apiserver_cel_evaluation_duration_seconds", "CEL"},
      {"apiserver_validation_declarative_validation_mismatch_total", "there is one validation, not two to compare"},
      {"apiserver_validation_declarative_validation_panic_total", "the same"},
      {"workqueue_adds_total", "controllers here have no work queues"},
      {"workqueue_depth", "the same"},
      {"workqueue_longest_running_processor_seconds", "the same"},
      {"workqueue_queue_duration_seconds", "the same"},
      {"workqueue_retries_total", "the same"},
      {"workqueue_unfinished_work_seconds", "the same"},
      {"workqueue_work_duration_seconds", "the same"},
  };
  std::set<std::string> served;
  for (const telemetry::Family* const family : registry_.Families()) {
    if (family->stability() == telemetry::Stability::kStable || family->stability() == telemetry::Stability::kBeta)
      served.insert(family->name());
  }
  EXPECT_EQ(served, want);
  for (const auto& [name, row] : ReadUpstream()) {
    if (row.stability != "STABLE" && row.stability != "BETA") continue;
    EXPECT_EQ(served.contains(name) + elsewhere.contains(name) + missing.contains(name), 1) << name;
  }
}

TEST_F(MetricsList, Exposed) {
  const std::string text = registry_.Expose();
  for (const char* const line :
       {"kubernetes_build_info{build_date=", "kubernetes_feature_enabled{name=\"WatchList\",stage=\"BETA\"} 1\n",
        "kubernetes_feature_enabled{name=\"RetryGenerateName\",stage=\"\"} 1\n", "process_resident_memory_bytes ",
        "version_info{binary=\"1.36\",component=\"kube\",emulation=\"1.36\",min_compat=\"1.35\"} 1\n",
        "registered_metrics_total{deprecated_version=\"\",stability_level=\"STABLE\"} 7\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(MetricsOptionsTest, AreApplied) {
  ServerRunOptions options;
  FlagSet flags = MakeFlags(options);
  ASSERT_TRUE(
      flags.Parse({"--disabled-metrics=version_info", "--allow-metric-labels=apiserver_request_total,verb='GET,LIST'"})
          .ok());
  const CompletedOptions completed = *Complete(options, flags, FeatureGates(), {.default_ipv4 = "192.0.2.2"});
  telemetry::MetricsRegistry registry;
  RegisterStartMetrics(registry, completed);
  endpoints::RequestMetrics requests(registry);
  requests.Record({}, "POST", 200, 0.1, 10, false, false);
  const std::string text = registry.Expose();
  EXPECT_EQ(text.find("version_info{"), std::string::npos);
  EXPECT_NE(text.find("disabled_metrics_total 1\n"), std::string::npos);
  EXPECT_NE(text.find("verb=\"unexpected\""), std::string::npos);
}

}  // namespace
}  // namespace keelson::app
