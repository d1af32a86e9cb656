#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "audit/auditor.h"
#include "audit/backend.h"
#include "audit/event.h"
#include "audit/log_file.h"
#include "audit/policy.h"
#include "base/fake_clock.h"

namespace keelson::audit {
namespace {

request::RequestInfo Resource(std::string verb, std::string group, std::string resource, std::string name_space = "",
                              std::string name = "", std::string subresource = "") {
  request::RequestInfo info;
  info.is_resource_request = true;
  info.verb = std::move(verb);
  info.api_group = std::move(group);
  info.resource = std::move(resource);
  info.name_space = std::move(name_space);
  info.name = std::move(name);
  info.subresource = std::move(subresource);
  return info;
}

request::RequestInfo URL(std::string path) {
  request::RequestInfo info;
  info.verb = "get";
  info.path = std::move(path);
  return info;
}

Level LevelOf(std::string_view rule, const request::RequestInfo& info) {
  const request::User user{.name = "alice", .uid = "", .groups = {"devs", "system:authenticated"}, .extra = {}};
  const auto policy =
      Policy::Parse("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n" + std::string(rule));
  EXPECT_TRUE(policy.ok()) << (policy.ok() ? "" : policy.error());
  return policy.ok() ? (*policy)->Evaluate(&user, info).level : Level::kNone;
}

TEST(Policy, RuleMatches) {
  struct Case {
    const char* name;
    const char* rule;
    request::RequestInfo info;
    bool want;
  };
  const auto pods = Resource("get", "", "pods", "default", "x");
  const auto log = Resource("get", "", "pods", "default", "x", "log");
  const auto nameless = Resource("create", "", "pods", "default");
  const Case cases[] = {
      {"everything", "", pods, true},
      {"user", "  users: [alice]\n", pods, true},
      {"other user", "  users: [bob]\n", pods, false},
      {"star is not a wildcard for users", "  users: ['*']\n", pods, false},
      {"group of the user", "  userGroups: [ops, devs]\n", pods, true},
      {"verbs are case sensitive", "  verbs: [GET]\n", pods, false},
      {"resource without subresource", "  resources: [{group: '', resources: [pods]}]\n", log, false},
      {"resource/* matches the subresource", "  resources: [{group: '', resources: [pods/*]}]\n", log, true},
      {"resource/* matches the resource itself", "  resources: [{group: '', resources: [pods/*]}]\n", pods, true},
      {"*/sub", "  resources: [{group: '', resources: ['*/log']}]\n", log, true},
      {"resources star", "  resources: [{group: '', resources: ['*']}]\n", log, true},
      {"group only", "  resources: [{group: ''}]\n", log, true},
      {"any group", "  resources: [{group: '*', resources: [pods]}]\n", pods, true},
      {"names", "  resources: [{group: '', resources: [pods], resourceNames: [x]}]\n", pods, true},
      {"names never match a create", "  resources: [{group: '', resources: [pods], resourceNames: [x]}]\n", nameless,
       false},
      {"the empty name matches a create", "  resources: [{group: '', resources: [pods], resourceNames: ['']}]\n",
       nameless, true},
      {"namespace", "  namespaces: [default]\n", pods, true},
      {"namespaces exclude URLs", "  namespaces: ['']\n", URL("/healthz"), false},
      {"URL", "  nonResourceURLs: [/healthz]\n", URL("/healthz"), true},
      {"URL prefix", "  nonResourceURLs: ['/healthz*']\n", URL("/healthzx"), true},
      {"URLs exclude resources", "  nonResourceURLs: ['*']\n", pods, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(LevelOf(c.rule, c.info) == Level::kMetadata, c.want);
  }
}

TEST(Policy, FirstRuleWinsAndOmissionsAddUp) {
  const auto policy = Policy::Parse(R"(
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Request
  verbs: [get]
  omitStages: [Panic]
  omitManagedFields: false
- level: RequestResponse
)");
  ASSERT_TRUE(policy.ok());
  const Decision get = (*policy)->Evaluate(nullptr, Resource("get", "", "pods"));
  EXPECT_EQ(get.level, Level::kRequest);
  EXPECT_FALSE(get.Records(Stage::kRequestReceived));
  EXPECT_FALSE(get.Records(Stage::kPanic));
  EXPECT_TRUE(get.Records(Stage::kResponseComplete));
  EXPECT_FALSE(get.omit_managed_fields);
  EXPECT_TRUE((*policy)->Evaluate(nullptr, Resource("list", "", "pods")).omit_managed_fields);
}

TEST(Policy, ParseErrors) {
  struct Case {
    const char* text;
    const char* error;
  };
  constexpr Case kCases[] = {
      {"rules:\n- level: None\n", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"},
      {"", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\n", "loaded illegal policy with 0 rules"},
      {"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]\n",
       "failed decoding: no kind \"Policy\" is registered for version \"audit.k8s.io/v1beta1\" in scheme "
       "\"pkg/runtime/scheme.go:111\""},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{}]\n", "rules[0].level: Required value"},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: ['*/x']}]\n",
       "[rules[0].nonResourceURLs[0]: Invalid value: \"*/x\": non-resource URL rules must begin with a '/' character, "
       "rules[0].nonResourceURLs[0]: Invalid value: \"*/x\": non-resource URL wildcards '*' must be the final "
       "character "
       "of the rule]"},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, omitStages: [x]}]\n",
       "rules[0].omitStages[0]: Invalid value: \"x\": allowed stages are "
       "RequestReceived,ResponseStarted,ResponseComplete,Panic"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto policy = Policy::Parse(c.text);
    ASSERT_FALSE(policy.ok());
    EXPECT_EQ(policy.error(), c.error);
  }
}

std::string Stripped(std::string_view json) {
  std::string out;
  WriteWithoutManagedFields(json, [&out](std::string_view piece) { out += piece; });
  return out;
}

TEST(Event, ManagedFieldsAreLeftOut) {
  struct Case {
    const char* json;
    const char* want;
  };
  constexpr Case kCases[] = {
      {R"({"metadata":{"name":"a","managedFields":[{"x":"]}"}]},"data":{"managedFields":1}})",
       R"({"metadata":{"name":"a"},"data":{"managedFields":1}})"},
      {R"({"metadata":{"managedFields":[],"name":"a"}})", R"({"metadata":{"name":"a"}})"},
      {R"({"metadata":{"managedFields":[{}]}})", R"({"metadata":{}})"},
      {R"({"metadata":{"a":1,"managedFields":[{}],"z":2}})", R"({"metadata":{"a":1,"z":2}})"},
      {R"({"items":[{"metadata":{"managedFields":[1],"name":"a"}},{"metadata":{"name":"b","managedFields":[2]}}]})",
       R"({"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})"},
      {R"({"rows":[{"cells":["{"],"object":{"metadata":{"name":"a","managedFields":[]}}}]})",
       R"({"rows":[{"cells":["{"],"object":{"metadata":{"name":"a"}}}]})"},
      {R"({"spec":{"metadata":{"managedFields":[1]}}})", R"({"spec":{"metadata":{"managedFields":[1]}}})"},
      {"[1]", "[1]"},
      {"", ""},
  };
  for (const Case& c : kCases) EXPECT_EQ(Stripped(c.json), c.want);
}

TEST(Event, SourceAddresses) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(SourceIPs("10.0.0.1, bad, ::ffff:10.0.0.2, 10.0.0.3:80", "10.0.0.4", "127.0.0.1:99"),
            (Texts{"10.0.0.1", "10.0.0.2", "10.0.0.4", "127.0.0.1"}));
  EXPECT_EQ(SourceIPs("127.0.0.1", "127.0.0.1", "127.0.0.1:99"), (Texts{"127.0.0.1"}));
  EXPECT_EQ(SourceIPs("", "", "[::1]:99"), (Texts{"::1"}));
}

TEST(Event, JSONFieldOrder) {
  Event event;
  event.level = Level::kMetadata;
  event.stage = Stage::kResponseComplete;
  event.audit_id = "id";
  event.request_uri = "/api?x=<";
  event.verb = "get";
  event.user.name = "alice";
  event.user.extra = {{"b", {"1"}}, {"a", {"2"}}};
  event.source_ips = {"127.0.0.1"};
  event.code = 404;
  event.status_fields = ",\"status\":\"Failure\"";
  event.annotations = {{"z", "1"}, {"a", ""}};
  std::string json;
  event.WriteJSON([&json](std::string_view piece) { json += piece; });
  EXPECT_EQ(
      json,
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id","stage":"ResponseComplete",)"
      R"("requestURI":"/api?x=\u003c","verb":"get","user":{"username":"alice","extra":{"a":["2"],"b":["1"]}},)"
      R"("sourceIPs":["127.0.0.1"],"responseStatus":{"metadata":{},"status":"Failure","code":404},)"
      R"("requestReceivedTimestamp":"1970-01-01T00:00:00.000000Z","stageTimestamp":"1970-01-01T00:00:00.000000Z",)"
      R"("annotations":{"a":"","z":"1"}})");
  EXPECT_EQ(event.JSONSize(), json.size());
}

// Keeps the sizes of the batches it got; fails and blocks on demand.
class FakeSink final : public Sink {
 public:
  struct State {
    std::mutex mutex;
    std::vector<std::size_t> batches;
    std::vector<EventPtr> events;
    std::atomic<bool> fails{false};
  };
  explicit FakeSink(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::string_view plugin() const override { return "fake"; }
  Outcome<void, std::string> Write(std::span<const EventPtr> events) override {
    std::lock_guard lock(state_->mutex);
    if (state_->fails) return std::string("refused");
    state_->batches.push_back(events.size());
    state_->events.insert(state_->events.end(), events.begin(), events.end());
    return {};
  }

 private:
  std::shared_ptr<State> state_;
};

EventPtr NewEvent(Level level = Level::kMetadata, std::size_t payload = 0) {
  auto event = std::make_shared<Event>();
  event->level = level;
  if (payload > 0)
    event->request_object = NewJSONPayload(base::SharedBytes::FromString("\"" + std::string(payload, 'x') + "\""));
  return event;
}

bool Process(Backend& backend, EventPtr event, Until until = Until::kWritten) {
  boost::asio::io_context io;
  auto result = boost::asio::co_spawn(io, backend.ProcessEvent(std::move(event), until), boost::asio::use_future);
  auto work = boost::asio::make_work_guard(io);
  std::thread runner([&io] { io.run(); });
  const bool stored = result.get();
  work.reset();
  runner.join();
  return stored;
}

class BackendTest : public testing::Test {
 protected:
  telemetry::MetricsRegistry registry_;
  std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>(registry_);
  std::shared_ptr<FakeSink::State> state_ = std::make_shared<FakeSink::State>();
  std::unique_ptr<Backend> New(BackendOptions options) {
    return std::make_unique<Backend>(std::make_unique<FakeSink>(state_), options, metrics_);
  }
};

TEST_F(BackendTest, BatchModeCollectsUpToMaxSizeAndShutdownDrains) {
  auto backend =
      New({.mode = Mode::kBatch, .buffer_size = 100, .batch_max_size = 4, .batch_max_wait = std::chrono::hours(1)});
  for (int i = 0; i < 10; ++i) backend->Post(NewEvent());
  backend->Shutdown();
  EXPECT_EQ(state_->events.size(), 10u);
  EXPECT_EQ(state_->batches, (std::vector<std::size_t>{4, 4, 2}));
}

TEST_F(BackendTest, BatchModeDropsAboveItsBuffer) {
  std::unique_lock hold(state_->mutex);  // the sink waits in its first write
  auto backend = New({.mode = Mode::kBatch, .buffer_size = 5, .batch_max_size = 1});
  for (int i = 0; i < 100; ++i) backend->Post(NewEvent());
  hold.unlock();
  backend->Shutdown();
  EXPECT_LE(state_->events.size(), 6u);
  EXPECT_EQ(metrics_->errors.With({"buffered"}).value(), 100 - state_->events.size());
}

TEST_F(BackendTest, BlockingIgnoresErrorsAndStrictReportsThem) {
  state_->fails = true;
  EXPECT_TRUE(Process(*New({.mode = Mode::kBlocking}), NewEvent()));
  EXPECT_FALSE(Process(*New({.mode = Mode::kBlockingStrict}), NewEvent()));
  EXPECT_EQ(metrics_->errors.With({"fake"}).value(), 2u);
  state_->fails = false;
  EXPECT_TRUE(Process(*New({.mode = Mode::kBlockingStrict}), NewEvent()));
}

TEST_F(BackendTest, BlockingModeReturnsAfterTheWriteOfTheEventAndOfQueuedOnes) {
  auto backend = New({.mode = Mode::kBlocking});
  EXPECT_TRUE(Process(*backend, NewEvent(), Until::kQueued));
  EXPECT_TRUE(Process(*backend, NewEvent(), Until::kWritten));
  std::lock_guard lock(state_->mutex);
  EXPECT_EQ(state_->events.size(), 2u);
}

TEST_F(BackendTest, BlockingModeQueuesWithoutWaitingForTheSink) {
  std::unique_lock hold(state_->mutex);  // the sink waits in its first write
  auto backend = New({.mode = Mode::kBlocking});
  EXPECT_TRUE(Process(*backend, NewEvent(), Until::kQueued));
  hold.unlock();
}

TEST_F(BackendTest, LargeEventsAreTruncatedThenDropped) {
  auto backend = New({.mode = Mode::kBlocking, .truncate = true, .event_bytes_max = 500});
  backend->Post(NewEvent(Level::kRequest, 1000));
  auto large = std::make_shared<Event>();
  large->level = Level::kMetadata;
  large->request_uri = std::string(1000, 'x');
  backend->Post(large);
  backend->Shutdown();
  ASSERT_EQ(state_->events.size(), 1u);
  EXPECT_EQ(state_->events[0]->request_object, nullptr);
  EXPECT_EQ(state_->events[0]->annotations.back().first, "audit.k8s.io/truncated");
  EXPECT_EQ(metrics_->errors.With({"truncate"}).value(), 1u);
}

TEST_F(BackendTest, EventsWithBodiesThatAreNotJSONAreDropped) {
  auto backend = New({.mode = Mode::kBlocking});
  auto event = std::make_shared<Event>();
  event->request_object = NewRawPayload(base::SharedBytes("a: b"));
  backend->Post(event);
  backend->Shutdown();
  EXPECT_TRUE(state_->events.empty());
  EXPECT_EQ(metrics_->errors.With({"fake"}).value(), 1u);
}

class LogFileTest : public testing::Test {
 protected:
  LogFileTest() : folder_(std::filesystem::temp_directory_path() / ("keelson-audit-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
  }
  ~LogFileTest() override { std::filesystem::remove_all(folder_); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  std::filesystem::path folder_;
  base::FakeClock clock_;
};

TEST_F(LogFileTest, MakesFoldersAndFileForTheOwnerOnly) {
  namespace fs = std::filesystem;
  auto file = LogFile::Open({.path = folder_ / "a" / "audit.log"}, clock_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Write("x\n").ok());
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(folder_ / "a" / "audit.log").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(LogFileTest, RotatesBeforeTheLimitAndKeepsTheNewestBackups) {
  auto file = LogFile::Open({.path = folder_ / "audit.log", .megabytes_max = 1, .backups_max = 2}, clock_);
  ASSERT_TRUE(file.ok());
  const std::string half(600 * 1024, 'x');
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_TRUE((*file)->Begin(half.size()).ok());
    ASSERT_TRUE((*file)->Write(half).ok());
  }
  const auto names = Names();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_TRUE(names[0].starts_with("audit-") && names[0].ends_with(".log"));
  EXPECT_EQ(names[2], "audit.log");
  EXPECT_FALSE((*file)->Begin(2 * 1024 * 1024).ok());
}

TEST_F(LogFileTest, CompressesBackups) {
  auto file = LogFile::Open({.path = folder_ / "audit.log", .megabytes_max = 1, .compress = true}, clock_);
  ASSERT_TRUE(file.ok());
  const std::string half(600 * 1024, 'x');
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE((*file)->Begin(half.size()).ok());
    ASSERT_TRUE((*file)->Write(half).ok());
  }
  const auto names = Names();
  ASSERT_EQ(names.size(), 2u);
  EXPECT_TRUE(names[0].ends_with(".log.gz"));
}

TEST_F(LogFileTest, OpenErrorsEqualGo) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "file") << "x";
  auto directory = LogFile::Open({.path = folder_}, clock_);
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error(), "ensureLogFile: open " + folder_.string() + ": is a directory");
  auto under_file = LogFile::Open({.path = folder_ / "file" / "x.log"}, clock_);
  ASSERT_FALSE(under_file.ok());
  EXPECT_EQ(under_file.error(), "ensureLogFile: mkdir " + folder_.string() + "/file: not a directory");
}

}  // namespace
}  // namespace keelson::audit
