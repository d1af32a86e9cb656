#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/testing/certificates.h"
#include "net/tls_client.h"
#include "net/tls_internal.h"
#include "net/tls_names.h"
#include "net/tls_server.h"

namespace keelson::net {
namespace {

using testing::Authority;
using testing::KeyPair;

// Two connected descriptors, with both handshakes driven to their end.
struct Handshaken {
  Handshaken(TLSServerContext& server_context, TLSClientContext& client_context, const std::string& name) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    server = server_context.Accept(fds[0]);
    client = client_context.Connect(fds[1], name);
    IOStatus server_status = IOStatus::kWouldBlock;
    IOStatus client_status = IOStatus::kWouldBlock;
    for (int i = 0; i < 20 && (server_status == IOStatus::kWouldBlock || client_status == IOStatus::kWouldBlock); ++i) {
      if (client_status == IOStatus::kWouldBlock) client_status = client->Handshake();
      if (server_status == IOStatus::kWouldBlock) server_status = server->Handshake();
    }
    ok = server_status == IOStatus::kOk && client_status == IOStatus::kOk;
    if (ok) server_state = server->TakeTLSState();
    if (ok) client_state = client->TakeTLSState();
  }
  ~Handshaken() {
    server.reset();
    client.reset();
    ::close(fds[0]);
    ::close(fds[1]);
  }
  int fds[2] = {-1, -1};
  std::unique_ptr<Transport> server;
  std::unique_ptr<Transport> client;
  bool ok = false;
  TLSState server_state;
  TLSState client_state;
};

std::shared_ptr<TLSServerContext> NewServer(TLSServerOptions options) {
  auto made = TLSServerContext::New(std::move(options));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return *made;
}
std::shared_ptr<TLSClientContext> NewClient(TLSClientOptions options) {
  auto made = TLSClientContext::New(options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return *made;
}
CertificateSource Source(const KeyPair& pair, std::vector<std::string> names = {}) {
  return {.cert_pem = pair.cert_pem, .key_pem = pair.key_pem, .names = std::move(names)};
}
std::string IssuedCommonName(const TLSState& state) {  // the subject is plain text inside the DER
  return state.peer_chain_der.empty() ? "" : state.peer_chain_der[0];
}
bool IsFor(const TLSState& state, std::string_view common_name) {
  return IssuedCommonName(state).find(common_name) != std::string::npos;
}

TEST(TLS, CarriesBytesAndClientCertificates) {
  Authority ca("test-ca");
  auto server = NewServer({.certificate = Source(ca.Issue("server", {"localhost"})), .client_ca_pem = ca.cert_pem()});
  const auto admin = ca.Issue("admin-user", {}, {"system:masters"});
  auto client =
      NewClient({.ca_pem = ca.cert_pem(), .client_cert_pem = admin.cert_pem, .client_key_pem = admin.key_pem});
  Handshaken pair(*server, *client, "localhost");
  ASSERT_TRUE(pair.ok);
  EXPECT_TRUE(pair.server_state.alpn_h2);
  EXPECT_EQ(pair.server_state.version, "TLSv1.3");
  EXPECT_TRUE(IsFor(pair.server_state, "admin-user"));
  const std::string text(100'000, 'x');
  std::string got;
  const std::string_view pieces[] = {"head ", text};
  ASSERT_EQ(pair.client->Write(pieces), IOStatus::kOk);
  char buffer[4096];
  while (got.size() < text.size() + 5) {
    (void)pair.client->Flush();
    std::size_t size = 0;
    const auto status = pair.server->Read(buffer, sizeof(buffer), &size);
    ASSERT_TRUE(status == IOStatus::kOk || status == IOStatus::kWouldBlock);
    got.append(buffer, size);
  }
  EXPECT_EQ(got, "head " + text);
}

TEST(TLS, ClientCertificatesAreOptionalAndNotVerified) {
  Authority ca("test-ca");
  Authority other("other-ca");
  auto server = NewServer({.certificate = Source(ca.Issue("server", {"localhost"})), .client_ca_pem = ca.cert_pem()});
  auto anonymous = NewClient({.ca_pem = ca.cert_pem()});
  Handshaken first(*server, *anonymous, "localhost");
  ASSERT_TRUE(first.ok);
  EXPECT_TRUE(first.server_state.peer_chain_der.empty());
  const auto stranger = other.Issue("stranger", {});
  auto unknown =
      NewClient({.ca_pem = ca.cert_pem(), .client_cert_pem = stranger.cert_pem, .client_key_pem = stranger.key_pem});
  Handshaken second(*server, *unknown, "localhost");
  ASSERT_TRUE(second.ok);
  EXPECT_TRUE(IsFor(second.server_state, "stranger"));  // judged above, not here
}

TEST(TLS, ClientsVerifyNameAndIssuer) {
  Authority ca("test-ca");
  Authority other("other-ca");
  auto server = NewServer({.certificate = Source(ca.Issue("server", {"localhost", "127.0.0.1"}))});
  struct Case {
    const char* name;
    const Authority& trusted;
    bool skip;
    bool want;
  };
  const Case kCases[] = {{"localhost", ca, false, true},     {"127.0.0.1", ca, false, true},
                         {"example.com", ca, false, false},  {"127.0.0.2", ca, false, false},
                         {"localhost", other, false, false}, {"example.com", other, true, true}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    auto client = NewClient({.ca_pem = c.trusted.cert_pem(), .insecure_skip_verify = c.skip});
    Handshaken pair(*server, *client, c.name);
    EXPECT_EQ(pair.ok, c.want);
  }
}

TEST(TLS, ChoosesCertificatesByServerName) {
  Authority ca("test-ca");
  TLSServerOptions options{.certificate = Source(ca.Issue("default-cert", {"localhost"}))};
  options.sni.push_back(Source(ca.Issue("wild-cert", {"*.example.com"})));
  options.sni.push_back(Source(ca.Issue("exact-cert", {"a.example.com"})));
  options.sni.push_back(Source(ca.Issue("explicit-cert", {"ignored.example.com"}), {"b.example.com", "10.0.0.1"}));
  options.sni.push_back(Source(ca.Issue("late-cert", {"b.example.com"})));
  auto server = NewServer(options);
  struct Case {
    const char* name;
    const char* want;
  };
  constexpr Case kCases[] = {{"localhost", "default-cert"},      {"x.example.com", "wild-cert"},
                             {"a.example.com", "exact-cert"},    {"A.Example.COM", "exact-cert"},
                             {"b.example.com", "explicit-cert"}, {"x.y.example.com", "default-cert"},
                             {"unknown.org", "default-cert"}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    auto client = NewClient({.insecure_skip_verify = true});
    Handshaken pair(*server, *client, c.name);
    ASSERT_TRUE(pair.ok);
    EXPECT_TRUE(IsFor(pair.client_state, c.want));
  }
}

TEST(TLS, ReloadsFilesForNewConnectionsOnly) {
  Authority ca("test-ca");
  const auto folder = std::filesystem::temp_directory_path() / ("keelson-tls-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string cert = folder / "tls.crt";
  const std::string key = folder / "tls.key";
  const auto write = [&](const KeyPair& pair) {
    std::ofstream(cert) << pair.cert_pem;
    std::ofstream(key) << pair.key_pem;
  };
  write(ca.Issue("first-cert", {"localhost"}));
  auto server = NewServer({.certificate = {.cert_file = cert, .key_file = key}});
  auto client = NewClient({.ca_pem = ca.cert_pem()});
  Handshaken before(*server, *client, "localhost");
  ASSERT_TRUE(before.ok);
  EXPECT_TRUE(IsFor(before.client_state, "first-cert"));

  EXPECT_FALSE(*server->Reload());  // nothing changed
  std::promise<std::string> changed;
  server->Follow(std::chrono::milliseconds(5), [&, first = true](const std::string& error) mutable {
    if (error.empty() && std::exchange(first, false)) changed.set_value(error);
  });
  write(ca.Issue("second-cert", {"localhost"}));
  EXPECT_EQ(changed.get_future().get(), "");
  Handshaken after(*server, *client, "localhost");
  ASSERT_TRUE(after.ok);
  EXPECT_TRUE(IsFor(after.client_state, "second-cert"));

  const std::string_view hello = "still here";  // on the connection from before
  ASSERT_EQ(before.client->Write({&hello, 1}), IOStatus::kOk);
  char buffer[64];
  std::size_t size = 0;
  ASSERT_EQ(before.server->Read(buffer, sizeof(buffer), &size), IOStatus::kOk);
  EXPECT_EQ(std::string_view(buffer, size), hello);

  std::ofstream(cert) << "garbage";
  EXPECT_FALSE(server->Reload().ok());
  Handshaken kept(*server, *client, "localhost");
  EXPECT_TRUE(kept.ok);
  server.reset();
  std::filesystem::remove_all(folder);
}

TEST(TLS, VersionsAndSuites) {
  Authority ca("test-ca");
  const auto pair = ca.Issue("server", {"localhost"});
  auto modern = NewServer({.certificate = Source(pair), .min_version = "VersionTLS13"});
  auto client = NewClient({.ca_pem = ca.cert_pem()});
  Handshaken first(*modern, *client, "localhost");
  EXPECT_EQ(first.server_state.version, "TLSv1.3");
  auto plain = NewServer({.certificate = Source(pair), .http2 = false});
  Handshaken second(*plain, *client, "localhost");
  ASSERT_TRUE(second.ok);
  EXPECT_FALSE(second.client_state.alpn_h2);
}

TEST(TLS, TicketsAreForClientsThatOfferToResume) {
  using std::string_view_literals::operator""sv;
  EXPECT_FALSE(OffersResumption("")) << "Go's client without a session cache";
  EXPECT_FALSE(OffersResumption("\0"sv));
  EXPECT_FALSE(OffersResumption("\1\0"sv)) << "psk_ke only";
  EXPECT_TRUE(OffersResumption("\1\1"sv));
  EXPECT_TRUE(OffersResumption("\2\0\1"sv));
  EXPECT_FALSE(OffersResumption("\1\0\1"sv)) << "beyond the length";
}

TEST(TLS, CipherAndVersionNamesEqualGo) {
  EXPECT_EQ(TLSVersion("x").error().message, "unknown tls version \"x\"");
  EXPECT_TRUE(TLSVersion("").ok());
  EXPECT_EQ(*CipherList({"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"}),
            "ECDHE-RSA-AES128-GCM-SHA256");
  EXPECT_EQ(*CipherList({"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"}), "ECDHE-RSA-CHACHA20-POLY1305");
  EXPECT_EQ(CipherList({"NONE"}).error().message, "Cipher suite NONE not supported or doesn't exist");
  EXPECT_EQ(*GroupList({29, 23, 4588}), "X25519:P-256");
  EXPECT_FALSE(GroupList({29, 29}).ok());
  EXPECT_FALSE(GroupList({70000}).ok());
  EXPECT_FALSE(GroupList({1}).ok());
}

TEST(TLS, GarbageEndsInAnErrorNotInACrash) {
  Authority ca("test-ca");
  auto server = NewServer({.certificate = Source(ca.Issue("server", {"localhost"}))});
  struct Case {
    std::string bytes;
    bool plain_http;
  };
  const Case kCases[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
      {std::string(300, '\0'), false},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(600, 'A'), false}};
  for (const Case& c : kCases) {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    auto transport = server->Accept(fds[0]);
    ASSERT_EQ(::write(fds[1], c.bytes.data(), c.bytes.size()), static_cast<ssize_t>(c.bytes.size()));
    EXPECT_EQ(transport->Handshake(), IOStatus::kError);
    EXPECT_FALSE(transport->error_text().empty());
    EXPECT_EQ(transport->plain_http_seen(), c.plain_http);
    ::close(fds[0]);
    ::close(fds[1]);
  }
}

}  // namespace
}  // namespace keelson::net
