// CertificateSubjectRestriction: nobody gets a client certificate of the group that may do everything by asking for it.
#include "admission/plugins/certificate_subject.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <limits>

#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
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

}  // namespace

std::optional<std::vector<std::string>> OrganizationsOf(std::string_view pem) {
  if (pem.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return std::nullopt;
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                      BIO_free);
  if (bio == nullptr) return std::nullopt;
  const std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)> request(
      PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr), X509_REQ_free);
  if (request == nullptr) return std::nullopt;
  std::vector<std::string> organizations;
  X509_NAME* const subject = X509_REQ_get_subject_name(request.get());
  for (int at = X509_NAME_get_index_by_NID(subject, NID_organizationName, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) {
    unsigned char* text = nullptr;
    const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) return std::nullopt;  // a name nobody can read is not let pass
    organizations.emplace_back(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
    OPENSSL_free(text);
  }
  return organizations;
}

std::unique_ptr<Plugin> NewCertificateSubjectRestriction(const PluginOptions&) {
  return std::make_unique<SimplePlugin>("CertificateSubjectRestriction",
                                        std::initializer_list<Operation>{Operation::kCreate}, nullptr, CheckSubject);
}

}  // namespace keelson::admission
