// deployments/scale and its kin.
#include "registry/autoscaling/rest/scale.h"
#include "controlplane/custom_routes.h"
#include "endpoints/column_descriptions.h"

namespace keelson::controlplane {

bool InstallScale(const ChainConfig& config, const schema::Resource& resource, const schema::Subresource& subresource,
                  std::shared_ptr<registry::Store> store, endpoints::APIGroupVersion& version) {
  using registry::autoscaling::SelectorForm;
  if (subresource.name != "scale") return false;
  static const registry::UpdateRules kScale{};  // the Scale's own are in its REST
  auto scope = NewSubresourceScope(config, resource, subresource, nullptr);
  const auto form = resource.plural == "replicationcontrollers" ? SelectorForm::kMap : SelectorForm::kLabelSelector;
  scope->rest = registry::autoscaling::NewScaleREST(std::move(store), form, *scope->type);
  scope->endpoint = {registry::Endpoint::Part::kOther, &kScale};
  const auto columns = registry::autoscaling::ScaleColumns();
  scope->columns.assign(columns.begin(), columns.end());
  for (schema::Column& column : scope->columns) {
    if (column.description.empty())
      column.description = endpoints::ColumnDescription("", "replicationcontrollers", column.name);
  }
  TrackSubresource(*scope);
  version.Add(resource.plural, subresource.name,
              endpoints::StoredSubresourceRoute(std::move(scope), subresource.verbs));
  return true;
}

}  // namespace keelson::controlplane
