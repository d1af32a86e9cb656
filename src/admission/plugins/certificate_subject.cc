// CertificateSubjectRestriction: refuses kubernetes.io/kube-apiserver-client requests for the group system:masters.
#include "admission/plugins/certificate_subject.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include <algorithm>

#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/pem.h"
#include "base/strings.h"
#include "request/user.h"

namespace keelson::admission {
namespace {

Task<void> CheckSubject(request::Context&, const Attributes& attributes) {
  if (!attributes.Is("certificates.k8s.io", "certificatesigningrequests") || !attributes.subresource.empty())
    co_return meta::Result<void>();
  if (attributes.object.Get("spec", "signerName").as_string() != "kubernetes.io/kube-apiserver-client")
    co_return meta::Result<void>();
  const auto pem = base::Base64Decode(attributes.object.Get("spec", "request").as_string());
  const auto organizations = pem ? OrganizationsOf(*pem) : std::nullopt;
  if (!organizations)
    co_return NewForbidden(attributes, "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST");
  if (std::ranges::find(*organizations, request::kSystemMasters) != organizations->end()) {
    co_return NewForbidden(
        attributes, "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed");
  }
  co_return meta::Result<void>();
}

// The values of one attribute in the subject of the first certificate request.
std::optional<std::vector<std::string>> SubjectTexts(std::string_view pem, int attribute) {
  // The first block as Go's pem.Decode finds it, because that is the one signers read.
  const auto block = base::DecodePEM(pem);
  if (!block || block->type != "CERTIFICATE REQUEST") return std::nullopt;
  const auto* data = reinterpret_cast<const unsigned char*>(block->bytes.data());
  const auto* const end = data + block->bytes.size();
  const std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)> request(
      d2i_X509_REQ(nullptr, &data, static_cast<long>(block->bytes.size())), X509_REQ_free);
  ERR_clear_error();
  if (request == nullptr || data != end) return std::nullopt;
  std::vector<std::string> texts;
  X509_NAME* const subject = X509_REQ_get_subject_name(request.get());
  for (int at = X509_NAME_get_index_by_NID(subject, attribute, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(subject, attribute, at)) {
    unsigned char* text = nullptr;
    const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) return std::nullopt;  // an unreadable name is refused
    texts.emplace_back(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
    OPENSSL_free(text);
  }
  return texts;
}

}  // namespace

std::optional<std::vector<std::string>> OrganizationsOf(std::string_view pem) {
  return SubjectTexts(pem, NID_organizationName);
}

std::optional<std::string> CommonNameOf(std::string_view pem) {
  const auto names = SubjectTexts(pem, NID_commonName);
  if (!names) return std::nullopt;
  return names->empty() ? std::string() : names->back();
}

std::unique_ptr<Plugin> NewCertificateSubjectRestriction(const PluginContext&) {
  return std::make_unique<SimplePlugin>("CertificateSubjectRestriction",
                                        std::initializer_list<Operation>{Operation::kCreate}, nullptr, CheckSubject);
}

}  // namespace keelson::admission
