#include "app/commands/top_view.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace keelson::app {
namespace {

TEST(MetricsText, SamplesAreReadAndBrokenLinesSkipped) {
  const auto metrics = MetricsText::Parse(
      "# HELP a text\n# TYPE a counter\na{x=\"1\",y=\"a\\\"b\\\\c\\nd\"} 2\na{x=\"2\"} 3.5e2 1700000000000\n"
      "b 7\nbroken{x=\"1 3\nc +Inf\n{} 1\nd one\n");
  ASSERT_EQ(metrics.Find("a").size(), 2u);
  EXPECT_EQ(metrics.Find("a")[0].Label("y"), "a\"b\\c\nd");
  EXPECT_EQ(metrics.Sum("a"), 352);
  EXPECT_EQ(metrics.Sum("b"), 7);
  EXPECT_TRUE(metrics.Find("broken").empty());
  EXPECT_TRUE(metrics.Find("d").empty());
  EXPECT_EQ(metrics.Find("c").size(), 1u);
}

constexpr const char* kBefore =
    "process_resident_memory_bytes 1.5e+07\nprocess_cpu_seconds_total 1\n"
    "apiserver_request_total{code=\"200\",verb=\"LIST\",resource=\"pods\",group=\"\"} 10\n"
    "apiserver_request_duration_seconds_sum{verb=\"LIST\",resource=\"pods\",group=\"\"} 1\n";
constexpr const char* kNow =
    "process_resident_memory_bytes 2.5e+07\nprocess_cpu_seconds_total 2\n"
    "apiserver_request_total{code=\"200\",verb=\"LIST\",resource=\"pods\",group=\"\"} 30\n"
    "apiserver_request_total{code=\"500\",verb=\"GET\",resource=\"leases\",group=\"coordination.k8s.io\"} 2\n"
    "apiserver_request_total{code=\"200\",verb=\"WATCH\",resource=\"pods\"} 900\n"
    "apiserver_request_total{code=\"200\",verb=\"GET\",resource=\"\",subresource=\"/readyz\"} 6\n"
    "apiserver_request_duration_seconds_sum{verb=\"LIST\",resource=\"pods\",group=\"\"} 3\n"
    "apiserver_request_duration_seconds_bucket{verb=\"LIST\",resource=\"pods\",group=\"\",le=\"0.1\"} 5\n"
    "apiserver_request_duration_seconds_bucket{verb=\"LIST\",resource=\"pods\",group=\"\",le=\"0.2\"} 30\n"
    "apiserver_request_duration_seconds_bucket{verb=\"LIST\",resource=\"pods\",group=\"\",le=\"+Inf\"} 30\n"
    "apiserver_resource_objects{group=\"\",resource=\"pods\"} 40\n"
    "apiserver_resource_size_estimate_bytes{group=\"\",resource=\"pods\"} 20000\n"
    "apiserver_longrunning_requests{verb=\"WATCH\",resource=\"pods\"} 3\n"
    "apiserver_flowcontrol_current_limit_seats{priority_level=\"global-default\"} 49\n"
    "apiserver_flowcontrol_current_inqueue_requests{priority_level=\"global-default\",flow_schema=\"x\"} 4\n";

TEST(TopView, RatesAreBetweenTheTwoReadings) {
  const auto before = MetricsText::Parse(kBefore), now = MetricsText::Parse(kNow);
  const std::string page = TopView(now, &before, 2, {});
  EXPECT_NE(page.find("memory 25.0 MB   cpu 50%"), std::string::npos) << page;
  EXPECT_NE(page.find("watches 3 "), std::string::npos) << page;
  const auto has_row = [&page](const std::string& name, const std::string& rest) {
    std::string row = "  " + name;
    row.resize(2 + std::string("GET leases.coordination.k8s.io").size(), ' ');
    return page.find(row + " " + rest) != std::string::npos;
  };
  EXPECT_TRUE(has_row("LIST pods", "     10.0  100.0 ms  200.0 ms       0\n")) << page;
  EXPECT_TRUE(has_row("GET leases.coordination.k8s.io", "      1.0      0 us      0 us       2\n")) << page;
  EXPECT_TRUE(has_row("GET /readyz", "      3.0      0 us      0 us       0\n")) << page;
  EXPECT_TRUE(has_row("pods", "       40   20.0 kB         3\n")) << page;
  EXPECT_TRUE(has_row("global-default", "       49         0         4         0\n")) << page;
  EXPECT_EQ(page.find("WATCH pods"), std::string::npos) << "watches are no requests that end";
}

// The column in which the figures of every table end.
void ExpectAligned(const std::string& page, std::size_t columns) {
  std::size_t tables = 0, rows = 0, figures = 0;
  for (const auto line : base::Split(page.substr(page.find('\n') + 1), '\n')) {
    if (line.empty()) continue;
    const bool is_head = line[0] != ' ';
    if (is_head) figures = line.size();
    (is_head ? tables : rows) += 1;
    EXPECT_EQ(line.size(), figures) << line;
    if (columns > 0) EXPECT_LE(line.size(), columns) << line;
  }
  EXPECT_EQ(tables, 4u) << page;
  EXPECT_EQ(rows, 6u) << page;
}

TEST(TopView, LongNamesDoNotShiftColumns) {
  const std::string resource = "validatingadmissionpolicybindings";
  const std::string group = "admissionregistration.k8s.io";
  const std::string labels = "resource=\"" + resource + "\",group=\"" + group + "\"";
  const auto now =
      MetricsText::Parse("apiserver_request_total{code=\"200\",verb=\"LIST\"," + labels + "} 30\n" +
                         "apiserver_request_total{code=\"200\",verb=\"GET\",resource=\"pods\",group=\"\"} 30\n" +
                         "apiserver_resource_objects{" + labels + "} 40\n" +
                         "apiserver_flowcontrol_current_limit_seats{priority_level=\"leader-election\"} 49\n");
  const std::string whole = TopView(now, nullptr, 2, {});
  ExpectAligned(whole, 0);
  EXPECT_NE(whole.find("  LIST " + resource + "." + group + " "), std::string::npos) << whole;
  for (const std::size_t columns : {80u, 100u}) {
    const std::string cut = TopView(now, nullptr, 2, {.columns = columns});
    ExpectAligned(cut, columns);
    EXPECT_NE(cut.find("  LIST validatingadmissionpolicy"), std::string::npos) << cut;
    EXPECT_NE(cut.find(".. "), std::string::npos) << cut;
  }
  ExpectAligned(TopView(now, nullptr, 2, {.columns = 1}), 0);
}

// Found by app_options_metrics_text_fuzz: 1.5e+70 does not fit into 64 bits, and NaN has no order.
TEST(TopView, ValuesBeyondAllBoundsAreCutAndNaNIsSkipped) {
  const auto metrics = MetricsText::Parse(
      "process_resident_memory_bytes 1.5e+70\na NaN\na +Inf\na -Inf\na inf\n"
      "apiserver_request_total{verb=\"LIST\",resource=\"pods\"} +Inf\n"
      "apiserver_request_duration_seconds_sum{verb=\"LIST\",resource=\"pods\"} +Inf\n"
      "apiserver_request_duration_seconds_bucket{verb=\"LIST\",resource=\"pods\",le=\"nan\"} 5\n");
  EXPECT_EQ(metrics.Find("a").size(), 3u);
  EXPECT_EQ(metrics.Sum("a"), MetricsText::kValueMax);
  const std::string text = TopView(metrics, &metrics, 1, {.rows = 5});
  EXPECT_NE(text.find("memory 1000000.0 TB"), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
}

TEST(TopView, EmptyMetrics) {
  const std::string page = TopView(MetricsText::Parse(""), nullptr, 0, {});
  EXPECT_NE(page.find("REQUESTS, slowest"), std::string::npos);
}

}  // namespace
}  // namespace keelson::app
