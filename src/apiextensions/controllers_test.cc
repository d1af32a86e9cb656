#include "apiextensions/controllers.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "async/io_pool.h"
#include "codec/json.h"
#include "kv/memory/memory.h"
#include "registry/catalog.h"
#include "server/resource_storage.h"

namespace keelson::apiextensions {
namespace {

using namespace std::chrono_literals;

class ControllersTest : public ::testing::Test {
 protected:
  ~ControllersTest() override {
    controllers_.reset();
    storage_.Stop();
  }

  template <class T>
  T Await(Awaitable<T> work) {
    return asio::co_spawn(io_.Next(), std::move(work), asio::use_future).get();
  }
  void Start(std::chrono::milliseconds establishing_delay) {
    const auto of = registry::Catalog::BuiltIn()->Find("apiextensions.k8s.io", "customresourcedefinitions");
    definitions_ = storage_.Get(*of);
    storage_.Start();
    ServingConfig config;
    config.storage = &storage_;
    auto handler = std::make_shared<Handler>(std::move(config), definitions_);
    controllers_ = std::make_unique<Controllers>(definitions_, std::move(handler),
                                                 std::make_shared<DiscoveryDocuments>(definitions_),
                                                 Controllers::Options{.establishing_delay = establishing_delay});
    controllers_->Start(io_.Next());
  }
  void Install(const std::string& name) {
    const std::string json =
        R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":")" + name +
        R"(s.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":")" + name +
        R"(s","singular":")" + name + R"(","kind":")" + name + R"(","listKind":")" + name +
        R"(List"},"versions":[{"name":"v1","served":true,"storage":true,
          "schema":{"openAPIV3Schema":{"type":"object"}}}]}})";
    request::Context context;
    const auto decoded = codec::DecodeJSON(context.arena, context.arena.Copy(json));
    ASSERT_TRUE(decoded.ok());
    const auto made = Await(definitions_->Create(context, decoded->value, nullptr, false));
    ASSERT_TRUE(made.ok()) << made.error().message();
  }
  // The definition's condition; "" when it has none.
  std::string ConditionOf(const std::string& name, std::string_view type) {
    base::Arena arena;
    const auto got = Await(definitions_->Get("", name + "s.example.com", ""));
    if (!got.ok()) return "";
    const auto value = definitions_->Decode(arena, *got);
    if (!value.ok()) return "";
    for (const Value condition : value->Get("status", "conditions").items()) {
      if (condition["type"].as_string() == type) return std::string(condition["status"].as_string());
    }
    return "";
  }
  testing::AssertionResult Becomes(const std::string& name, std::string_view type, std::string_view status) {
    std::string seen;
    for (const auto until = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < until;) {
      seen = ConditionOf(name, type);
      if (seen == status) return testing::AssertionSuccess();
      std::this_thread::sleep_for(1ms);
    }
    return testing::AssertionFailure() << name << ": " << type << " is \"" << seen << "\"";
  }

  std::unique_ptr<kv::Store> kv_ = kv::memory::Open();
  async::IOPool io_{1};
  server::ResourceStorage storage_{[this] {
    server::StorageConfig config;
    config.kv = kv_.get();
    config.io = &io_;
    return config;
  }()};
  std::shared_ptr<registry::Store> definitions_;
  std::unique_ptr<Controllers> controllers_;
};

// With several servers each definition is established after a delay. Delays of definitions overlap, and shutdown does not
// wait for them.
TEST_F(ControllersTest, EstablishingDelaysOverlap) {
  constexpr auto kLonger = 30s;  // than the test waits
  Start(kLonger);
  for (const char* const name : {"a", "b", "c"}) Install(name);
  for (const char* const name : {"a", "b", "c"}) {
    EXPECT_TRUE(Becomes(name, "NamesAccepted", "True"));
    EXPECT_EQ(ConditionOf(name, "Established"), "False");
  }
  const auto begun = std::chrono::steady_clock::now();
  controllers_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kLonger / 2);
}

TEST_F(ControllersTest, DefinitionsAreEstablishedAfterTheDelay) {
  Start(1ms);
  for (const char* const name : {"a", "b", "c"}) Install(name);
  for (const char* const name : {"a", "b", "c"}) EXPECT_TRUE(Becomes(name, "Established", "True"));
}

}  // namespace
}  // namespace keelson::apiextensions
