#include "apiextensions/handler.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <string>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "kv/memory/memory.h"
#include "object/json_text.h"
#include "registry/catalog.h"
#include "server/resource_storage.h"

namespace keelson::apiextensions {
namespace {

// A definition of plural <name>s with a default, a pattern and a rule. `more`: members of its spec.
std::string DefinitionJSON(const std::string& name, int generation, const std::string& more) {
  return R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":")" + name +
         R"(s.example.com","uid":"u-)" + name + R"(","generation":)" + std::to_string(generation) +
         R"(},"spec":{"group":"example.com","scope":"Namespaced",)" + more + R"("names":{"plural":")" + name +
         R"(s","kind":"Ship","listKind":"ShipList"},"versions":[{"name":"v1","served":true,"storage":true,
      "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
        "size":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.size < 10"}]}}}}}]},
      "status":{"acceptedNames":{"plural":")" +
         name + R"(s","kind":"Ship","listKind":"ShipList"}}})";
}

class HandlerTest : public ::testing::Test {
 protected:
  ~HandlerTest() override { storage_.Stop(); }

  // Room for about `kinds` of the test's definitions.
  void Start(std::size_t kinds) {
    storage_.Start();
    ServingConfig config;
    config.storage = &storage_;
    config.compiled_bytes_max = kinds * kKindBytes;
    config.conversion_client = [this](const Value&) -> Outcome<std::shared_ptr<ConversionClient>, std::string> {
      if (const auto call = std::exchange(while_making_, nullptr)) call();
      return std::shared_ptr<ConversionClient>();
    };
    const auto of = registry::Catalog::BuiltIn()->Find("apiextensions.k8s.io", "customresourcedefinitions");
    handler_ = std::make_unique<Handler>(std::move(config), storage_.Get(*of));
  }
  void Install(const std::string& name, int generation = 1, const std::string& more = {}) {
    base::Arena arena;
    const std::string json = DefinitionJSON(name, generation, more);
    const auto value = object::ParseJSON(arena, json);
    ASSERT_TRUE(value.has_value());
    handler_->Update(ReadDefinition(*value, storage::ObjectPtr(base::MakeRef<storage::Object>(
                                                "/x/" + name, 1, base::SharedBytes(json), storage::Attributes{}))));
  }
  ServingUse Serve(const std::string& name) {
    auto serving = handler_->ServingOf(name + "s.example.com");
    EXPECT_TRUE(serving.ok());
    return serving.ok() ? *std::move(serving) : ServingUse();
  }
  bool Served(const std::string& name) const { return storage_.Find("example.com", name + "s") != nullptr; }

  static constexpr std::size_t kKindBytes = 36 * 1024;
  std::unique_ptr<kv::Store> kv_ = kv::memory::Open();
  async::IOPool io_{1};
  base::FakeClock clock_;
  server::ResourceStorage storage_{[this] {
    server::StorageConfig config;
    config.kv = kv_.get();
    config.io = &io_;
    config.clock = &clock_;
    return config;
  }()};
  std::unique_ptr<Handler> handler_;
  std::function<void()> while_making_;  // called once, in the middle of making what serves a definition
};

TEST_F(HandlerTest, UnusedResourcesAreDroppedBeyondTheBudget) {
  Start(2);
  for (const char* const name : {"a", "b", "c", "d", "e"}) {
    Install(name);
    ASSERT_TRUE(Serve(name));
  }
  EXPECT_FALSE(Served("a"));
  EXPECT_TRUE(Served("e"));
  int served = 0;
  for (const char* const name : {"a", "b", "c", "d", "e"}) served += Served(name) ? 1 : 0;
  EXPECT_LE(served, 3);
  EXPECT_TRUE(Serve("a"));  // made again
  EXPECT_TRUE(Served("a"));
}

// A request begins to make what serves a definition; before it is done the definition changes and is served to another.
TEST_F(HandlerTest, DefinitionThatChangesWhileItIsMadeIsServed) {
  Start(10);
  Install("a", 1, R"("conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"]}},)");
  while_making_ = [this] {
    Install("a", 2);
    ASSERT_TRUE(Serve("a"));
  };
  ASSERT_TRUE(Serve("a"));
  clock_.Advance(std::chrono::seconds(10));
  storage_.Tick();  // ends what was replaced
  storage_.Tick();
  const ServingUse serving = Serve("a");
  ASSERT_TRUE(serving);
  EXPECT_EQ(serving->base, storage_.Find("example.com", "as"));
  const auto store = serving->base;
  for (int i = 0; i < 100; ++i) {
    auto list = asio::co_spawn(io_.Next(), store->List("", {}), asio::use_future).get();
    ASSERT_TRUE(list.ok()) << list.error().message();
  }
}

TEST_F(HandlerTest, ResourcesInUseStay) {
  Start(1);
  Install("a");
  const ServingUse request = Serve("a");  // as a request holds it
  Install("b");
  ASSERT_TRUE(Serve("b"));
  storage::ListOptions options;
  const auto reads = storage_.Find("example.com", "bs")->options().storage;
  const auto watch =
      asio::co_spawn(io_.Next(), reads->Watch("/example.com/bs/", std::move(options)), asio::use_future).get();
  ASSERT_TRUE(watch.ok());
  for (const char* const name : {"c", "d", "e"}) {
    Install(name);
    ASSERT_TRUE(Serve(name));
  }
  EXPECT_TRUE(Served("a"));
  EXPECT_TRUE(Served("b"));
  EXPECT_FALSE(Served("c"));
}

// Memory of the serving state of a resource without objects and rules. Field managers once took 8 kB per endpoint.
TEST_F(HandlerTest, AServedResourceTakesLittleMemory) {
  constexpr std::size_t kKinds = 200;
  Start(10 * kKinds);
  for (std::size_t i = 0; i < kKinds; ++i) Install("k" + std::to_string(i));
  ASSERT_TRUE(Serve("k0"));  // what is made once
  const auto before = mallinfo2().uordblks;
  for (std::size_t i = 1; i < kKinds; ++i) ASSERT_TRUE(Serve("k" + std::to_string(i)));
  EXPECT_LT((mallinfo2().uordblks - before) / (kKinds - 1), 12 * 1024);  // 0 under sanitizers
}

}  // namespace
}  // namespace keelson::apiextensions
