#include "registry/certificates/x509.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace keelson::registry {
namespace {

std::string ReadFile(const std::string& name) {
  std::ifstream in("src/registry/certificates/x509_corpus/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(X509, Requests) {
  const std::string request = ReadFile("request");
  ASSERT_FALSE(request.empty());
  EXPECT_EQ(CertificateRequestProblem(request), "");
  EXPECT_EQ(CertificateRequestProblem("text before\n" + request + "text behind"), "");
  EXPECT_EQ(CertificateRequestProblem(""), "PEM block type must be CERTIFICATE REQUEST");
  EXPECT_EQ(CertificateRequestProblem(ReadFile("certificate")), "PEM block type must be CERTIFICATE REQUEST");
  EXPECT_NE(CertificateRequestProblem("-----BEGIN CERTIFICATE REQUEST-----\neA==\n-----END CERTIFICATE REQUEST-----\n"),
            "");
  std::string other = request;  // another signature
  const auto at = other.rfind("\n-----END") - 8;
  other[at] = other[at] == 'A' ? 'B' : 'A';
  EXPECT_NE(CertificateRequestProblem(other), "");
}

TEST(X509, Chains) {
  const std::string certificate = ReadFile("certificate");
  ASSERT_FALSE(certificate.empty());
  EXPECT_EQ(CertificateChainProblem(""), "");
  EXPECT_EQ(CertificateChainProblem(certificate + certificate), "");
  EXPECT_EQ(CertificateChainProblem("x"), "must contain at least one CERTIFICATE PEM block");
  EXPECT_EQ(CertificateChainProblem(ReadFile("request")),
            "only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\"");
  EXPECT_EQ(CertificateChainProblem(ReadFile("headers")), "no PEM block headers are permitted");
}

}  // namespace
}  // namespace keelson::registry
