#include "controlplane/admission_permissions.h"

#include <algorithm>

#include "schema/schema.h"

namespace keelson::controlplane {
namespace {

// meta.UnsafeGuessKindToResource: the plural that nearly every kind has.
std::string GuessPlural(std::string kind) {
  std::ranges::transform(kind, kind.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (kind == "endpoints") return kind;
  if (kind.ends_with('s')) return kind + "es";
  if (kind.ends_with('y')) return kind.substr(0, kind.size() - 1) + "ies";
  return kind + "s";
}

class AdmissionPermissions final : public admission::Permissions {
 public:
  AdmissionPermissions(const ResourceStorage& storage, std::shared_ptr<auth::Authorizer> authorizer)
      : storage_(storage), authorizer_(std::move(authorizer)) {}

  Awaitable<admission::Permission> Permitted(request::User user, admission::PermissionQuestion question) override {
    const auth::Attributes attributes{.user = std::move(user),
                                      .verb = std::move(question.verb),
                                      .resource_request = true,
                                      .api_group = std::move(question.resource.group),
                                      .api_version = std::move(question.resource.version),
                                      .resource = std::move(question.resource.resource),
                                      .subresource = std::move(question.subresource),
                                      .name_space = std::move(question.name_space),
                                      .name = std::move(question.name)};
    auth::Authorization answer = co_await authorizer_->Authorize(attributes);
    co_return admission::Permission{.allowed = answer.decision == auth::Decision::kAllow,
                                    .reason = std::move(answer.reason),
                                    .error = std::move(answer.error)};
  }

  std::vector<admission::RESTMapping> RESTMappings(const meta::GroupVersionKind& kind) const override {
    const std::string plural = GuessPlural(kind.kind);
    const auto store = storage_.Find(kind.group, plural);
    if (!store || store->options().kind.kind != kind.kind) return {};
    const auto built_in = storage_.catalog().Find(kind.group, plural);
    if (built_in && built_in->FindVersion(kind.group, kind.version) == nullptr) return {};
    return {{.resource = {kind.group, kind.version, plural}, .namespaced = store->options().namespaced}};
  }

 private:
  const ResourceStorage& storage_;
  std::shared_ptr<auth::Authorizer> authorizer_;
};

}  // namespace

std::unique_ptr<admission::Permissions> NewAdmissionPermissions(const ResourceStorage& storage,
                                                                std::shared_ptr<auth::Authorizer> authorizer) {
  return std::make_unique<AdmissionPermissions>(storage, std::move(authorizer));
}

}  // namespace keelson::controlplane
