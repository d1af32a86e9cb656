// CertificateApproval and CertificateSigning: permission to approve and sign requests of a signer.
#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

// `verb` on signers/<name>, or on <domain>/*.
Awaitable<bool> AllowedForSigner(ObjectReader& reader, const request::User& user, std::string verb,
                                 std::string signer) {
  if (co_await reader.Allowed(user, verb, "certificates.k8s.io", "signers", "", signer)) co_return true;
  const std::string domain = signer.substr(0, signer.find('/'));
  co_return co_await reader.Allowed(user, verb, "certificates.k8s.io", "signers", "", domain + "/*");
}

Task<void> Check(ObjectReader& reader, request::Context& context, const Attributes& attributes, std::string verb) {
  const std::string signer(attributes.old_object.Get("spec", "signerName").as_string());
  if (co_await AllowedForSigner(reader, *context.user, std::string(verb), signer)) co_return meta::Result<void>();
  co_return NewForbidden(
      attributes, "user not permitted to " + std::string(verb) + " requests with signerName " + base::GoQuote(signer));
}

// Only what the garbage collector and storage migration write differs (upstream's IsOnlyMutatingGCFields).
bool OnlyGCFieldsChange(base::Arena& arena, Value object, Value old) {
  const auto without = [&](Value value) {
    Value copy = value.Clone(arena);
    for (const std::string_view key : {"ownerReferences", "finalizers", "managedFields"}) copy["metadata"].Erase(key);
    return copy;
  };
  return without(object) == without(old);
}

Task<void> CheckAttest(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (!attributes.Is("certificates.k8s.io", "clustertrustbundles")) co_return meta::Result<void>();
  const std::string signer(attributes.object.Get("spec", "signerName").as_string());
  if (signer.empty()) co_return meta::Result<void>();
  if (attributes.operation == Operation::kUpdate &&
      OnlyGCFieldsChange(context.arena, attributes.object, attributes.old_object)) {
    co_return meta::Result<void>();
  }
  if (co_await AllowedForSigner(reader, *context.user, "attest", signer)) co_return meta::Result<void>();
  co_return NewForbidden(attributes, "user not permitted to attest for signerName " + base::GoQuote(signer));
}

}  // namespace

std::unique_ptr<Plugin> NewClusterTrustBundleAttest(const PluginContext& context) {
  SimplePlugin::ValidateFunc validate;
  if (context.FeatureEnabled("ClusterTrustBundle")) {
    validate = [reader = context.reader](request::Context& request, const Attributes& attributes) {
      return CheckAttest(*reader, request, attributes);
    };
  }
  return std::make_unique<SimplePlugin>("ClusterTrustBundleAttest",
                                        std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate},
                                        nullptr, std::move(validate));
}

namespace {

bool IsRequestPart(const Attributes& attributes, std::string_view subresource) {
  return attributes.Is("certificates.k8s.io", "certificatesigningrequests") && attributes.subresource == subresource;
}

Task<void> CheckApproval(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (!IsRequestPart(attributes, "approval")) co_return meta::Result<void>();
  co_return co_await Check(reader, context, attributes, "approve");
}

Task<void> CheckSigning(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (!IsRequestPart(attributes, "status")) co_return meta::Result<void>();
  const Value now = attributes.object["status"];
  const Value old = attributes.old_object["status"];
  if (now["certificate"] == old["certificate"] && now["conditions"] == old["conditions"])
    co_return meta::Result<void>();
  co_return co_await Check(reader, context, attributes, "sign");
}

}  // namespace

std::unique_ptr<Plugin> NewCertificateApproval(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "CertificateApproval", std::initializer_list<Operation>{Operation::kUpdate}, nullptr,
      [reader = options.reader](request::Context& context, const Attributes& attributes) {
        return CheckApproval(*reader, context, attributes);
      });
}

std::unique_ptr<Plugin> NewCertificateSigning(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "CertificateSigning", std::initializer_list<Operation>{Operation::kUpdate}, nullptr,
      [reader = options.reader](request::Context& context, const Attributes& attributes) {
        return CheckSigning(*reader, context, attributes);
      });
}

}  // namespace keelson::admission
