// Filters around a small handler, without sockets.
#include "endpoints/filters/filters.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "async/io_pool.h"
#include "endpoints/filters/large_bodies.h"
#include "endpoints/responses.h"
#include "endpoints/running_requests.h"

namespace keelson::endpoints::filters {
namespace {

class TextBody final : public http::BodyReader {
 public:
  explicit TextBody(std::string text) : text_(std::move(text)) {}
  Awaitable<Outcome<http::SharedBytes, http::BodyError>> Read() override {
    co_return http::SharedBytes::FromString(std::exchange(text_, {}));
  }

 private:
  std::string text_;
};

http::Request Asking(std::string method, std::string path, std::string body = {}) {
  http::Request request;
  request.method = std::move(method);
  request.target = request.path = std::move(path);
  if (!body.empty()) request.headers.Add("Content-Length", std::to_string(body.size()));
  request.body = std::make_unique<TextBody>(std::move(body));
  request.received = base::Clock::Real().Monotonic();
  request.on_close = [](std::function<void()>) {};
  return request;
}

class FiltersTest : public ::testing::Test {
 protected:
  http::Response Run(const http::Handler& handler, http::Request request) {
    auto response = handler(std::move(request));
    return asio::co_spawn(io_.executor(0), std::move(response), asio::use_future).get();
  }
  // As the connection does when the last byte is sent.
  void End(http::Response& response) {
    for (auto& callback : response.on_end) callback(0, true);
  }
  async::IOPool io_{1};
  telemetry::MetricsRegistry registry_;
  RequestMetrics metrics_{registry_};
};

// A route for some resources only.
Handler Routed() {
  return [](ExchangePtr exchange) -> Awaitable<http::Response> {
    exchange->routed = exchange->context.info.resource == "pods";
    co_return PlainError(exchange->routed ? 200 : 404, "");
  };
}

TEST_F(FiltersTest, MetricLabelsAreThoseOfRoutedRequests) {
  const http::Handler handler = WithContext(Routed(), base::Random::Real(), metrics_);
  http::Response routed = Run(handler, Asking("GET", "/api/v1/pods"));
  End(routed);
  for (int i = 0; i < 100; ++i) {
    http::Response made_up =
        Run(handler, Asking("GET", "/apis/g" + std::to_string(i) + "/v9/r" + std::to_string(i) + "/n/s"));
    for (auto& callback : made_up.on_end) callback(0, false);
  }
  http::Response long_path = Run(handler, Asking("GET", "/apis/g/v1/" + std::string(900'000, 'x')));
  End(long_path);
  const std::string text = registry_.Expose();
  EXPECT_NE(text.find(R"(resource="pods")"), std::string::npos);
  EXPECT_EQ(text.find(R"(group="g)"), std::string::npos);
  EXPECT_EQ(text.find(R"(version="v9")"), std::string::npos);
  EXPECT_EQ(text.find(R"(resource="r)"), std::string::npos);
  EXPECT_EQ(text.find(R"(subresource="s")"), std::string::npos);
  EXPECT_LT(text.size(), 100'000u);
}

TEST_F(FiltersTest, SeatsAreGivenBackWhenTheHandlerIsDone) {
  const http::Handler handler =
      WithContext(WithMaxInFlightLimit(Routed(), 1, 1, metrics_), base::Random::Real(), metrics_);
  std::vector<http::Response> unsent;  // answers that their clients do not read
  for (int i = 0; i < 5; ++i) {
    unsent.push_back(Run(handler, Asking("GET", "/api/v1/pods")));
    EXPECT_EQ(unsent.back().status, 200);
  }
  for (http::Response& response : unsent) End(response);
}

TEST_F(FiltersTest, ResponsesAreWrittenUntilTheDeadline) {
  const http::Handler handler =
      WithContext(WithRequestDeadline(Routed(), std::chrono::seconds(60)), base::Random::Real(), metrics_);
  const http::Response response = Run(handler, Asking("GET", "/api/v1/pods"));
  ASSERT_TRUE(response.write_deadline.has_value());
  EXPECT_GT(*response.write_deadline, base::Clock::Real().Monotonic() + std::chrono::seconds(30));
  EXPECT_LT(*response.write_deadline, base::Clock::Real().Monotonic() + std::chrono::seconds(61));
}

TEST_F(FiltersTest, TheHandlersOwnTimeoutDoesNotReplaceTheFilters) {
  // A webhook call that ends with the request's deadline makes the handler answer 504 at the same moment.
  const Handler handler = WithTimeoutAndWarnings(
      [](ExchangePtr exchange) -> Awaitable<http::Response> {
        co_return StatusResponse(*exchange, meta::NewTimeout("request did not complete within requested timeout", 0));
      },
      metrics_);
  auto exchange = std::make_shared<Exchange>();
  exchange->http = Asking("GET", "/api/v1/pods");
  exchange->context.deadline = base::Clock::Real().Monotonic() - std::chrono::seconds(1);
  const http::Response response = asio::co_spawn(io_.executor(0), handler(exchange), asio::use_future).get();
  EXPECT_EQ(response.status, 504);
  EXPECT_NE(std::get<base::SharedBytes>(response.body).view().find("within the allotted timeout"), std::string::npos);
}

TEST_F(FiltersTest, LargeBodiesLeaveTheIOThread) {
  async::IOPool elsewhere(1);
  std::thread::id io_thread;
  std::thread::id ran_on;
  std::size_t size = 0;
  Handler inner = [&](ExchangePtr exchange) -> Awaitable<http::Response> {
    auto body = co_await exchange->http.body->ReadAll(4 << 20);
    ran_on = std::this_thread::get_id();
    size = body->size();
    co_return PlainError(200, "");
  };
  const http::Handler handler =
      WithContext(WithLargeBodiesElsewhere(std::move(inner), elsewhere), base::Random::Real(), metrics_);
  const std::size_t sizes[] = {10, kLargeBodyBytes, kLargeBodyBytes + 1, 3 << 20};
  for (const std::size_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    std::promise<std::thread::id> id;
    asio::post(io_.executor(0), [&] { id.set_value(std::this_thread::get_id()); });
    io_thread = id.get_future().get();
    EXPECT_EQ(Run(handler, Asking("POST", "/api/v1/namespaces/n/pods", std::string(bytes, 'b'))).status, 200);
    EXPECT_EQ(size, bytes);
    EXPECT_EQ(ran_on == io_thread, bytes <= kLargeBodyBytes);
  }
}

TEST_F(FiltersTest, RunningRequestsAreNamedWhileTheyRun) {
  RunningRequests running;
  std::vector<std::string> seen;
  Handler inner = [&](ExchangePtr) -> Awaitable<http::Response> {
    seen = running.Of("io-0");
    co_return PlainError(200, "");
  };
  const http::Handler handler = WithContext(std::move(inner), base::Random::Real(), metrics_, &running);
  Run(handler, Asking("GET", "/api/v1/pods"));
  EXPECT_EQ(seen, std::vector<std::string>{"GET /api/v1/pods"});
  EXPECT_TRUE(running.Of("io-0").empty());
}

}  // namespace
}  // namespace keelson::endpoints::filters
