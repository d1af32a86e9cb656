#include "controlplane/service_controller.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "async/deadlines.h"
#include "controlplane/bootstrap.h"
#include "patch/field_manager.h"
#include "registry/fields.h"
#include "schema/types.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

using registry::Text;

constexpr std::string_view kDefaultServiceCIDR = "kubernetes";
constexpr std::string_view kManagedBy = "ipaddress.kubernetes.io/managed-by";
constexpr std::string_view kFamily = "ipaddress.kubernetes.io/ip-family";
constexpr std::string_view kAllocatorName = "ipallocator.k8s.io";
constexpr std::string_view kServiceCIDRManager = "kubernetes-service-cidr-controller";
constexpr std::chrono::seconds kSyncInterval{10}, kRepairInterval{180}, kLeakGrace{60};
constexpr std::chrono::milliseconds kPoll{5};

void Fill(request::Context& context, const registry::Store& store, std::string_view verb, std::string_view name_space,
          std::string_view name) {
  context.info.verb = verb;
  context.info.name_space = name_space;
  context.info.name = name;
  context.info.api_group = store.options().resource.group;
  context.info.api_version = "v1";
  context.user = LoopbackUser();
}

bool IsReady(Value service_cidr) {
  if (service_cidr.Get("metadata", "deletionTimestamp").is_string()) return false;
  return std::ranges::any_of(service_cidr.Get("status", "conditions").items(), [](Value condition) {
    return Text(condition, "type") == "Ready" && Text(condition, "status") == "True";
  });
}

Awaitable<void> Sleep(async::Event& wake, std::chrono::nanoseconds time) {
  wake.Reset();
  const auto entry = async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + time, [&wake] { wake.Set(); });
  co_await wake.Wait();
}

// Calls `each` with every object, page by page.
Awaitable<std::string> ForEach(const registry::Store& store, std::function<Awaitable<std::string>(Value)> each) {
  auto list = co_await store.List("", {});
  if (!list.ok()) co_return list.error().message();
  for (const auto& object : list->items) {
    base::Arena arena;
    auto value = store.Decode(arena, object);
    if (!value.ok()) co_return value.error().message();
    if (std::string error = co_await each(*value); !error.empty()) co_return error;
  }
  co_return std::string();
}

}  // namespace

class ServiceController::StoredAddresses final : public AddressObjects {
 public:
  std::shared_ptr<registry::Store> store;

  Awaitable<meta::Result<void>> Create(std::string ip, bool ipv4, ServiceName service) override {
    request::Context context;
    Fill(context, *store, "create", "", ip);
    base::Arena& arena = context.arena;
    Value object = Value::Map(arena);
    object.Set(arena, "kind", "IPAddress");
    object.Set(arena, "apiVersion", "networking.k8s.io/v1");
    Value metadata = object.EnsureMap(arena, "metadata");
    metadata.Set(arena, "name", std::string_view(ip));
    Value labels = metadata.EnsureMap(arena, "labels");
    labels.Set(arena, kFamily, ipv4 ? "IPv4" : "IPv6");
    labels.Set(arena, kManagedBy, kAllocatorName);
    Value parent = object.EnsureMap(arena, "spec").EnsureMap(arena, "parentRef");
    parent.Set(arena, "resource", "services");
    parent.Set(arena, "namespace", std::string_view(service.name_space));
    parent.Set(arena, "name", std::string_view(service.name));
    TrackFields(context, *store, object, "kube-apiserver");
    auto created = co_await store->Create(context, object, nullptr, false);
    if (!created.ok()) co_return created.error();
    co_return meta::Result<void>();
  }

  Awaitable<meta::Result<void>> Delete(std::string ip) override {
    request::Context context;
    Fill(context, *store, "delete", "", ip);
    auto deleted = co_await store->Delete(context, "", ip, {}, nullptr);
    if (!deleted.ok() && deleted.error().reason() != meta::StatusReason::kNotFound) co_return deleted.error();
    co_return meta::Result<void>();
  }
};

ServiceController::ServiceController(kv::Store& kv, ServiceOptions options) : options_(std::move(options)) {
  addresses_ = std::make_shared<StoredAddresses>();
  ips_ = std::make_shared<ClusterIPs>(addresses_);
  ips_->SetSynced([this] { return HasSynced(); });
  ports_ = std::make_shared<NodePorts>(kv, options_.etcd_prefix + "/ranges/servicenodeports", options_.node_ports);
  std::vector<std::string_view> families;
  for (const std::string& cidr : options_.cidrs)
    families.push_back(cidr.find(':') == std::string::npos ? "IPv4" : "IPv6");
  allocation_ = std::make_shared<ServiceAllocation>(std::move(families), ips_, ports_, options_.address_rules);
}

ServiceController::~ServiceController() { Stop(); }

void ServiceController::Customize(registry::Store::Options& options) {
  if (!options.resource.group.empty() || options.resource.resource != "services") return;
  options.begin_write = [this](request::Context& context, Value service, Value old, bool dry_run) {
    return allocation_->BeginWrite(context, service, old, dry_run);
  };
  options.after_delete = [this](request::Context&, Value service) { return AfterDelete(service); };
}

Awaitable<void> ServiceController::AfterDelete(Value service) {
  const std::string name_space(service.Get("metadata", "namespace").as_string()),
      name(service.Get("metadata", "name").as_string());
  if (endpoints_) {
    request::Context context;
    Fill(context, *endpoints_, "delete", name_space, name);
    auto deleted = co_await endpoints_->Delete(context, name_space, name, {}, nullptr);
    if (!deleted.ok() && deleted.error().reason() != meta::StatusReason::kNotFound) {
      log::Error("Could not delete the endpoints of a service", "namespace", name_space, "name", name, "err",
                 deleted.error());
    }
  }
  co_await allocation_->ReleaseAll(service);
}

Awaitable<void> ServiceController::RepairAtStart() {
  co_await WaitUntilReady();
  if (const std::string error = co_await Repair(); !error.empty()) {
    log::Error("unable to perform initial IP and Port allocation check", "err", error);
  }
  repaired_ = true;
}

Awaitable<void> ServiceController::SyncKubernetesServiceAtStart() {
  async::Event tick;
  while (!repaired_ && !stopping_) co_await Sleep(tick, kPoll);
  if (!stopping_) co_await SyncKubernetesService();
}

void ServiceController::Install(server::GenericAPIServer& server, ResourceStorage& storage) {
  services_ = storage.Find("", "services");
  endpoints_ = storage.Find("", "endpoints");
  service_cidrs_ = storage.Find("networking.k8s.io", "servicecidrs");
  ip_addresses_ = storage.Find("networking.k8s.io", "ipaddresses");
  if (!services_ || !service_cidrs_ || !ip_addresses_) return;
  addresses_->store = ip_addresses_;
  informers_.push_back(std::make_unique<Informer>(service_cidrs_, [this](std::vector<Informer::Change>& changes) {
    for (const auto& change : changes) {
      const std::string name(change.object->attributes().name);
      if (change.deleted) {
        ips_->RemoveServiceCIDR(name);
        continue;
      }
      std::vector<std::string> cidrs;
      for (const Value cidr : change.value.Get("spec", "cidrs").items()) cidrs.emplace_back(cidr.as_string());
      const bool ready = IsReady(change.value);
      ips_->SetServiceCIDR(name, cidrs, ready);
      if (name == kDefaultServiceCIDR && ready) default_ready_ = true;
    }
  }));
  informers_.push_back(std::make_unique<Informer>(ip_addresses_, [this](std::vector<Informer::Change>& changes) {
    for (const auto& change : changes) ips_->SetAddress(std::string(change.object->attributes().name), !change.deleted);
  }));
  server.AddPostStartHook("start-kubernetes-service-cidr-controller", [this] { return SyncServiceCIDR(); });
  server.AddPostStartHook("start-service-ip-repair-controllers", [this] { return RepairAtStart(); });
  server.AddPostStartHook("bootstrap-controller", [this] { return SyncKubernetesServiceAtStart(); });
}

void ServiceController::Start(async::IOPool& io) {
  if (informers_.empty()) return;
  for (auto& informer : informers_) informer->Start(io.Next());
  done_ = asio::co_spawn(io.Next(), Run(), asio::use_future);
}

void ServiceController::Stop() {
  stopping_ = true;
  wake_.Set();
  for (auto& informer : informers_) informer->Stop();
  if (done_.valid()) done_.wait();
  done_ = {};
}

bool ServiceController::HasSynced() const {
  return !informers_.empty() &&
         std::ranges::all_of(informers_, [](const auto& informer) { return informer->HasSynced(); });
}

Awaitable<void> ServiceController::WaitUntilReady() {
  async::Event tick;
  while (!stopping_ && !(HasSynced() && default_ready_)) co_await Sleep(tick, kPoll);
}

Awaitable<void> ServiceController::Run() {
  auto next_repair = base::Clock::Real().Monotonic() + kRepairInterval;
  while (!stopping_) {
    co_await Sleep(wake_, kSyncInterval);
    if (stopping_) break;
    co_await SyncServiceCIDR();
    if (!repaired_) continue;
    co_await SyncKubernetesService();
    if (base::Clock::Real().Monotonic() < next_repair) continue;
    next_repair = base::Clock::Real().Monotonic() + kRepairInterval;
    if (const std::string error = co_await Repair(); !error.empty())
      log::Error("Could not repair the allocations of services", "err", error);
  }
}

Awaitable<void> ServiceController::SyncServiceCIDR() {
  request::Context context;
  Fill(context, *service_cidrs_, "patch", "", kDefaultServiceCIDR);
  base::Arena& arena = context.arena;
  Value wanted = Value::Map(arena);
  wanted.Set(arena, "kind", "ServiceCIDR");
  wanted.Set(arena, "apiVersion", "networking.k8s.io/v1");
  wanted.EnsureMap(arena, "metadata").Set(arena, "name", kDefaultServiceCIDR);
  Value cidrs = wanted.EnsureMap(arena, "spec").EnsureList(arena, "cidrs");
  for (const std::string& cidr : options_.cidrs) cidrs.Append(arena, std::string_view(cidr));
  const auto widen = [](base::Arena& arena, const Value& existing, const Value& wanted) -> registry::Reconciled {
    const Value had = existing["spec"]["cidrs"], now = wanted["spec"]["cidrs"];
    if (had.size() != 1 || now.size() != 2 || had[std::size_t{0}].as_string() != now[std::size_t{0}].as_string())
      return {};
    Value both = existing.Clone(arena);
    both["spec"].Set(arena, "cidrs", now);
    return {.action = registry::Reconciled::Action::kUpdate, .object = both};
  };
  co_await EnsureObject(service_cidrs_, wanted, widen);

  auto existing = co_await service_cidrs_->Get("", std::string(kDefaultServiceCIDR), "");
  if (!existing.ok()) co_return;
  auto object = service_cidrs_->Decode(arena, *existing);
  if (!object.ok() || object->Get("metadata", "deletionTimestamp").is_string()) co_return;
  const auto conditions = object->Get("status", "conditions").items();
  if (std::ranges::any_of(conditions,
                          [](Value c) { return Text(c, "type") == "Ready" && Text(c, "status") != "Unknown"; }))
    co_return;
  if (!(object->Get("spec", "cidrs") == cidrs)) {
    log::Warning("The default ServiceCIDR does not match --service-cluster-ip-range");
    co_return;
  }
  const std::string_view now = arena.Copy(registry::FormatTime(base::Clock::Real().Now()));
  Value config = Value::Map(arena);
  config.Set(arena, "kind", "ServiceCIDR");
  config.Set(arena, "apiVersion", "networking.k8s.io/v1");
  config.EnsureMap(arena, "metadata").Set(arena, "name", kDefaultServiceCIDR);
  Value condition = Value::Map(arena);
  condition.Set(arena, "type", "Ready");
  condition.Set(arena, "status", "True");
  condition.Set(arena, "lastTransitionTime", now);
  condition.Set(arena, "message", "Kubernetes default Service CIDR is ready");
  config.EnsureMap(arena, "status").EnsureList(arena, "conditions").Append(arena, condition);
  patch::FieldManager::Options options;
  options.kind = {"networking.k8s.io", "v1", "ServiceCIDR"};
  options.type = &schema::types::networking_v1::kServiceCIDR;
  options.subresource = "status";
  const auto& reset = service_cidrs_->strategy().status.reset_fields;
  options.reset_fields.assign(reset.begin(), reset.end());
  const patch::FieldManager manager(std::move(options));
  const auto apply = registry::UpdateBy([&](Value live) -> meta::Result<Value> {
    return manager.Apply(arena, live, config, kServiceCIDRManager, true, now);
  });
  registry::UpdateParameters parameters{.endpoint = {registry::Endpoint::Part::kStatus}};
  auto written =
      co_await service_cidrs_->Update(context, std::string(kDefaultServiceCIDR), apply, nullptr, nullptr, parameters);
  if (!written.ok()) log::Error("Could not set the status of the default ServiceCIDR", "err", written.error());
}

Awaitable<void> ServiceController::SyncKubernetesService() {
  base::Arena arena;
  Value service = Value::Map(arena);
  service.Set(arena, "kind", "Service");
  service.Set(arena, "apiVersion", "v1");
  Value metadata = service.EnsureMap(arena, "metadata");
  metadata.Set(arena, "name", "kubernetes");
  metadata.Set(arena, "namespace", "default");
  Value labels = metadata.EnsureMap(arena, "labels");
  labels.Set(arena, "component", "apiserver");
  labels.Set(arena, "provider", "kubernetes");
  Value spec = service.EnsureMap(arena, "spec");
  spec.Set(arena, "clusterIP", std::string_view(options_.kubernetes_ip));
  spec.Set(arena, "ipFamilyPolicy", "SingleStack");
  spec.Set(arena, "sessionAffinity", "None");
  spec.Set(arena, "type", options_.kubernetes_node_port > 0 ? "NodePort" : "ClusterIP");
  Value port = Value::Map(arena);
  port.Set(arena, "name", "https");
  port.Set(arena, "protocol", "TCP");
  port.Set(arena, "port", 443);
  port.Set(arena, "targetPort", Value(options_.secure_port));
  if (options_.kubernetes_node_port > 0) port.Set(arena, "nodePort", Value(options_.kubernetes_node_port));
  spec.EnsureList(arena, "ports").Append(arena, port);
  co_await EnsureObject(services_, service, nullptr);
}

namespace {

Awaitable<std::string> AddPorts(std::vector<int>& ports, Value service) {
  std::ranges::copy(ServiceNodePorts(service), std::back_inserter(ports));
  if (const auto health = service.Get("spec", "healthCheckNodePort").as_int(); health > 0)
    ports.push_back(static_cast<int>(health));
  co_return std::string();
}

Awaitable<Outcome<std::vector<int>, std::string>> UsedPorts(const registry::Store& services) {
  std::vector<int> ports;
  const std::string error = co_await ForEach(services, [&ports](Value service) { return AddPorts(ports, service); });
  if (!error.empty()) co_return error;
  co_return ports;
}

}  // namespace

Awaitable<std::string> ServiceController::Repair() {
  std::string error = co_await ports_->Repair([this] { return UsedPorts(*services_); });
  if (!error.empty()) co_return error;
  co_return co_await RepairAddresses();
}

Awaitable<std::string> ServiceController::RepairAddresses() {
  std::string error = co_await ForEach(*services_, [this](Value service) { return RepairService(service); });
  if (!error.empty()) co_return error;
  co_return co_await ForEach(*ip_addresses_, [this](Value address) { return RepairAddress(address); });
}

// Every address of a service has its object, which names the service.
Awaitable<std::string> ServiceController::RepairService(Value service) {
  const ServiceName name{.name_space = std::string(service.Get("metadata", "namespace").as_string()),
                         .name = std::string(service.Get("metadata", "name").as_string())};
  if (Text(service["spec"], "type") == "ExternalName") co_return std::string();
  for (const Value item : service.Get("spec", "clusterIPs").items()) {
    const std::string_view text = item.as_string();
    if (text == "None") co_return std::string();
    const auto ip = validation::ParseIPSloppy(text);
    if (!ip || !ips_->InAnyRange(*ip)) {
      log::Error("The cluster IP of a service is in no service CIDR; please recreate the service", "ip", text,
                 "namespace", name.name_space, "name", name.name);
      continue;
    }
    const std::string canonical = ip->ToString();
    auto existing = co_await ip_addresses_->Get("", canonical, "");
    if (existing.ok()) {
      base::Arena arena;
      auto address = ip_addresses_->Decode(arena, *existing);
      if (!address.ok()) co_return address.error().message();
      const Value parent = address->Get("spec", "parentRef"), labels = address->Get("metadata", "labels");
      const bool of_service = Text(parent, "group").empty() && Text(parent, "resource") == "services";
      const bool ours = Text(parent, "namespace") == name.name_space && Text(parent, "name") == name.name;
      const bool labeled =
          Text(labels, kManagedBy) == kAllocatorName && Text(labels, kFamily) == (ip->Is4() ? "IPv4" : "IPv6");
      if (of_service && ours && labeled) continue;
      if (of_service && !ours) {
        auto other =
            co_await services_->Get(std::string(Text(parent, "namespace")), std::string(Text(parent, "name")), "");
        if (other.ok()) {
          log::Error("A cluster IP was assigned to several services; please recreate the service", "ip", canonical,
                     "namespace", name.name_space, "name", name.name);
          continue;
        }
      }
      if (auto gone = co_await addresses_->Delete(canonical); !gone.ok()) co_return gone.error().message();
    } else if (existing.error().reason() != meta::StatusReason::kNotFound) {
      co_return existing.error().message();
    }
    log::Warning("The cluster IP of a service is not allocated; repairing", "ip", canonical, "namespace",
                 name.name_space, "name", name.name);
    auto created = co_await addresses_->Create(canonical, ip->Is4(), name);
    if (!created.ok() && created.error().reason() != meta::StatusReason::kAlreadyExists)
      co_return created.error().message();
  }
  co_return std::string();
}

// Every address object that we made belongs to a service that has the address; a young one may be of a service that is
// just being written.
Awaitable<std::string> ServiceController::RepairAddress(Value address) {
  const Value metadata = address["metadata"], parent = address.Get("spec", "parentRef");
  if (Text(metadata["labels"], kManagedBy) != kAllocatorName) co_return std::string();
  const std::string ip(Text(metadata, "name"));
  if (Text(parent, "group").empty() && Text(parent, "resource") == "services") {
    auto owner = co_await services_->Get(std::string(Text(parent, "namespace")), std::string(Text(parent, "name")), "");
    if (!owner.ok() && owner.error().reason() != meta::StatusReason::kNotFound) co_return owner.error().message();
    if (owner.ok()) {
      base::Arena arena;
      auto service = services_->Decode(arena, *owner);
      if (!service.ok()) co_return service.error().message();
      const auto ips = service->Get("spec", "clusterIPs").items();
      if (std::ranges::any_of(ips, [&](Value item) { return item.as_string() == ip; })) co_return std::string();
    }
    const auto made = registry::ParseTime(Text(metadata, "creationTimestamp"));
    if (made && base::Clock::Real().Now() - *made < kLeakGrace) co_return std::string();
  }
  log::Warning("An IPAddress appears to have leaked: cleaning up", "ip", ip);
  auto deleted = co_await addresses_->Delete(ip);
  co_return deleted.ok() ? std::string() : deleted.error().message();
}

}  // namespace keelson::controlplane
