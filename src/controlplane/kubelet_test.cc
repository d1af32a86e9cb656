#include "controlplane/kubelet.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "net/listener.h"

namespace keelson::controlplane {
namespace {

TEST(IsProxyableIP, AsGosIsGlobalUnicast) {
  struct Case {
    const char* address;
    bool want;
  };
  constexpr Case kCases[] = {
      {"10.0.0.1", true},         {"192.168.1.1", true},
      {"8.8.8.8", true},          {"2001:db8::1", true},
      {"fd00::1", true},          {"127.0.0.1", false},
      {"127.9.9.9", false},       {"::1", false},
      {"0.0.0.0", false},         {"::", false},
      {"169.254.169.254", false}, {"fe80::1", false},
      {"224.0.0.1", false},       {"ff02::1", false},
      {"255.255.255.255", false}, {"::ffff:127.0.0.1", false},
      {"::ffff:10.0.0.1", true},  {"::ffff:169.254.1.1", false},
      {"localhost", false},       {"", false},
  };
  for (const Case& c : kCases) EXPECT_EQ(IsProxyableIP(c.address), c.want) << c.address;
}

Awaitable<std::string> ErrorOf(std::shared_ptr<proxy::Transport> transport, std::uint16_t port) {
  proxy::Location to{.scheme = "https", .host = "localhost", .port = std::to_string(port)};
  auto answer = co_await transport->Do(std::move(to), {});
  co_return answer.ok() ? "answered" : answer.error().message;
}

// CVE-2020-8562: a node's host name resolved to a public address when it was checked and to loopback when it was
// dialled. exec and logs reach kubelets anywhere, as upstream's; their connections are not shared with the proxy.
TEST(KubeletConnections, ProxiesCheckTheAddressTheyDial) {
  async::IOPool pool(1);
  ResourceStorage storage({});
  auto made = KubeletConnections::New({}, storage, pool);
  ASSERT_TRUE(made.ok()) << made.error();
  auto listener = net::Listener::Listen({.address = "127.0.0.1"});
  ASSERT_TRUE(listener.ok());
  const std::uint16_t port = listener->port();
  {
    auto closed = *std::move(listener);
  }
  const auto run = [&](const std::shared_ptr<proxy::Transport>& transport) {
    return asio::co_spawn(pool.Next(), ErrorOf(transport, port), asio::use_future).get();
  };
  EXPECT_NE(run((*made)->kubelets()).find("connection refused"), std::string::npos);
  EXPECT_NE(run((*made)->proxied_kubelets()).find("address not allowed"), std::string::npos);
  EXPECT_NE(run((*made)->anything()).find("address not allowed"), std::string::npos);
}

}  // namespace
}  // namespace keelson::controlplane
