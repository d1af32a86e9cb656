// The authorizer of --authorization-mode=Node. Identifies kubelets by user name and group; others get no opinion. Every
// refusal is "no opinion" with a reason, so that later authorizers may still allow. Thread safety: const members from
// any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "auth/authorizer.h"
#include "auth/node/graph.h"
#include "auth/rbac/rules.h"

namespace keelson::auth::node {

// The node of a kubelet's identity; none for other users. "" for `system:node:` without a name.
std::optional<std::string_view> NodeIdentity(const request::User& user);

class NodeAuthorizer final : public ImmediateAuthorizer, public RuleResolver {
 public:
  struct Options {
    std::shared_ptr<const Graph> graph;
    rbac::PolicyRules rules;  // of ClusterRole system:node
    bool service_account_get =
        true;                       // the gates KubeletServiceAccountTokenForCredentialProviders, PodCertificateRequest
    bool pod_certificates = false;  // the gate PodCertificateRequest
    bool selectors = true;          // the gate AuthorizeNodeWithSelectors
  };
  explicit NodeAuthorizer(Options options) : options_(std::move(options)) {}
  Authorization Decide(const Attributes& attributes) const override;
  ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override;

 private:
  Authorization AuthorizeResource(std::string_view node, const Attributes& attributes) const;
  Authorization AuthorizeStatic(const Attributes& attributes) const;
  Authorization AuthorizeReference(std::string_view node, ReferenceType type, const Attributes& attributes) const;
  Authorization AuthorizeGet(std::string_view node, ReferenceType type, const Attributes& attributes) const;
  Authorization AuthorizeRead(std::string_view node, ReferenceType type, const Attributes& attributes) const;
  Authorization AuthorizeClaim(std::string_view node, const Attributes& attributes) const;
  Authorization AuthorizeServiceAccount(std::string_view node, const Attributes& attributes) const;
  Authorization AuthorizeResourceSlice(std::string_view node, const Attributes& attributes) const;
  Authorization AuthorizePod(std::string_view node, const Attributes& attributes) const;
  Authorization AuthorizePodCertificateRequest(std::string_view node, const Attributes& attributes) const;

  Options options_;
};

}  // namespace keelson::auth::node
