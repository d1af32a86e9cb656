#include "registry/autoscaling/rest/scale.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "codec/json.h"
#include "registry/testing/memory_store.h"

namespace keelson::registry::autoscaling {
namespace {

constexpr std::string_view kDeployment = R"({"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a"},
    "spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"},
    "matchExpressions":[{"key":"tier","operator":"In","values":["x","y"]}]},
    "strategy":{"type":"Recreate"},"template":{"metadata":{"labels":{"app":"web","tier":"x"}},
    "spec":{"restartPolicy":"Always","dnsPolicy":"ClusterFirst","terminationGracePeriodSeconds":30,
    "containers":[{"name":"c","image":"i","imagePullPolicy":"Always","terminationMessagePath":"/dev/termination-log",
    "terminationMessagePolicy":"File"}]}}}})";

class ScaleTest : public ::testing::Test {
 protected:
  ScaleTest() {
    context_.info.name_space = "default";
    auto decoded = codec::DecodeJSON(context_.arena, kDeployment);
    auto created = Await(deployments_.store()->Create(context_, decoded->value, nullptr, false));
    EXPECT_TRUE(created.ok()) << created.error().message();
  }
  template <class T>
  T Await(Awaitable<T> work) {
    return asio::co_spawn(io_.Next(), std::move(work), asio::use_future).get();
  }
  Value Read() {
    auto got = Await(scale_->getter()->Get("default", "a", "", {}));
    EXPECT_TRUE(got.ok()) << got.error().message();
    return *scale_->Decode(context_.arena, *got);
  }
  meta::Result<WriteResult> Write(const std::function<void(Value scale)>& change, UpdateParameters parameters = {}) {
    auto updated = UpdateBy([this, &change](Value existing) -> meta::Result<Value> {
      Value scale = existing.Clone(context_.arena);
      change(scale);
      return scale;
    });
    return Await(scale_->updater()->Update(context_, "a", std::move(updated), nullptr, nullptr, parameters));
  }

  async::IOPool io_{1};
  base::FakeClock clock_;
  request::Context context_;
  testing::MemoryStore deployments_{"apps", "deployments", clock_};
  std::shared_ptr<const REST> scale_ =
      NewScaleREST(deployments_.store(), SelectorForm::kLabelSelector, *schema::FindKind("autoscaling", "v1", "Scale"));
};

TEST_F(ScaleTest, ShowsTheWorkload) {
  const Value scale = Read();
  EXPECT_EQ(scale["kind"].as_string(), "Scale");
  EXPECT_EQ(scale.Get("metadata", "name").as_string(), "a");
  EXPECT_FALSE(scale.Get("metadata", "uid").as_string().empty());
  EXPECT_EQ(scale.Get("spec", "replicas").as_int(), 3);
  EXPECT_EQ(scale.Get("status", "selector").as_string(), "app=web,tier in (x,y)");
}

TEST_F(ScaleTest, WritesReplicasIntoTheWorkload) {
  const auto written = Write([&](Value scale) { scale["spec"].Set(context_.arena, "replicas", 5); });
  ASSERT_TRUE(written.ok()) << written.error().message();
  EXPECT_EQ(scale_->Decode(context_.arena, written->object)->Get("spec", "replicas").as_int(), 5);
  auto deployment = Await(deployments_.store()->Get("default", "a", ""));
  EXPECT_EQ(deployments_.store()->Decode(context_.arena, *deployment)->Get("spec", "replicas").as_int(), 5);
  EXPECT_EQ((*deployment)->resource_version(), written->object->resource_version());
}

TEST_F(ScaleTest, DryRunWritesNothing) {
  const auto written = Write([&](Value scale) { scale["spec"].Set(context_.arena, "replicas", 5); }, {.dry_run = true});
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(Read().Get("spec", "replicas").as_int(), 3);
}

TEST_F(ScaleTest, Refusals) {
  const auto negative = Write([&](Value scale) { scale["spec"].Set(context_.arena, "replicas", -1); });
  EXPECT_EQ(negative.error().message(),
            "Scale.autoscaling \"a\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0");
  const auto stale = Write([&](Value scale) { scale["metadata"].Set(context_.arena, "resourceVersion", "999"); });
  EXPECT_EQ(stale.error().reason(), meta::StatusReason::kConflict);
  const auto other = Write([&](Value scale) { scale["metadata"].Set(context_.arena, "uid", "u"); });
  EXPECT_TRUE(other.error().message().starts_with(
      "Operation cannot be fulfilled on deployments/scale.apps \"a\": Precondition failed: UID in precondition: u, "))
      << other.error().message();
}

TEST_F(ScaleTest, HasNoOtherVerbs) {
  EXPECT_EQ(scale_->lister(), nullptr);
  EXPECT_EQ(scale_->creater(), nullptr);
  EXPECT_EQ(scale_->deleter(), nullptr);
}

}  // namespace
}  // namespace keelson::registry::autoscaling
