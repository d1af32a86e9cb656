#include "apiextensions/converted_storage.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "apiextensions/resource_codec.h"
#include "async/event.h"
#include "async/testing/run_now.h"
#include "base/clock.h"
#include "kv/memory/memory.h"
#include "object/json_text.h"
#include "storage/lease_manager.h"
#include "storage/store.h"

namespace keelson::apiextensions {
namespace {

using storage::ObjectPtr;
using storage::WatchEvent;

constexpr std::string_view kDefinition = R"j({"metadata":{"name":"ships.example.com","uid":"u","generation":1},
  "spec":{"group":"example.com","scope":"Cluster","names":{"plural":"ships","kind":"Ship","listKind":"ShipList"},
    "versions":[
      {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
        "size":{"type":"integer"}}}}},
      {"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{
        "size":{"type":"integer"}}}}}]},
  "status":{"acceptedNames":{"plural":"ships","kind":"Ship","listKind":"ShipList"}}})j";

// Answers reviews: another apiVersion, nothing else.
class Relabel final : public ConversionClient {
 public:
  Awaitable<Outcome<base::SharedBytes, std::string>> Post(std::string review, telemetry::Span) override {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, review);
    const Value request = (*parsed)["request"];
    Value answer = Value::Map(arena);
    answer.Set(arena, "kind", "ConversionReview");
    answer.Set(arena, "apiVersion", "apiextensions.k8s.io/v1");
    Value response = answer.EnsureMap(arena, "response");
    response.Set(arena, "uid", request["uid"]);
    response.EnsureMap(arena, "result").Set(arena, "status", "Success");
    Value converted = Value::List(arena);
    for (const Value object : request["objects"].items()) {
      Value one = object.Clone(arena);
      one.Set(arena, "apiVersion", request["desiredAPIVersion"]);
      converted.Append(arena, one);
    }
    response.Set(arena, "convertedObjects", converted);
    co_return base::SharedBytes(object::ToJSON(answer));
  }
};

class ConvertedStorageTest : public ::testing::Test {
 public:
  ConvertedStorageTest() {
    const auto value = object::ParseJSON(arena_, kDefinition);
    auto kind = CompileKind(std::make_shared<schema::structural::Pool>(), *ReadDefinition(*value, nullptr), *value, {});
    EXPECT_TRUE(kind.ok());
    codec_ = NewStorageCodec(*kind, StoredAs::kJSON);
    base_ = std::make_shared<storage::Store>(storage::StoreParts{.kv = *kv_, .codec = *codec_, .leases = leases_},
                                             storage::StoreOptions{.resource_prefix = "/example.com/ships"});
    auto conversion = std::make_shared<WebhookConversion>();
    conversion->client = std::make_shared<Relabel>();
    view_ = NewConvertedStorage(base_, *kind, (*kind)->Find("v2"), std::move(conversion));
  }

  Value Ship(std::string_view name, std::string_view color, int size) {
    const std::string json = R"({"apiVersion":"example.com/v1","kind":"Ship","metadata":{"name":")" +
                             std::string(name) + R"(","uid":"u-)" + std::string(name) + R"(","labels":{"color":")" +
                             std::string(color) + R"("}},"size":)" + std::to_string(size) + "}";
    return *object::ParseJSON(arena_, json);
  }
  Awaitable<void> Create(Value ship) {
    const auto made = co_await base_->Create(KeyOf(ship), ship, 0);
    EXPECT_TRUE(made.ok());
  }
  static Awaitable<meta::Result<storage::Updated>> ReplacedBy(Value ship) {
    co_return storage::Updated{.object = ship};
  }
  Awaitable<void> Update(Value ship) {
    const auto written =
        co_await base_->GuaranteedUpdate(KeyOf(ship), false, {}, [ship](const ObjectPtr&) { return ReplacedBy(ship); });
    EXPECT_TRUE(written.ok());
  }
  Awaitable<void> Delete(std::string_view name) {
    const auto deleted = co_await base_->Delete("/example.com/ships/" + std::string(name), {}, nullptr);
    EXPECT_TRUE(deleted.ok());
  }
  static std::string KeyOf(Value ship) {
    return "/example.com/ships/" + std::string(ship.Get("metadata", "name").as_string());
  }
  static std::string Text(const WatchEvent& event) {
    constexpr const char* kTypes[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    std::string text = kTypes[static_cast<int>(event.type)];
    if (event.error) return text + " " + std::string(event.error->message());
    if (!event.object) return text;
    base::Arena arena;
    const auto value = object::ParseJSON(arena, event.object->stored().view());
    const Value metadata = (*value)["metadata"];
    EXPECT_EQ(metadata["resourceVersion"].as_string(), std::to_string(event.object->resource_version()));
    return text + " " + std::string((*value)["apiVersion"].as_string()) + " " +
           std::string(metadata["name"].as_string()) + " " + std::string(metadata["labels"]["color"].as_string());
  }
  // The events up to that of the object `last`.
  static Awaitable<std::vector<std::string>> EventsUntil(storage::WatchStream& stream, std::string_view last) {
    auto wake = std::make_shared<async::Event>();
    stream.Start([wake] { wake->Set(); });
    std::vector<std::string> events;
    while (events.empty() || !events.back().contains(last)) {
      wake->Reset();
      WatchEvent event;
      const auto poll = stream.Next(event);
      if (poll == storage::WatchStream::Poll::kEvent) events.push_back(Text(event));
      if (poll == storage::WatchStream::Poll::kEnd) break;
      if (poll == storage::WatchStream::Poll::kPending) co_await wake->Wait();
    }
    co_return events;
  }
  static storage::ListOptions RedAfter(std::uint64_t revision) {
    storage::ListOptions options;
    options.resource_version = std::to_string(revision);
    options.predicate.label = std::make_shared<const meta::LabelSelector>(*meta::LabelSelector::Parse("color=red"));
    return options;
  }

  base::Arena arena_;
  std::unique_ptr<kv::Store> kv_ = kv::memory::Open();
  storage::LeaseManager leases_{*kv_, base::Clock::Real()};
  std::shared_ptr<const storage::ResourceCodec> codec_;
  std::shared_ptr<storage::Store> base_;
  std::shared_ptr<storage::Interface> view_;
};

// A watch from a list's resourceVersion has not sent the objects of the list. Whether they matched its selector before a
// change must follow from the change alone.
TEST_F(ConvertedStorageTest, SelectedWatchFromARevision) {
  async::RunNow([](ConvertedStorageTest& test) -> Awaitable<void> {
    co_await test.Create(test.Ship("leaves", "red", 1));
    co_await test.Create(test.Ship("changes", "red", 1));
    co_await test.Create(test.Ship("goes", "red", 1));
    co_await test.Create(test.Ship("comes", "blue", 1));
    co_await test.Create(test.Ship("never", "blue", 1));
    const auto revision = co_await test.base_->GetCurrentResourceVersion();
    EXPECT_TRUE(revision.ok());
    co_await test.Update(test.Ship("leaves", "blue", 1));
    co_await test.Update(test.Ship("never", "blue", 2));
    co_await test.Update(test.Ship("changes", "red", 2));
    co_await test.Delete("goes");
    co_await test.Delete("never");
    co_await test.Update(test.Ship("comes", "red", 1));
    co_await test.Create(test.Ship("last", "red", 1));
    auto stream = co_await test.view_->Watch("/example.com/ships", RedAfter(*revision));
    EXPECT_TRUE(stream.ok());
    const auto events = co_await EventsUntil(**stream, "last");
    const std::vector<std::string> want = {
        "DELETED example.com/v2 leaves red",  // as it was when it matched last
        "MODIFIED example.com/v2 changes red", "DELETED example.com/v2 goes red",
        "ADDED example.com/v2 comes red",      "ADDED example.com/v2 last red",
    };
    EXPECT_EQ(events, want);
  }(*this));
}

}  // namespace
}  // namespace keelson::apiextensions
