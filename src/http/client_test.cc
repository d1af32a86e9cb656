#include "http/client.h"

#include "http/test_server.h"

namespace keelson::http {
namespace {

class Letters final : public BodySource {  // 20,000 bytes
 public:
  void Start(std::function<void()>) override {}
  State Pull(std::size_t, std::vector<SharedBytes>& out) override {
    out.push_back(SharedBytes(std::string(1000, static_cast<char>('a' + count_))));
    return ++count_ == 20 ? State::kDone : State::kMore;
  }

 private:
  int count_ = 0;
};

struct Mode {
  const char* name;
  bool tls;
  bool http2;
};
constexpr Mode kModes[] = {{"plain", false, false}, {"TLS 1.1", true, false}, {"TLS 2", true, true}};

TEST(Client, FetchesAndReuses) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    TestServer test({}, mode.tls);
    Client client(test.pool, test.client_options(mode.http2));
    for (int i = 0; i < 5; ++i) {
      auto hello = Fetch(client, To("/hello"));
      EXPECT_EQ(test.Run(std::move(hello)), "200 hello\n");
      auto echo = Fetch(client, To("/echo", std::string(500'000, 'e')));
      EXPECT_EQ(test.Run(std::move(echo)), "200 " + std::string(500'000, 'e'));
      auto stream = Fetch(client, To("/stream/1000000"));
      EXPECT_EQ(test.Run(std::move(stream)).size(), 1'000'004U);
    }
    EXPECT_EQ(test.server->stats().connections_total, 1U);
  }
}

TEST(Client, StreamsRequestBodies) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    TestServer test({}, mode.tls);
    Client client(test.pool, test.client_options(mode.http2));
    ClientRequest request;
    request.method = "POST";
    request.target = "/echo";
    request.body = std::make_unique<Letters>();
    auto fetch = Fetch(client, std::move(request));
    EXPECT_EQ(test.Run(std::move(fetch)).size(), 20'004U);
  }
}

ClientRequest LettersTo(std::string length) {
  ClientRequest request;
  request.method = "POST";
  request.target = "/echo";
  request.headers.Add("Content-Length", length);
  request.body = std::make_unique<Letters>();
  return request;
}

// A body with Content-Length carries no chunk sizes: they would shift its end, and what is behind the end is read as
// the next request on that connection.
TEST(Client, StreamedBodiesWithContentLengthAreNotChunked) {
  std::string letters;
  for (int i = 0; i < 20; ++i) letters.append(1000, static_cast<char>('a' + i));
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    TestServer test({}, mode.tls);
    Client client(test.pool, test.client_options(mode.http2));
    for (int i = 0; i < 2; ++i) {
      auto fetch = Fetch(client, LettersTo("20000"));
      EXPECT_EQ(test.Run(std::move(fetch)), "200 " + letters);
      auto next = Fetch(client, To("/hello"));
      EXPECT_EQ(test.Run(std::move(next)), "200 hello\n");
    }
    EXPECT_EQ(test.server->stats().connections_total, 1U);
    EXPECT_EQ(test.started, 4);
  }
}

TEST(Client, ConnectionsEndWhenContentLengthIsWrong) {
  for (const char* length : {"19999", "20001", "0", "1"}) {
    for (const bool tls : {false, true}) {
      SCOPED_TRACE(length);
      TestServer test({}, tls);
      Client client(test.pool, test.client_options(false));
      auto wrong = Fetch(client, LettersTo(length));
      const std::string answer = test.Run(std::move(wrong));
      EXPECT_TRUE(answer.starts_with("error: http: ContentLength") || answer.find("body error") != std::string::npos ||
                  answer == "200 ")
          << answer;
      auto next = Fetch(client, To("/hello"));
      EXPECT_EQ(test.Run(std::move(next)), "200 hello\n");
      EXPECT_EQ(test.server->stats().connections_total, 2U);
      EXPECT_LE(test.started, 2);
    }
  }
}

Awaitable<ClientResponse> Head(Client& client, ClientRequest request) {
  auto response = co_await client.Do(std::move(request));
  EXPECT_TRUE(response.ok());
  co_return *std::move(response);
}

// The I/O threads end while an answer is unread: what they had still to do is destroyed, the connection with it.
TEST(Client, ConnectionsEndWithTheirThreadsInTheMiddleOfAnAnswer) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    TestServer test({}, mode.tls);
    async::IOPool pool(1);
    auto client = std::make_unique<Client>(pool, test.client_options(mode.http2));
    auto head = Head(*client, To("/stream/10000000"));
    ClientResponse response = asio::co_spawn(pool.Next(), std::move(head), asio::use_future).get();
    EXPECT_EQ(response.status, 200);
    pool.Stop();
    response.body.reset();
    client.reset();
  }
}

TEST(Client, DeadlinesCoverTheHeadAndTheBody) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    TestServer test({}, mode.tls);
    Client client(test.pool, test.client_options(mode.http2));
    auto warm = Fetch(client, To("/hello"));
    EXPECT_EQ(test.Run(std::move(warm)), "200 hello\n");
    auto waiting = To("/gate");
    waiting.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    auto first = Fetch(client, std::move(waiting));
    EXPECT_EQ(test.Run(std::move(first)), "error: context deadline exceeded");
    auto holding = To("/hold");  // long enough for its head to come on a busy machine too
    holding.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    auto second = Fetch(client, std::move(holding));
    EXPECT_EQ(test.Run(std::move(second)), "200 body error 2");
    EXPECT_TRUE(Eventually([&] { return test.gone >= 1; }));  // the server learns of it
    auto third = Fetch(client, To("/hello"));
    EXPECT_EQ(test.Run(std::move(third)), "200 hello\n");
  }
}

TEST(Client, FollowsNoRedirect) {
  TestServer test;
  Client client(test.pool, test.client_options());
  auto fetch = Fetch(client, To("/redirect"));
  EXPECT_EQ(test.Run(std::move(fetch)), "302 ");
  EXPECT_EQ(test.started, 1);
}

TEST(Client, OneAfterAnotherWhenTheServerCloses) {
  TestServer test;
  Client client(test.pool, test.client_options());
  for (int i = 0; i < 3; ++i) {
    auto fetch = Fetch(client, To("/close"));
    EXPECT_EQ(test.Run(std::move(fetch)), "200 hello\n");
  }
  EXPECT_EQ(test.server->stats().connections_total, 3U);
}

TEST(Client, ConnectionErrors) {
  TestServer test({}, true);
  ClientOptions options = test.client_options();
  options.server_name = "example.com";
  Client wrong(test.pool, options);
  auto first = Fetch(wrong, To("/hello"));
  EXPECT_NE(test.Run(std::move(first)).find("certificate"), std::string::npos);
  auto free_port = net::Listener::Listen({.address = "127.0.0.1"});
  ClientOptions refused;
  refused.target.host = "127.0.0.1";
  refused.target.port = free_port->port();
  {
    auto closed = *std::move(free_port);
  }
  Client nobody(test.pool, refused);
  auto second = Fetch(nobody, To("/hello"));
  EXPECT_EQ(test.Run(std::move(second)),
            "error: dial tcp 127.0.0.1:" + std::to_string(refused.target.port) + ": connect: connection refused");
  ClientOptions forbidden = test.client_options();
  forbidden.target.allow = [](const std::string& address) { return address != "127.0.0.1"; };
  Client checked(test.pool, forbidden);
  auto third = Fetch(checked, To("/hello"));
  EXPECT_NE(test.Run(std::move(third)).find("not allowed"), std::string::npos);
}

Awaitable<std::string> Tunnel(Client& client, std::string target) {
  ClientRequest request;
  request.target = std::move(target);
  request.upgrade = true;
  request.headers.Add("Connection", "Upgrade");
  request.headers.Add("Upgrade", "echo");
  auto response = co_await client.Do(std::move(request));
  if (!response.ok()) co_return "error: " + response.error().message;
  if (response->stream == nullptr) co_return "refused " + std::to_string(response->status);
  std::string got;
  for (const char* word : {"one ", "two ", "three"}) {
    auto written = co_await response->stream->Write(SharedBytes::Static(word));
    if (!written.ok()) co_return "write failed";
    auto read = co_await response->stream->Read();
    if (!read.ok()) co_return "read failed";
    got += read->view();
  }
  response->stream->Close();
  co_return got;
}

TEST(Client, TunnelsThroughUpgrades) {
  for (const bool tls : {false, true}) {
    TestServer test({}, tls);
    Client client(test.pool, test.client_options());
    auto tunnel = Tunnel(client, "/upgrade");
    EXPECT_EQ(test.Run(std::move(tunnel)), "one two three");
    EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
    auto refused = Tunnel(client, "/hello");
    EXPECT_EQ(test.Run(std::move(refused)), "refused 200");
    // CVE-2018-1002105: nothing stays of a refused upgrade that a later request could be smuggled through.
    EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
  }
}

TEST(Client, DroppedResponsesAreCancelled) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    TestServer test({}, mode.tls);
    Client client(test.pool, test.client_options(mode.http2));
    const auto drop = [](Client& target) -> Awaitable<int> {
      auto response = co_await target.Do(To("/hold"));
      co_return response.ok() ? response->status : 0;
    };
    auto dropped = drop(client);
    EXPECT_EQ(test.Run(std::move(dropped)), 200);
    EXPECT_TRUE(Eventually([&] { return test.gone == 1; }));
  }
}

}  // namespace
}  // namespace keelson::http
