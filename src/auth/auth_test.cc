#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "async/testing/run_now.h"
#include "auth/authenticator.h"
#include "auth/authorizer.h"
#include "auth/certificate_verifier.h"
#include "auth/subject.h"

namespace keelson::auth {
namespace {

using async::RunNow;

struct KeyPair {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  ~KeyPair() { EVP_PKEY_free(key); }
};

// A certificate for `common_name`, signed by `issuer` (itself when null); `usage` is the extended key usage, "" for
// none.
X509* Make(const KeyPair& key, const std::string& common_name, const std::string& organization, X509* issuer,
           const KeyPair& signer, const char* usage, bool ca) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 7);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key.key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(organization.c_str()), -1,
                             -1, 0);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                             -1, 0);
  X509_set_issuer_name(certificate, issuer == nullptr ? name : X509_get_subject_name(issuer));
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer == nullptr ? certificate : issuer, certificate, nullptr, nullptr, 0);
  const auto extend = [&](int nid, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  };
  if (ca) extend(NID_basic_constraints, "critical,CA:TRUE");
  if (*usage != 0) extend(NID_ext_key_usage, usage);
  X509_sign(certificate, signer.key, EVP_sha256());
  return certificate;
}

std::string DER(X509* certificate) {
  unsigned char* data = nullptr;
  const int size = i2d_X509(certificate, &data);
  std::string out(reinterpret_cast<char*>(data), static_cast<std::size_t>(size));
  OPENSSL_free(data);
  return out;
}

std::string PEM(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return out;
}

http::Request RequestWith(const std::string& der) {
  http::Request request;
  auto peer = std::make_shared<http::PeerCertificate>();
  peer->chain_der.push_back(der);
  request.peer = peer;
  return request;
}

TEST(X509Authenticator, TakesNameAndGroupsFromAVerifiedCertificate) {
  const KeyPair ca_key, other_key, leaf_key;
  X509* ca = Make(ca_key, "ca", "x", nullptr, ca_key, "", true);
  X509* other = Make(other_key, "other", "x", nullptr, other_key, "", true);
  X509* good = Make(leaf_key, "alice", "dev", ca, ca_key, "clientAuth", false);
  X509* foreign = Make(leaf_key, "alice", "system:masters", other, other_key, "clientAuth", false);
  X509Authenticator authenticator;
  ASSERT_NE(authenticator.SetCA("nothing"), "");
  ASSERT_EQ(authenticator.SetCA(PEM(ca)), "");
  for (int i = 0; i < 2; ++i) {
    const auto request = RequestWith(DER(good));
    const auto result = authenticator.Authenticate(request);
    ASSERT_TRUE(result.user) << result.Error();
    EXPECT_EQ(result.user->name, "alice");
    EXPECT_EQ(result.user->groups, (std::vector<std::string>{"dev", "system:authenticated"}));
  }
  const auto refused = authenticator.Authenticate(RequestWith(DER(foreign)));
  EXPECT_FALSE(refused.user);
  EXPECT_FALSE(refused.Error().empty());
  const http::Request without;
  EXPECT_TRUE(authenticator.Authenticate(without).errors.empty());
  for (X509* certificate : {ca, other, good, foreign}) X509_free(certificate);
}

TEST(CertificateVerifier, ChainIsVerifiedOnceForAllConnections) {
  const KeyPair ca_key, other_key, leaf_key;
  X509* ca = Make(ca_key, "ca", "x", nullptr, ca_key, "", true);
  X509* other = Make(other_key, "other", "x", nullptr, other_key, "", true);
  X509* good = Make(leaf_key, "alice", "dev", ca, ca_key, "clientAuth", false);
  X509* foreign = Make(leaf_key, "alice", "dev", other, other_key, "clientAuth", false);
  CertificateVerifier verifier;
  ASSERT_EQ(verifier.SetCA(PEM(ca)), "");
  for (int i = 0; i < 3; ++i) {
    const auto request = RequestWith(DER(good));  // a new connection each
    for (int j = 0; j < 2; ++j) EXPECT_TRUE(verifier.Verify(request.peer).ok());
  }
  EXPECT_EQ(verifier.chains_verified(), 1u);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(verifier.Verify(RequestWith(DER(foreign)).peer).ok());
  EXPECT_EQ(verifier.chains_verified(), 2u);
  ASSERT_EQ(verifier.SetCA(PEM(other)), "");  // another bundle: nothing that was found out counts
  EXPECT_FALSE(verifier.Verify(RequestWith(DER(good)).peer).ok());
  EXPECT_TRUE(verifier.Verify(RequestWith(DER(foreign)).peer).ok());
  EXPECT_EQ(verifier.chains_verified(), 4u);
  for (X509* certificate : {ca, other, good, foreign}) X509_free(certificate);
}

// Each row was verified on kube-apiserver v1.36.3.
TEST(X509Authenticator, KeyUsagesAreCheckedAsInGo) {
  struct Case {
    const char* name;
    const char* intermediate;  // its extended key usages; null: there is none
    const char* usage;         // of the leaf
    bool leaf_is_ca;
    bool accepted;
  };
  constexpr Case kCases[] = {
      {"for clients", nullptr, "clientAuth", false, true},
      {"for both", nullptr, "serverAuth,clientAuth", false, true},
      {"for anything", nullptr, "anyExtendedKeyUsage", false, true},
      {"says nothing", nullptr, "", false, true},
      {"says nothing and may sign", nullptr, "", true, true},
      {"for servers", nullptr, "serverAuth", false, false},
      {"for code", nullptr, "codeSigning", false, false},
      {"for something unknown", nullptr, "1.2.3.4.5", false, false},
      {"through an intermediate", "", "", false, true},
      {"through an intermediate for servers", "serverAuth", "clientAuth", false, false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const KeyPair ca_key, middle_key, leaf_key;
    X509* ca = Make(ca_key, "ca", "x", nullptr, ca_key, "", true);
    X509* middle = c.intermediate == nullptr ? nullptr : Make(middle_key, "m", "x", ca, ca_key, c.intermediate, true);
    X509* leaf = Make(leaf_key, "alice", "dev", middle == nullptr ? ca : middle,
                      middle == nullptr ? ca_key : middle_key, c.usage, c.leaf_is_ca);
    auto peer = std::make_shared<http::PeerCertificate>();
    peer->chain_der.push_back(DER(leaf));
    if (middle != nullptr) peer->chain_der.push_back(DER(middle));
    http::Request request;
    request.peer = peer;
    X509Authenticator authenticator;
    ASSERT_EQ(authenticator.SetCA(PEM(ca)), "");
    const auto result = authenticator.Authenticate(request);
    EXPECT_EQ(result.user.has_value(), c.accepted) << result.Error();
    if (!c.accepted) {
      EXPECT_TRUE(result.Error().ends_with("x509: certificate specifies an incompatible key usage")) << result.Error();
    }
    for (X509* certificate : {ca, middle, leaf}) X509_free(certificate);
  }
}

// Go's crypto/x509 and crypto/rsa refuse these.
TEST(X509Authenticator, RefusesWeakSignaturesAndKeys) {
  struct Case {
    const char* name;
    EVP_PKEY* ca_key;
    EVP_PKEY* leaf_key;
    const EVP_MD* digest;
    bool accepted;
  };
  const Case kCases[] = {
      {"SHA-256", EVP_RSA_gen(2048), EVP_EC_gen("P-256"), EVP_sha256(), true},
      {"SHA-1", EVP_RSA_gen(2048), EVP_EC_gen("P-256"), EVP_sha1(), false},
      {"MD5", EVP_RSA_gen(2048), EVP_EC_gen("P-256"), EVP_md5(), false},
      {"ECDSA with SHA-1", EVP_EC_gen("P-256"), EVP_EC_gen("P-256"), EVP_sha1(), false},
      {"RSA key of 1,024 bits", EVP_RSA_gen(2048), EVP_RSA_gen(1024), EVP_sha256(), true},
      {"RSA key of 512 bits", EVP_RSA_gen(2048), EVP_RSA_gen(512), EVP_sha256(), false},
      {"authority with an RSA key of 768 bits", EVP_RSA_gen(768), EVP_EC_gen("P-256"), EVP_sha256(), false},
      {"another curve", EVP_EC_gen("P-256"), EVP_EC_gen("secp256k1"), EVP_sha256(), false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    KeyPair ca_key, leaf_key;
    std::swap(ca_key.key, const_cast<Case&>(c).ca_key);
    std::swap(leaf_key.key, const_cast<Case&>(c).leaf_key);
    X509* ca = Make(ca_key, "ca", "x", nullptr, ca_key, "", true);
    X509* leaf = Make(leaf_key, "alice", "dev", ca, ca_key, "clientAuth", false);
    X509_sign(leaf, ca_key.key, c.digest);
    X509Authenticator authenticator;
    ASSERT_EQ(authenticator.SetCA(PEM(ca)), "");
    EXPECT_EQ(authenticator.Authenticate(RequestWith(DER(leaf))).user.has_value(), c.accepted);
    for (X509* certificate : {ca, leaf}) X509_free(certificate);
    EVP_PKEY_free(c.ca_key);
    EVP_PKEY_free(c.leaf_key);
  }
}

TEST(RequestHeader, FrontProxyWithAllowedNameIsTrusted) {
  const KeyPair ca_key, other_key, leaf_key;
  X509* ca = Make(ca_key, "ca", "x", nullptr, ca_key, "", true);
  X509* other = Make(other_key, "other", "x", nullptr, other_key, "", true);
  X509* proxy = Make(leaf_key, "front-proxy", "x", ca, ca_key, "clientAuth", false);
  X509* unnamed = Make(leaf_key, "", "x", ca, ca_key, "clientAuth", false);
  X509* foreign = Make(leaf_key, "front-proxy", "x", other, other_key, "clientAuth", false);
  const auto make = [](std::vector<std::string> names) {
    return RequestHeaderAuthenticator({.allowed_names = std::move(names),
                                       .username_headers = {"X-Remote-User", "X-Other"},
                                       .uid_headers = {"X-Remote-Uid"},
                                       .group_headers = {"X-Remote-Group"},
                                       .extra_header_prefixes = {"X-Remote-Extra-"}});
  };
  struct Case {
    const char* name;
    X509* certificate;  // null: none
    std::vector<std::string> allowed;
    std::vector<std::pair<std::string, std::string>> headers;
    const char* user;   // "" for no user
    const char* error;  // a part of it
  };
  const Case kCases[] = {
      {"named", proxy, {"front-proxy"}, {{"x-remote-user", "alice"}}, "alice", ""},
      {"the first header that has a value", proxy, {}, {{"X-Remote-User", ""}, {"X-Other", "bob"}}, "bob", ""},
      {"any name", unnamed, {}, {{"X-Remote-User", "alice"}}, "alice", ""},
      {"nobody named", proxy, {"front-proxy"}, {}, "", ""},
      {"another name",
       proxy,
       {"else"},
       {{"X-Remote-User", "a"}},
       "",
       "x509: subject with cn=front-proxy is not in the"},
      {"another authority", foreign, {}, {{"X-Remote-User", "alice"}}, "", "verifying certificate SN=7, SKID="},
      {"no certificate", nullptr, {}, {{"X-Remote-User", "alice"}}, "", ""},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    RequestHeaderAuthenticator authenticator = make(c.allowed);
    ASSERT_EQ(authenticator.SetCA(PEM(ca)), "");
    http::Request request = c.certificate == nullptr ? http::Request() : RequestWith(DER(c.certificate));
    for (const auto& [name, value] : c.headers) request.headers.Add(name, value);
    const auto result = authenticator.Authenticate(request);
    EXPECT_EQ(result.user ? result.user->name : "", c.user);
    EXPECT_NE(result.Error().find(c.error), std::string::npos) << result.Error();
    EXPECT_EQ(result.Error().empty(), *c.error == 0);
  }
  RequestHeaderAuthenticator authenticator = make({});
  ASSERT_EQ(authenticator.SetCA(PEM(ca)), "");
  http::Request request = RequestWith(DER(proxy));
  for (const auto& [name, value] : {std::pair{"X-Remote-User", "alice"},
                                    {"X-Remote-Uid", "u"},
                                    {"X-Remote-Group", "a"},
                                    {"x-remote-group", ""},
                                    {"x-remote-group", "b"},
                                    {"X-Remote-Extra-Acme.com%2FX", "1"},
                                    {"X-Remote-Extra-acme.com%2fx", "2"},
                                    {"X-Remote-Extra-Bad%zz", "3"}}) {
    request.headers.Add(name, value);
  }
  const auto result = authenticator.Authenticate(request);
  ASSERT_TRUE(result.user);
  EXPECT_EQ(result.user->uid, "u");
  EXPECT_EQ(result.user->groups, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(result.user->extra, (std::vector<std::pair<std::string, std::vector<std::string>>>{
                                    {"acme.com/x", {"1", "2"}}, {"bad%zz", {"3"}}}));
  // Another bundle counts at once, also for a connection that was believed.
  ASSERT_EQ(authenticator.SetCA(PEM(other)), "");
  EXPECT_FALSE(authenticator.Authenticate(request).user);
  for (X509* certificate : {ca, other, proxy, unnamed, foreign}) X509_free(certificate);
}

TEST(Subject, FromUserName) {
  using Strings = std::vector<std::string>;
  struct Case {
    const char* user;
    Subject::Kind kind;
    const char* resource;
    const char* name_space;
    const char* name;
    Strings groups;
  };
  const Case cases[] = {
      {"alice", Subject::Kind::kUser, "users", "", "alice", {}},
      {"system:node:n1.example", Subject::Kind::kNode, "nodes", "", "n1.example", {"system:nodes"}},
      {"system:node:N1", Subject::Kind::kUser, "users", "", "system:node:N1", {}},
      {"system:node:", Subject::Kind::kUser, "users", "", "system:node:", {}},
      {"system:serviceaccount:a:b",
       Subject::Kind::kServiceAccount,
       "serviceaccounts",
       "a",
       "b",
       {"system:serviceaccounts", "system:serviceaccounts:a"}},
      {"system:serviceaccount:a", Subject::Kind::kUser, "users", "", "system:serviceaccount:a", {}},
      {"system:serviceaccount:a:b:c", Subject::Kind::kUser, "users", "", "system:serviceaccount:a:b:c", {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.user);
    const Subject subject = SubjectOf(c.user);
    EXPECT_EQ(subject.kind, c.kind);
    EXPECT_EQ(subject.resource, c.resource);
    EXPECT_EQ(subject.name_space, c.name_space);
    EXPECT_EQ(subject.name, c.name);
    EXPECT_EQ(subject.groups, c.groups);
  }
}

TEST(Authorizers, SystemMastersAreAllowedEverything) {
  std::vector<std::shared_ptr<Authorizer>> members;
  members.push_back(std::make_shared<PrivilegedGroupAuthorizer>("system:masters"));
  UnionAuthorizer all(std::move(members));
  EXPECT_EQ(RunNow(all.Authorize({.user = request::User{.name = "a", .groups = {"system:masters"}}})).decision,
            Decision::kAllow);
  EXPECT_EQ(RunNow(all.Authorize({.user = request::User{.name = "a", .groups = {"x"}}})).decision,
            Decision::kNoOpinion);
}

TEST(Authorizers, ForbiddenText) {
  EXPECT_EQ(ForbiddenMessage({.user = request::User{.name = "bob"},
                              .verb = "get",
                              .resource_request = true,
                              .resource = "pods",
                              .name_space = "default"},
                             ""),
            R"(User "bob" cannot get resource "pods" in API group "" in the namespace "default")");
  EXPECT_EQ(ForbiddenMessage({.user = request::User{.name = "b<o"}, .verb = "get", .path = "/x"}, "why"),
            R"(User "b&lt;o" cannot get path "/x": why)");
}

}  // namespace
}  // namespace keelson::auth
