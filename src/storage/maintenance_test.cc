// The parts that keep a store in order: compactor, health probe, layout.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "async/io_pool.h"
#include "base/failpoint.h"
#include "base/fake_clock.h"
#include "kv/memory/memory.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "storage/compactor.h"
#include "storage/health.h"
#include "storage/storage_factory.h"
#include "testing/failing_kv.h"

namespace keelson::storage {
namespace {

class MaintenanceTest : public ::testing::Test {
 protected:
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.Next(), std::move(task), asio::use_future).get();
  }
  void Put(const std::string& key) {
    kv::TxnRequest request;
    request.success.push_back(kv::Op::Put({.key = key, .value = kv::SharedBytes("x")}));
    ASSERT_TRUE(Await(kv_->Txn(std::move(request))).ok());
  }
  kv::Revision Oldest() { return Await(kv_->Status())->compact_revision; }

  async::IOPool io_{1};
  std::unique_ptr<kv::Store> kv_ = kv::memory::Open();
  testing::FailingKV failing_{*kv_};
  base::FakeClock clock_;
};

TEST_F(MaintenanceTest, CompactsToTheRevisionOfThePreviousRound) {
  Compactor compactor(*kv_);
  Put("a");
  ASSERT_TRUE(Await(compactor.Compact()).ok());
  EXPECT_EQ(Oldest(), 0);
  const kv::Revision first = *Await(kv_->CurrentRevision());
  Put("a");
  Put("a");
  ASSERT_TRUE(Await(compactor.Compact()).ok());
  EXPECT_EQ(Oldest(), first);
  EXPECT_EQ(compactor.compact_revision(), first);
}

TEST_F(MaintenanceTest, OnlyOneOfTwoServersCompacts) {
  Compactor one(*kv_);
  Compactor two(*kv_);
  Put("a");
  ASSERT_TRUE(Await(one.Compact()).ok());  // writes the key
  ASSERT_TRUE(Await(two.Compact()).ok());  // finds it written
  Put("a");
  const kv::Revision before = Oldest();
  ASSERT_TRUE(Await(one.Compact()).ok());
  EXPECT_GT(Oldest(), before);
  const kv::Revision after = Oldest();
  ASSERT_TRUE(Await(two.Compact()).ok());
  EXPECT_EQ(Oldest(), after);
  EXPECT_EQ(two.compact_revision(), after);
}

TEST_F(MaintenanceTest, HealthProbesAreRateLimited) {
  HealthProbe probe(failing_, clock_, "/registry", std::chrono::seconds(2));
  EXPECT_EQ(probe.last(), std::nullopt);  // a store in this process is there
  EXPECT_EQ(Await(probe.Check()), std::nullopt);
  failing_.Disconnect();
  EXPECT_EQ(Await(probe.Check()), std::nullopt);  // too soon for another probe
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Await(probe.Check()), "error getting data from etcd: the connection is lost");
  EXPECT_EQ(probe.last(), "error getting data from etcd: the connection is lost");
  failing_.Restore();
  EXPECT_EQ(Await(probe.Check()), "error getting data from etcd: the connection is lost");
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Await(probe.Check()), std::nullopt);
}

TEST_F(MaintenanceTest, HealthFailsWhenTheStoreRefusesWrites) {
  const kv::rocks::TempDir folder;
  kv::rocks::Options options;
  options.dir = folder.path() + "/store";
  auto store = kv::rocks::Open(std::move(options));
  ASSERT_TRUE(store.ok()) << store.error().message;
  HealthProbe probe(**store, clock_, "/registry", std::chrono::seconds(2));
  EXPECT_EQ(Await(probe.Check()), std::nullopt);
  base::Failpoints::Arm("kv/rocks/before-write", [] { return true; });
  kv::TxnRequest request{.success = {kv::Op::Put({.key = "a"})}};
  EXPECT_FALSE(Await((*store)->Txn(std::move(request))).ok());
  base::Failpoints::Arm("kv/rocks/before-write", nullptr);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Await(probe.Check()), "the store refuses writes: failpoint kv/rocks/before-write");
  EXPECT_EQ(probe.last(), "the store refuses writes: failpoint kv/rocks/before-write");
}

TEST_F(MaintenanceTest, RemoteStoreIsUnhealthyUntilItAnswers) {
  testing::FailingKV remote(*kv_, false);
  HealthProbe probe(remote, clock_, "/registry", std::chrono::seconds(2));
  EXPECT_EQ(probe.last(), "etcd client connection not yet established");
  EXPECT_EQ(Await(probe.Check()), std::nullopt);
  EXPECT_EQ(probe.last(), std::nullopt);
}

TEST(StorageFactory, Layout) {
  struct Case {
    meta::GroupResource resource;
    const char* prefix;
    const char* version;
    bool json;
  };
  const Case cases[] = {
      {{"", "pods"}, "/pods", "v1", false},
      {{"", "nodes"}, "/minions", "v1", false},
      {{"", "services"}, "/services/specs", "v1", false},
      {{"apps", "deployments"}, "/deployments", "apps/v1", false},
      {{"autoscaling", "horizontalpodautoscalers"}, "/horizontalpodautoscalers", "autoscaling/v2", false},
      {{"events.k8s.io", "events"}, "/events", "v1", false},
      {{"networking.k8s.io", "ingresses"}, "/ingress", "networking.k8s.io/v1", false},
      {{"networking.k8s.io", "ingressclasses"}, "/ingressclasses", "networking.k8s.io/v1", false},
      {{"admissionregistration.k8s.io", "mutatingadmissionpolicies"},
       "/mutatingadmissionpolicies",
       "admissionregistration.k8s.io/v1beta1",
       false},
      {{"apiregistration.k8s.io", "apiservices"},
       "/apiregistration.k8s.io/apiservices",
       "apiregistration.k8s.io/v1",
       true},
      {{"apiextensions.k8s.io", "customresourcedefinitions"},
       "/apiextensions.k8s.io/customresourcedefinitions",
       "apiextensions.k8s.io/v1beta1",
       true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.resource.ToString());
    const ResourceLayout layout = LayoutOf(c.resource);
    EXPECT_EQ(layout.resource_prefix, c.prefix);
    EXPECT_EQ(layout.storage_version.ToString(), c.version);
    EXPECT_EQ(layout.json, c.json);
  }
  EXPECT_FALSE(LayoutOf({"", "events"}).watch_cache);
  EXPECT_EQ(LayoutOf({"", "pods"}).trigger_field, "spec.nodeName");
  EXPECT_EQ(CustomResourceLayout({"cr.bar.com", "foos"}, "v1").resource_prefix, "/cr.bar.com/foos");
}

}  // namespace
}  // namespace keelson::storage
