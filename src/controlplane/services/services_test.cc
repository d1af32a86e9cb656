#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "async/testing/run_now.h"
#include "base/testing/seeded_random.h"
#include "controlplane/services/service_allocation.h"
#include "kv/memory/memory.h"
#include "object/json_text.h"

namespace keelson::controlplane {
namespace {

struct RangeCase {
  const char* cidr;
  const char* first;
  const char* last;
  std::uint64_t size;
  std::uint64_t band;
};

TEST(AddressRange, SizesAndBands) {
  constexpr RangeCase kCases[] = {
      {"10.0.0.0/16", "10.0.0.1", "10.0.255.254", 65534, 256}, {"10.0.0.0/24", "10.0.0.1", "10.0.0.254", 254, 16},
      {"10.0.0.0/20", "10.0.0.1", "10.0.15.254", 4094, 256},   {"10.0.0.0/28", "10.0.0.1", "10.0.0.14", 14, 0},
      {"10.0.0.0/30", "10.0.0.1", "10.0.0.2", 2, 0},           {"fd00::/112", "fd00::1", "fd00::ffff", 65535, 256},
      {"fd00::/120", "fd00::1", "fd00::ff", 255, 16},
  };
  for (const RangeCase& c : kCases) {
    SCOPED_TRACE(c.cidr);
    const auto range = AddressRange::Parse(c.cidr);
    ASSERT_TRUE(range);
    EXPECT_EQ(static_cast<std::uint64_t>(range->size()), c.size);
    EXPECT_EQ(static_cast<std::uint64_t>(range->static_band()), c.band);
    EXPECT_EQ(range->AddressAt(1), c.first);
    EXPECT_EQ(range->AddressAt(range->size()), c.last);
    EXPECT_TRUE(range->Contains(*validation::ParseIPSloppy(c.first)));
    EXPECT_TRUE(range->Contains(*validation::ParseIPSloppy(c.last)));
    EXPECT_FALSE(range->Contains(*validation::ParseIPSloppy(range->network())));
  }
  EXPECT_FALSE(AddressRange::Parse("fd00::/63"));
  EXPECT_FALSE(AddressRange::Parse("10.0.0.0"));
  EXPECT_FALSE(AddressRange::Parse("10.0.0.0/24")->Contains(*validation::ParseIPSloppy("10.0.0.255")));
  EXPECT_TRUE(AddressRange::Parse("fd00::/64"));
}

TEST(AddressRange, CandidatesNameEveryAddressOnceTheBandLast) {
  for (const char* cidr : {"10.0.0.0/24", "10.0.0.0/28", "10.0.0.0/30", "fd00::/118"}) {
    SCOPED_TRACE(cidr);
    const auto range = *AddressRange::Parse(cidr);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto random = base::Seeded(seed);
      AddressRange::Candidates candidates(range, *random);
      std::set<std::string> seen;
      const auto upper = static_cast<std::size_t>(range.size() - range.static_band());
      std::set<std::string> band;
      for (AddressRange::Number i = 1; i <= range.static_band(); ++i) band.insert(range.AddressAt(i));
      while (auto ip = candidates.Next()) {
        EXPECT_EQ(band.contains(*ip), seen.size() >= upper);
        EXPECT_TRUE(range.Contains(*validation::ParseIPSloppy(*ip)));
        EXPECT_TRUE(seen.insert(*ip).second) << *ip;
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(range.size()));
    }
  }
}

class FakeAddresses final : public AddressObjects {
 public:
  std::mutex mutex;
  std::map<std::string, std::string> owners;
  Awaitable<meta::Result<void>> Create(std::string ip, bool, ServiceName service) override {
    std::lock_guard lock(mutex);
    if (!owners.emplace(ip, service.name).second)
      co_return meta::NewAlreadyExists({"networking.k8s.io", "ipaddresses"}, ip);
    co_return meta::Result<void>();
  }
  Awaitable<meta::Result<void>> Delete(std::string ip) override {
    std::lock_guard lock(mutex);
    owners.erase(ip);
    co_return meta::Result<void>();
  }
};

TEST(ClusterIPs, AllocationErrors) {
  auto objects = std::make_shared<FakeAddresses>();
  ClusterIPs ips(objects);
  EXPECT_EQ(async::RunNow(ips.Allocate("10.0.0.5", {"ns", "a"}, true)).error().message, "allocator not ready");
  EXPECT_EQ(async::RunNow(ips.Allocate("10.0.0.5", {"ns", "a"}, false)).error().message,
            "the provided network does not match the current range");
  EXPECT_TRUE(async::RunNow(ips.AllocateNext(true, {"ns", "a"}, false)).error().full);
  ips.SetServiceCIDR("kubernetes", {"10.0.0.0/24"}, false);
  EXPECT_TRUE(async::RunNow(ips.AllocateNext(true, {"ns", "a"}, false)).error().full);
  ips.SetServiceCIDR("kubernetes", {"10.0.0.0/24"}, true);
  EXPECT_TRUE(async::RunNow(ips.Allocate("10.0.0.5", {"ns", "a"}, true)).ok());
  EXPECT_TRUE(objects->owners.empty());
  EXPECT_TRUE(async::RunNow(ips.Allocate("10.0.0.5", {"ns", "a"}, false)).ok());
  EXPECT_EQ(async::RunNow(ips.Allocate("10.0.0.5", {"ns", "b"}, false)).error().message,
            "provided IP is already allocated");
  for (const char* outside : {"10.0.0.0", "10.0.0.255", "10.0.1.1"}) {
    EXPECT_EQ(async::RunNow(ips.Allocate(outside, {"ns", "a"}, true)).error().message,
              "the provided IP (" + std::string(outside) +
                  ") is not in the valid range. The range of valid IPs is 10.0.0.0/24");
    EXPECT_EQ(async::RunNow(ips.Allocate(outside, {"ns", "a"}, false)).error().message,
              "the provided network does not match the current range");
  }
  EXPECT_EQ(*async::RunNow(ips.AllocateNext(true, {"ns", "a"}, true)), "10.0.0.0");
  async::RunNow(ips.Release("10.0.0.5"));
  EXPECT_TRUE(async::RunNow(ips.Allocate("10.0.0.5", {"ns", "b"}, false)).ok());
  ips.RemoveServiceCIDR("kubernetes");
  EXPECT_TRUE(async::RunNow(ips.AllocateNext(true, {"ns", "a"}, false)).error().full);
}

// Two servers share the objects and nothing else.
TEST(ClusterIPs, RaceOfTwoServersGivesEveryAddressOnce) {
  auto objects = std::make_shared<FakeAddresses>();
  std::mutex mutex;
  std::multiset<std::string> given;
  int full = 0;
  std::vector<std::jthread> threads;
  for (int server = 0; server < 2; ++server) {
    auto ips = std::make_shared<ClusterIPs>(objects);
    ips->SetServiceCIDR("kubernetes", {"10.0.0.0/26"}, true);
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, ips] {
        for (int n = 0; n < 20; ++n) {
          auto ip = async::RunNow(ips->AllocateNext(true, {"ns", "s"}, false));
          std::lock_guard lock(mutex);
          ip.ok() ? void(given.insert(*ip)) : void(++full);
        }
      });
    }
  }
  threads.clear();
  EXPECT_EQ(given.size(), 62u);
  EXPECT_EQ(std::set<std::string>(given.begin(), given.end()).size(), 62u);
  EXPECT_EQ(full, 80 - 62);
}

TEST(PortBitmap, DataIsABigEndianNumber) {
  PortBitmap ports({30000, 40});
  EXPECT_EQ(ports.Data(), "");
  ports.Allocate(30000);
  EXPECT_EQ(ports.Data(), "\x01");
  ports.Allocate(30009);
  EXPECT_EQ(ports.Data(), std::string("\x02\x01", 2));
  EXPECT_EQ(PortBitmap::FromData({30000, 40}, ports.Data()).Ports(), (std::vector<int>{30000, 30009}));
  EXPECT_EQ(PortBitmap::FromData({30000, 8}, ports.Data()).Ports(), (std::vector<int>{30000}));
  EXPECT_EQ(ports.Allocate(30009), "provided port is already allocated");
  EXPECT_EQ(ports.Allocate(29999), "provided port is not in the valid range. The range of valid ports is 30000-30039");
}

TEST(PortBitmap, DynamicPortsLeaveTheBandUntilTheEnd) {
  const auto random = base::Seeded(7);
  PortBitmap ports({30000, 2768});  // band 86
  for (int i = 0; i < 2768; ++i) {
    const auto port = ports.AllocateNext(*random);
    ASSERT_TRUE(port);
    EXPECT_EQ(*port < 30086, i >= 2768 - 86);
  }
  EXPECT_FALSE(ports.AllocateNext(*random));
}

Awaitable<Outcome<std::vector<int>, std::string>> NoPorts() { co_return std::vector<int>(); }

TEST(NodePorts, RaceOfTwoServersGivesEveryPortOnce) {
  const auto kv = kv::memory::Open();
  const PortRange range{30000, 60};
  NodePorts first(*kv, "/registry/ranges/servicenodeports", range),
      second(*kv, "/registry/ranges/servicenodeports", range);
  const auto take = [](NodePorts& ports, int& got) {
    return ports.Apply([&](PortBitmap& bitmap) {
      const auto port = bitmap.AllocateNext(ports.random());
      got = port.value_or(0);
      return port ? std::string() : std::string("range is full");
    });
  };
  int none = 0;
  EXPECT_EQ(async::RunNow(take(first, none)),
            "cannot allocate resources of type servicenodeportallocations at this time");
  EXPECT_EQ(async::RunNow(first.Repair(NoPorts)), "");
  std::mutex mutex;
  std::multiset<int> given;
  int full = 0;
  {
    std::vector<std::jthread> threads;
    for (NodePorts* ports : {&first, &second, &first, &second}) {
      threads.emplace_back([&, ports] {
        for (int n = 0; n < 20; ++n) {
          int port = 0;
          const std::string error = async::RunNow(take(*ports, port));
          std::lock_guard lock(mutex);
          error.empty() ? void(given.insert(port)) : void(++full);
        }
      });
    }
  }
  EXPECT_EQ(given.size(), 60u);
  EXPECT_EQ(std::set<int>(given.begin(), given.end()).size(), 60u);
  EXPECT_EQ(full, 20);
  async::RunNow(second.Release({30003, 30004}));
  EXPECT_EQ(async::RunNow(first.Read())->Ports().size(), 58u);
}

TEST(NodePorts, RepairAddsWhatServicesUseAndFreesLeaksAfterAWhile) {
  const auto kv = kv::memory::Open();
  NodePorts ports(*kv, "/registry/ranges/servicenodeports", {30000, 60});
  const auto used = []() -> Awaitable<Outcome<std::vector<int>, std::string>> {
    co_return std::vector<int>{30001, 30001, 40000};
  };
  EXPECT_EQ(async::RunNow(ports.Repair(used)), "");
  EXPECT_EQ(async::RunNow(ports.Apply([](PortBitmap& bitmap) { return bitmap.Allocate(30005); })), "");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(async::RunNow(ports.Repair(used)), "");
    EXPECT_EQ(async::RunNow(ports.Read())->Ports(), (std::vector<int>{30001, 30005})) << round;
  }
  EXPECT_EQ(async::RunNow(ports.Repair(used)), "");
  EXPECT_EQ(async::RunNow(ports.Read())->Ports(), (std::vector<int>{30001}));
  NodePorts other(*kv, "/registry/ranges/servicenodeports", {31000, 60});
  EXPECT_EQ(async::RunNow(other.Repair(used)), "the provided port range does not match the current port range");
}

// ---- the hook around writes

class Services : public ::testing::Test {
 protected:
  explicit Services(std::vector<std::string_view> families = {"IPv4"}) : families_(std::move(families)) {
    objects_ = std::make_shared<FakeAddresses>();
    ips_ = std::make_shared<ClusterIPs>(objects_);
    ips_->SetServiceCIDR("kubernetes", {"10.0.0.0/24", "fd00::/112"}, true);
    ports_ = std::make_shared<NodePorts>(*kv_, "/registry/ranges/servicenodeports", PortRange{30000, 100});
    EXPECT_EQ(async::RunNow(ports_->Repair(NoPorts)), "");
    allocation_ = std::make_shared<ServiceAllocation>(families_, ips_, ports_);
    context_.info.name_space = "ns";
  }
  Value Parse(const char* json) {
    auto parsed = object::ParseJSON(context_.arena, json);
    EXPECT_TRUE(parsed) << json;
    return *parsed;
  }
  meta::Result<ServiceAllocation::Finish> Begin(Value service, Value old = {}, bool dry_run = false) {
    return async::RunNow(allocation_->BeginWrite(context_, service, old, dry_run));
  }
  void Write(Value service, Value old = {}) {
    auto finish = Begin(service, old);
    ASSERT_TRUE(finish.ok()) << finish.error().message();
    async::RunNow((*finish)(true));
  }
  std::size_t Addresses() { return objects_->owners.size(); }
  std::vector<int> Ports() { return async::RunNow(ports_->Read())->Ports(); }

  std::vector<std::string_view> families_;
  std::unique_ptr<kv::Store> kv_ = kv::memory::Open();
  std::shared_ptr<FakeAddresses> objects_;
  std::shared_ptr<ClusterIPs> ips_;
  std::shared_ptr<NodePorts> ports_;
  std::shared_ptr<ServiceAllocation> allocation_;
  request::Context context_;
};

class DualServices : public Services {
 protected:
  DualServices() : Services({"IPv4", "IPv6"}) {}
};

constexpr const char* kNodePort =
    R"({"metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80,"protocol":"TCP"},{"name":"u","port":80,"protocol":"UDP"}]}})";

TEST_F(Services, ProtocolsOfOnePortShareTheNodePort) {
  Value service = Parse(kNodePort);
  Write(service);
  EXPECT_EQ(Addresses(), 1u);
  ASSERT_EQ(Ports().size(), 1u);
  for (const Value port : service["spec"]["ports"].items()) EXPECT_EQ(port["nodePort"].as_int(), Ports().front());
  EXPECT_EQ(service["spec"]["clusterIP"].as_string(), service["spec"]["clusterIPs"][std::size_t{0}].as_string());
  async::RunNow(allocation_->ReleaseAll(service));
  EXPECT_EQ(Addresses(), 0u);
  EXPECT_TRUE(Ports().empty());
}

TEST_F(Services, FailedWriteReleasesItsAllocations) {
  auto finish = Begin(Parse(kNodePort));
  ASSERT_TRUE(finish.ok());
  EXPECT_EQ(Addresses(), 1u);
  async::RunNow((*finish)(false));
  EXPECT_EQ(Addresses(), 0u);
  EXPECT_TRUE(Ports().empty());
  // The address is given back also where the ports are refused.
  const auto refused =
      Begin(Parse(R"({"metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":99}]}})"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(),
            "Service \"a\" is invalid: spec.ports[0].nodePort: Invalid value: 99: provided port is not in the valid "
            "range. The range of valid "
            "ports is 30000-30099");
  EXPECT_EQ(Addresses(), 0u);
}

TEST_F(Services, DryRunAllocatesNothing) {
  Value service = Parse(kNodePort);
  auto finish = Begin(service, {}, true);
  ASSERT_TRUE(finish.ok());
  EXPECT_FALSE(*finish);
  EXPECT_EQ(Addresses(), 0u);
  EXPECT_TRUE(Ports().empty());
  EXPECT_EQ(service["spec"]["clusterIP"].as_string(), "10.0.0.0");
  EXPECT_EQ(service["spec"]["ports"][std::size_t{0}]["nodePort"].as_int(), 32769);
}

TEST_F(Services, TypeChangesReleaseAndTake) {
  Value service = Parse(kNodePort);
  Write(service);
  Value cluster = service.Clone(context_.arena);
  cluster["spec"].Set(context_.arena, "type", "ClusterIP");
  for (Value port : cluster["spec"]["ports"].items()) port.Erase("nodePort");
  Write(cluster, service);
  EXPECT_TRUE(Ports().empty());
  EXPECT_EQ(Addresses(), 1u);
  Value balancer = cluster.Clone(context_.arena);
  balancer["spec"].Set(context_.arena, "type", "LoadBalancer");
  balancer["spec"].Set(context_.arena, "externalTrafficPolicy", "Local");
  Write(balancer, cluster);
  EXPECT_EQ(Ports().size(), 3u);  // two ports and the health check's
  EXPECT_GT(balancer["spec"]["healthCheckNodePort"].as_int(), 0);
  Value name = Parse(R"({"metadata":{"name":"a"},"spec":{"type":"ExternalName","externalName":"example.com"}})");
  Write(name, balancer);
  EXPECT_TRUE(Ports().empty());
  EXPECT_EQ(Addresses(), 0u);
  Write(Parse(kNodePort), name);
  EXPECT_EQ(Addresses(), 1u);
}

TEST_F(Services, HeadlessServiceAllocatesNothing) {
  Value service =
      Parse(R"({"metadata":{"name":"a"},"spec":{"type":"ClusterIP","clusterIP":"None","selector":{"a":"b"}}})");
  Write(service);
  EXPECT_EQ(Addresses(), 0u);
  EXPECT_EQ(service["spec"]["ipFamilies"].size(), 1u);
}

TEST_F(DualServices, SingleToDualAndBack) {
  Value single = Parse(R"({"metadata":{"name":"a"},"spec":{"type":"ClusterIP","ports":[{"port":80}]}})");
  Write(single);
  EXPECT_EQ(Addresses(), 1u);
  Value dual = single.Clone(context_.arena);
  dual["spec"].Set(context_.arena, "ipFamilyPolicy", "RequireDualStack");
  Write(dual, single);
  EXPECT_EQ(Addresses(), 2u);
  EXPECT_EQ(dual["spec"]["clusterIPs"].size(), 2u);
  EXPECT_EQ(dual["spec"]["clusterIPs"][std::size_t{0}].as_string(), single["spec"]["clusterIP"].as_string());
  EXPECT_TRUE(validation::ParseIPSloppy(dual["spec"]["clusterIPs"][std::size_t{1}].as_string()) &&
              objects_->owners.contains(std::string(dual["spec"]["clusterIPs"][std::size_t{1}].as_string())));
  Value back = dual.Clone(context_.arena);
  back["spec"].Set(context_.arena, "ipFamilyPolicy", "SingleStack");
  Write(back, dual);
  EXPECT_EQ(Addresses(), 1u);
  EXPECT_EQ(back["spec"]["clusterIPs"].size(), 1u);
}

}  // namespace
}  // namespace keelson::controlplane
