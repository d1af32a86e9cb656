#include "admission/plugins/certificate_subject.h"

#include <gtest/gtest.h>

namespace keelson::admission {
namespace {

// Subject O=a, O=system:masters, CN=x.
constexpr std::string_view kRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHtMIGTAgEAMDExCjAIBgNVBAoMAWExFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJz
MQowCAYDVQQDDAF4MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEORpq2E/Bpz55
uGU+6nzjHCgQGz0QgkOYxzG6ZCH/OCxyEMJXY0PlyEgUYXhrHPgXTMcTaySSo6x8
jV0iViNY0qAAMAoGCCqGSM49BAMCA0kAMEYCIQDB4/AsB2uYIjm0oNEVW7DQKSmf
/gkEPaku7yKdEl+XpAIhAM8BDPoX/IpWOzrupwshWcWJZxxofbeZCMOKI2Tu+gbN
-----END CERTIFICATE REQUEST-----
)";

TEST(CertificateSubject, AllOrganizationsAreRead) {
  EXPECT_EQ(OrganizationsOf(kRequest), (std::vector<std::string>{"a", "system:masters"}));
  EXPECT_EQ(OrganizationsOf(std::string("leading text\n") + std::string(kRequest)),
            (std::vector<std::string>{"a", "system:masters"}));
}

TEST(CertificateSubject, InvalidRequestsAreRefused) {
  EXPECT_EQ(OrganizationsOf(""), std::nullopt);
  EXPECT_EQ(OrganizationsOf(kRequest.substr(0, kRequest.size() / 2)), std::nullopt);
}

}  // namespace
}  // namespace keelson::admission
