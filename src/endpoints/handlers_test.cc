// The handlers of the verbs over a Store on the memory kv and over a REST with few verbs: routing, negotiation, codes.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "endpoints/api_group_version.h"
#include "endpoints/filters/filters.h"
#include "endpoints/scope.h"
#include "registry/testing/memory_store.h"

namespace keelson::endpoints {
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

// One object that is only read: no watch, no writes.
class OneObject final : public registry::REST, public registry::Getter, public registry::Lister {
 public:
  explicit OneObject(std::shared_ptr<registry::Store> of) : of_(std::move(of)) {}
  const storage::ResourceCodec& codec() const override { return of_->codec(); }
  const registry::RESTStrategy& rest_strategy() const override { return of_->rest_strategy(); }
  const registry::Getter* getter() const override { return this; }
  const registry::Lister* lister() const override { return this; }
  registry::Task<storage::ObjectPtr> Get(std::string, std::string name, std::string, telemetry::Caller) const override {
    co_return Make(name);
  }
  registry::Task<storage::ObjectList> List(std::string, storage::ListOptions) const override {
    storage::ObjectList list;
    KS_CO_TRY(storage::ObjectPtr made, Make("a"));
    list.items.push_back(std::move(made));
    co_return list;
  }

 private:
  meta::Result<storage::ObjectPtr> Make(const std::string& name) const {
    base::Arena arena;
    Value object = Value::Map(arena);
    object.EnsureMap(arena, "metadata").Set(arena, "name", Value::String(arena, name));
    auto made = storage::NewUnstoredObject(of_->codec(), "/x/" + name, object, 0);
    if (!made.ok()) return meta::NewPlainError(made.error());
    return *std::move(made);
  }
  const std::shared_ptr<registry::Store> of_;
};

std::string BodyText(http::Response& response) {
  if (const auto* bytes = std::get_if<http::SharedBytes>(&response.body)) return std::string(bytes->view());
  auto& source = *std::get<std::unique_ptr<http::BodySource>>(response.body);
  source.Start([] {});
  std::string text;
  for (;;) {
    std::vector<http::SharedBytes> out;
    const auto state = source.Pull(1 << 20, out);
    for (const auto& piece : out) text += piece.view();
    if (state == http::BodySource::State::kDone) return text;
  }
}

struct Answer {
  int code;
  std::string type;
  std::string body;
};

class HandlersTest : public ::testing::Test {
 protected:
  HandlersTest() {
    AddRoute(maps_.store(), "configmaps",
             {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"});
    AddRoute(std::make_shared<OneObject>(maps_.store()), "ones", {"get", "list", "watch"});
    handler_ = filters::WithContext([this](ExchangePtr exchange) { return version_.Handle(std::move(exchange)); },
                                    base::Random::Real(), metrics_);
  }
  void AddRoute(std::shared_ptr<const registry::REST> rest, std::string plural, std::vector<std::string_view> verbs) {
    auto scope = std::make_shared<Scope>();
    scope->definition = maps_.definition_ptr();
    scope->kind = {"", "v1", "ConfigMap"};
    scope->list_kind = {"", "v1", "ConfigMapList"};
    scope->resource = {"", "v1", plural};
    scope->type = maps_.definition().hub_version().type;
    scope->hub_api_version = "v1";
    scope->go_package = "core";
    scope->restrictions.allow_transforms = true;
    scope->rest = std::move(rest);
    version_.Add(plural, "", StoredResourceRoute(std::move(scope), verbs));
  }
  Answer Ask(std::string method, std::string path, std::string body = {}, std::string accept = {},
             std::string content_type = "application/json") {
    http::Request request;
    request.method = std::move(method);
    request.target = path;
    request.raw_query = path.find('?') == std::string::npos ? "" : path.substr(path.find('?') + 1);
    request.path = path.substr(0, path.find('?'));
    if (!accept.empty()) request.headers.Add("Accept", accept);
    if (!body.empty()) {
      request.headers.Add("Content-Type", content_type);
      request.headers.Add("Content-Length", std::to_string(body.size()));
    }
    request.body = std::make_unique<TextBody>(std::move(body));
    request.received = base::Clock::Real().Monotonic();
    request.on_close = [](std::function<void()>) {};
    auto response = asio::co_spawn(io_.executor(0), handler_(std::move(request)), asio::use_future).get();
    Answer answer{response.status, std::string(response.headers.Get("Content-Type")), BodyText(response)};
    for (auto& callback : response.on_end) callback(0, true);
    return answer;
  }

  async::IOPool io_{1};
  base::FakeClock clock_;
  registry::testing::MemoryStore maps_{"", "configmaps", clock_};
  telemetry::MetricsRegistry registry_;
  RequestMetrics metrics_{registry_};
  APIGroupVersion version_{"", "v1"};
  http::Handler handler_;
};

constexpr const char* kMaps = "/api/v1/namespaces/n/configmaps";
constexpr const char* kMap = R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"1"}})";

TEST_F(HandlersTest, EveryVerb) {
  const std::string one = std::string(kMaps) + "/a";
  EXPECT_EQ(Ask("GET", one).code, 404);
  EXPECT_EQ(Ask("POST", kMaps, kMap).code, 201);
  EXPECT_EQ(Ask("POST", kMaps, kMap).code, 409);
  EXPECT_NE(Ask("GET", one).body.find(R"("data":{"k":"1"})"), std::string::npos);
  EXPECT_EQ(Ask("PUT", one, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"2"}})").code,
            200);
  const Answer patched = Ask("PATCH", one, R"({"data":{"x":"y"}})", "", "application/merge-patch+json");
  EXPECT_EQ(patched.code, 200);
  EXPECT_NE(patched.body.find(R"("data":{"k":"2","x":"y"})"), std::string::npos) << patched.body;
  EXPECT_NE(Ask("GET", kMaps).body.find(R"("kind":"ConfigMapList")"), std::string::npos);
  const Answer deleted = Ask("DELETE", one);
  EXPECT_EQ(deleted.code, 200);
  EXPECT_NE(deleted.body.find(R"("status":"Success")"), std::string::npos);
  EXPECT_EQ(Ask("DELETE", kMaps).code, 200);
}

TEST_F(HandlersTest, BodiesThatDoNotFitTheURL) {
  ASSERT_EQ(Ask("POST", kMaps, kMap).code, 201);
  struct Case {
    const char* method;
    const char* path;
    const char* body;
    int code;
    const char* message;
  };
  const Case cases[] = {
      {"POST", "/api/v1/namespaces/n/configmaps",
       R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"other"}})", 400,
       "the namespace of the provided object does not match the namespace sent on the request"},
      {"PUT", "/api/v1/namespaces/n/configmaps/a", R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}})",
       400, "the name of the object (b) does not match the name on the URL (a)"},
      {"PUT", "/api/v1/namespaces/n/configmaps/a", R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{}})", 400,
       "the name of the object (a based on URL) was undeterminable: name must be provided"},
      {"POST", "/api/v1/namespaces/n/configmaps?dryRun=No", R"({"kind":"ConfigMap","apiVersion":"v1"})", 422, "dryRun"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const Answer answer = Ask(c.method, c.path, c.body);
    EXPECT_EQ(answer.code, c.code);
    EXPECT_NE(answer.body.find(c.message), std::string::npos) << answer.body;
  }
}

TEST_F(HandlersTest, DryRunStoresNothing) {
  EXPECT_EQ(Ask("POST", std::string(kMaps) + "?dryRun=All", kMap).code, 201);
  EXPECT_EQ(Ask("GET", std::string(kMaps) + "/a").code, 404);
}

TEST_F(HandlersTest, Negotiation) {
  ASSERT_EQ(Ask("POST", kMaps, kMap).code, 201);
  const std::string one = std::string(kMaps) + "/a";
  EXPECT_EQ(Ask("GET", one, "", "application/yaml").type, "application/yaml");
  EXPECT_EQ(Ask("GET", one, "", "application/vnd.kubernetes.protobuf").type, "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(Ask("GET", one, "", "text/html").code, 406);
  const Answer table = Ask("GET", one, "", "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_NE(table.body.find(R"("kind":"Table")"), std::string::npos);
  const Answer partial = Ask("GET", one, "", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
  EXPECT_NE(partial.body.find(R"("kind":"PartialObjectMetadata")"), std::string::npos);
  EXPECT_EQ(Ask("PATCH", one, "{}", "", "application/json").code, 415);
}

TEST_F(HandlersTest, MissingRoutes) {
  EXPECT_EQ(Ask("GET", "/api/v1/namespaces/n/nothing").code, 404);
  EXPECT_EQ(Ask("GET", "/api/v1/proxy/configmaps").code, 404);
  EXPECT_EQ(Ask("GET", "/api/v1//configmaps").code, 404);
  EXPECT_EQ(Ask("GET", std::string(kMaps) + "/a/status/more").code, 404);
  EXPECT_EQ(Ask("GET", std::string(kMaps) + "/").code, 200);
  EXPECT_EQ(Ask("GET", std::string(kMaps) + "/a/status").code, 404);
  EXPECT_EQ(Ask("PUT", kMaps, kMap).code, 405);
  EXPECT_EQ(Ask("POST", "/api/v1/configmaps", kMap).code, 405);  // across all namespaces only reading is possible
  EXPECT_EQ(Ask("GET", "/api/v1/configmaps").code, 200);
}

// A REST without Watcher; its objects have no resourceVersion, and a Table of them names none.
TEST_F(HandlersTest, RESTWithFewVerbs) {
  const Answer watch = Ask("GET", "/api/v1/namespaces/n/ones?watch=true");
  EXPECT_EQ(watch.code, 405);
  EXPECT_NE(watch.body.find(R"(watch is not supported on resources of kind \"ones\")"), std::string::npos)
      << watch.body;
  EXPECT_EQ(Ask("GET", "/api/v1/namespaces/n/ones/a").code, 200);
  EXPECT_EQ(Ask("GET", "/api/v1/namespaces/n/ones").code, 200);
  const Answer table = Ask("GET", "/api/v1/namespaces/n/ones/a", "", "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_NE(table.body.find(R"("metadata":{},"columnDefinitions")"), std::string::npos) << table.body;
}

}  // namespace
}  // namespace keelson::endpoints
