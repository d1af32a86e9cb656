#include "app/controllers_setup.h"

#include <unistd.h>

#include <utility>

#include "app/files.h"
#include "base/random.h"
#include "controllers/metadata_codec.h"
#include "registry/resource_definition.h"

namespace keelson::app {
namespace {

std::string Identity() {
  char hostname[256] = {};
  gethostname(hostname, sizeof(hostname) - 1);
  return std::string(hostname) + "_" + base::Random::Real().UUID();
}

// The CA bundle for clients of the serving certificate: our authority, or else the certificate itself with its chain.
std::string RootCAFile(const CompletedOptions& completed, const DataDir* folder) {
  if (completed.own_serving_cert && folder != nullptr) return folder->pki_path() + "/ca.crt";
  return completed.options.secure_serving.cert_file;
}

std::shared_ptr<registry::Store> MetadataStore(controlplane::ResourceStorage& storage,
                                               const meta::GroupResource& resource, bool namespaced) {
  registry::ResourceDefinition definition;
  definition.resource = resource;
  definition.namespaced = namespaced;
  definition.versions.emplace_back();
  definition.layout = storage::CustomResourceLayout(resource, "");
  return storage.NewView(definition, controllers::NewMetadataCodec(resource));
}

}  // namespace

Outcome<std::unique_ptr<controllers::EmbeddedControllers>, Error> MakeControllers(
    const CompletedOptions& completed, const DataDir* folder, async::IOPool& io, server::Serving& serving,
    controlplane::ResourceStorage& storage, telemetry::MetricsRegistry& metrics, FollowedFiles& followed) {
  std::unique_ptr<controllers::EmbeddedControllers> none;
  if (completed.options.keelson.embedded_controllers != "on") return none;
  const std::string file = RootCAFile(completed, folder);
  KS_TRY(std::string root_ca, ReadSmallFile(file));
  controllers::EmbeddedControllers::Options options;
  options.executor = io.Next();
  options.controllers = completed.options.keelson.controllers;
  options.sole_server = completed.embedded && completed.options.keelson.serve_etcd_api.empty();
  options.identity = Identity();
  options.version = completed.reported_version;
  options.in_process = [&serving](request::User user) { return serving.InProcessHandler(std::move(user)); };
  options.find_store = [&storage](std::string_view group, std::string_view resource) {
    return storage.Find(group, resource);
  };
  options.metadata_store = [&storage](const std::string& group, const std::string& resource, bool namespaced) {
    return MetadataStore(storage, {group, resource}, namespaced);
  };
  options.metrics = &metrics;
  options.root_ca = root_ca;
  auto made = std::make_unique<controllers::EmbeddedControllers>(std::move(options));
  // As kube-controller-manager's /healthz, which has a check per controller. Not on /livez and /readyz: the API works
  // without them.
  for (auto& check : made->HealthChecks()) {
    serving.health().Add(std::string(check.controller), std::move(check.problem),
                         {.healthz = true, .livez = false, .readyz = false});
  }
  followed.Add(file, std::move(root_ca), [running = made.get()](const std::string& text) {
    running->SetRootCA(text);
    return Taken::kLoaded;
  });
  return made;
}

std::unique_ptr<controllers::CoordinatedLeaderElection> MakeLeaderElection(const CompletedOptions& completed,
                                                                           async::IOPool& io, server::Serving& serving,
                                                                           controlplane::ResourceStorage& storage,
                                                                           telemetry::MetricsRegistry& metrics) {
  if (!completed.features.Enabled("CoordinatedLeaderElection")) return nullptr;
  const ExtraOptions& extra = completed.options.extra;
  return std::make_unique<controllers::CoordinatedLeaderElection>(controllers::CoordinatedLeaderElection::Options{
      .executor = io.Next(),
      .identity = Identity(),
      .version = completed.reported_version,
      .in_process = [&serving](request::User user) { return serving.InProcessHandler(std::move(user)); },
      .find_store = [&storage](std::string_view group,
                               std::string_view resource) { return storage.Find(group, resource); },
      .metrics = &metrics,
      .lease_duration = extra.coordinated_leadership_lease_duration,
      .renew_deadline = extra.coordinated_leadership_renew_deadline,
      .retry_period = extra.coordinated_leadership_retry_period,
      .collect_period = completed.options.keelson.lease_candidate_gc_period});
}

}  // namespace keelson::app
