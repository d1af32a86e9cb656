// Bearer tokens: extraction from requests, the token cache, the union of authenticators.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "async/event.h"
#include "async/testing/run_now.h"
#include "auth/bearer.h"
#include "auth/csv.h"
#include "auth/keyed_hash.h"
#include "auth/static_tokens.h"
#include "auth/token_cache.h"
#include "base/fake_clock.h"
#include "base/strings.h"

namespace keelson::auth {
namespace {

using async::RunNow;

// A scripted authenticator that counts its calls.
class FakeTokens final : public TokenAuthenticator {
 public:
  AuthenticationResult answer;
  std::string token;  // the accepted one; "" for all
  async::Event* wait = nullptr;
  int calls = 0;
  Awaitable<AuthenticationResult> AuthenticateToken(std::string asked, std::vector<std::string>) override {
    ++calls;
    if (wait != nullptr) co_await wait->Wait();
    co_return token.empty() || asked == token ? answer : AuthenticationResult();
  }
};

AuthenticationResult UserNamed(std::string name) {
  AuthenticationResult result;
  result.user = request::User{.name = std::move(name)};
  return result;
}

TEST(Bearer, Header) {
  struct Case {
    const char* header;
    const char* token;
    bool space_before;
  };
  constexpr Case kCases[] = {
      {"Bearer x", "x", false}, {"bearer x", "x", false}, {"  BEARER   x", "", true}, {"Bearer x y", "x", false},
      {"Bearer", "", false},    {"Bearer ", "", false},   {"Basic x", "", false},     {"", "", false},
      {"Bearer\tx", "", false}, {"Bearer  x", "", true},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.header);
    http::Headers headers;
    headers.Add("authorization", c.header);
    const BearerHeader read = ReadBearerHeader(headers);
    EXPECT_EQ(read.token, c.token);
    EXPECT_EQ(read.space_before, c.space_before);
  }
}

TEST(Bearer, WebSocketProtocol) {
  const std::string prefix = "base64url.bearer.authorization.k8s.io.";
  struct Case {
    const char* name;
    std::vector<std::string> protocols;
    const char* token;
    const char* others;
    const char* error;
  };
  const Case kCases[] = {
      {"with another", {prefix + "eA", "v5.channel.k8s.io"}, "x", "v5.channel.k8s.io", ""},
      {"in one line", {"a, " + prefix + "eA , b"}, "x", "a,b", ""},
      {"alone", {prefix + "eA"}, "", "", "missing additional subprotocol"},
      {"twice", {prefix + "eA," + prefix + "eA,a"}, "", "", "multiple base64.bearer.authorization tokens specified"},
      {"padded", {prefix + "eA==,a"}, "", "", "invalid base64.bearer.authorization token encoding"},
      {"no UTF-8", {prefix + "_w,a"}, "", "", "invalid base64.bearer.authorization token"},
      {"empty", {prefix + ",a"}, "", "a", ""},
      {"none", {"a"}, "", "a", ""},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    http::Request request;
    for (const auto& protocol : c.protocols) request.headers.Add("Sec-WebSocket-Protocol", protocol);
    EXPECT_EQ(ReadBearerProtocol(request)->token, "");  // no handshake
    request.headers.Add("Connection", "keep-alive, Upgrade");
    request.headers.Add("Upgrade", "WebSocket");
    const auto read = ReadBearerProtocol(request);
    EXPECT_EQ(read.ok() ? "" : read.error(), c.error);
    if (!read.ok()) continue;
    EXPECT_EQ(read->token, c.token);
    EXPECT_EQ(read->others, c.others);
  }
}

TEST(CSV, ReadsAsGoDoes) {
  struct Case {
    const char* text;
    const char* want;  // fields in [], records one after the other; or the error
  };
  constexpr Case kCases[] = {
      {"a,b,c\n", "[a][b][c];"},
      {"a,b\r\n\nc", "[a][b];[c];"},
      {"a,\"b,c\",d\n", "[a][b,c][d];"},
      {"\"a\"\"b\",\n", "[a\"b][];"},
      {"\"a\nb\",c\n", "[a\nb][c];"},
      {" a , b\n", "[ a ][ b];"},
      {"", ""},
      {"\n\n", ""},
      {"a,b\"b,c\n", "parse error on line 1, column 4: bare \" in non-quoted-field"},
      {"a,b,c,\"x\n", "parse error on line 1, column 10: extraneous or missing \" in quoted-field"},
      {"a\n\"x\"y\n", "[a];parse error on line 2, column 3: extraneous or missing \" in quoted-field"},
      {"\"a\nb\"c\n", "record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    CSVReader reader(c.text);
    std::string got;
    for (;;) {
      auto record = reader.Next();
      if (!record.ok()) {
        got += record.error();
        break;
      }
      if (!*record) break;
      for (const auto& field : **record) got += "[" + field + "]";
      got += ";";
    }
    EXPECT_EQ(got, c.want);
  }
}

TEST(StaticTokens, File) {
  auto file =
      StaticTokenAuthenticator::FromCSV("f", "t1,bob,u1,\"g1, g2\"\n\nt2,eve,u2\n,skipped,u3\nt2,mallory,u4,g\n");
  ASSERT_TRUE(file.ok());
  const auto bob = RunNow((*file)->AuthenticateToken("t1", {}));
  ASSERT_TRUE(bob.user);
  EXPECT_EQ(bob.user->groups, (std::vector<std::string>{"g1", " g2"}));
  EXPECT_EQ(RunNow((*file)->AuthenticateToken("t2", {})).user->name, "mallory");
  EXPECT_FALSE(RunNow((*file)->AuthenticateToken("", {})).user);
  EXPECT_FALSE(RunNow((*file)->AuthenticateToken("t3", {})).user);
  EXPECT_EQ(StaticTokenAuthenticator::FromCSV("f", "a,b\n").error(),
            "token file 'f' must have at least 3 columns (token, user name, user uid), found 2");
}

TEST(KeyedHash, IsHMACSHA256) {
  const std::array<std::uint8_t, 3> key{'k', 'e', 'y'};
  const KeyedHash hash(key);
  for (const std::size_t size : {0u, 1u, 55u, 56u, 63u, 64u, 65u, 1000u}) {
    const std::string text(size, 'x');
    KeyedHash::Digest want;
    unsigned length = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
         text.size(), want.data(), &length);
    EXPECT_EQ(hash.Begin().Add(text).Finish(), want) << size;
    EXPECT_EQ(hash.Begin().Add(text.substr(0, size / 2)).Add(text.substr(size / 2)).Finish(), want) << size;
  }
}

TEST(TokenCache, RemembersSuccessForAWhile) {
  base::FakeClock clock;
  auto next = std::make_shared<FakeTokens>();
  next->answer = UserNamed("alice");
  next->answer.warnings = {"w"};
  next->answer.annotations = {{"k", "v"}};
  TokenCache cache(next, {.success_ttl = std::chrono::seconds(10), .clock = &clock});
  for (int i = 0; i < 3; ++i) {
    const auto result = RunNow(cache.AuthenticateToken("t", {"a"}));
    ASSERT_TRUE(result.user);
    EXPECT_EQ(result.warnings, std::vector<std::string>{"w"});
    EXPECT_EQ(result.annotations.size(), 1u);
  }
  EXPECT_EQ(next->calls, 1);
  RunNow(cache.AuthenticateToken("t", {"b"}));  // other audiences are another question
  EXPECT_EQ(next->calls, 2);
  clock.Advance(std::chrono::seconds(11));
  RunNow(cache.AuthenticateToken("t", {"a"}));
  EXPECT_EQ(next->calls, 3);
}

TEST(TokenCache, FailuresAreCachedOnlyIfConfigured) {
  struct Case {
    std::chrono::seconds failure_ttl;
    bool keep_errors, error;
    int calls;
  };
  using std::chrono::seconds;
  constexpr Case kCases[] = {{seconds(0), true, false, 2},
                             {seconds(5), false, false, 1},
                             {seconds(5), false, true, 2},
                             {seconds(5), true, true, 1}};
  for (const Case& c : kCases) {
    base::FakeClock clock;
    auto next = std::make_shared<FakeTokens>();
    if (c.error) next->answer = AuthenticationResult::Failed("e");
    TokenCache cache(next, {.failure_ttl = c.failure_ttl, .keep_errors = c.keep_errors, .clock = &clock});
    for (int i = 0; i < 2; ++i) EXPECT_EQ(RunNow(cache.AuthenticateToken("t", {})).Error(), c.error ? "e" : "");
    EXPECT_EQ(next->calls, c.calls);
  }
}

Awaitable<void> AskOnce(TokenCache& cache, std::string token, int& done) {
  const auto result = co_await cache.AuthenticateToken(std::move(token), {});
  if (result.user) ++done;
}

TEST(TokenCache, SharesConcurrentCallsWithoutDelayingOthers) {
  auto slow = std::make_shared<FakeTokens>();
  async::Event event;
  slow->wait = &event;
  slow->answer = UserNamed("alice");
  TokenCache cache(slow, {.success_ttl = std::chrono::seconds(10)});
  asio::io_context context;
  int done = 0;
  for (int i = 0; i < 50; ++i) asio::co_spawn(context, AskOnce(cache, "same", done), asio::detached);
  asio::co_spawn(context, AskOnce(cache, "other", done), asio::detached);
  context.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(slow->calls, 2);
  EXPECT_EQ(done, 0);
  event.Set();
  context.restart();
  context.run();
  EXPECT_EQ(done, 51);
}

Awaitable<void> AskUntil(TokenCache& cache, async::CancellationPtr cancellation, std::string& error) {
  const auto result = co_await cache.AuthenticateFor(std::move(cancellation), "same", {});
  error = result.user ? result.user->name : result.Error();
}

TEST(TokenCache, CancelledRequestsLeaveTheSharedCallRunning) {
  auto slow = std::make_shared<FakeTokens>();
  async::Event event;
  slow->wait = &event;
  slow->answer = UserNamed("alice");
  TokenCache cache(slow, {.success_ttl = std::chrono::seconds(10)});
  asio::io_context context;
  // The first one makes the call, the second one joins it, the third one stays.
  std::string first, second, third;
  const auto gone = async::Cancellation::New(), also_gone = async::Cancellation::New();
  asio::co_spawn(context, AskUntil(cache, gone, first), asio::detached);
  asio::co_spawn(context, AskUntil(cache, also_gone, second), asio::detached);
  asio::co_spawn(context, AskUntil(cache, async::Cancellation::New(), third), asio::detached);
  context.poll();
  gone->Cancel();
  also_gone->Cancel();
  context.restart();
  context.poll();
  EXPECT_EQ(first, "context canceled");
  EXPECT_EQ(second, "context canceled");
  EXPECT_EQ(third, "");
  event.Set();
  context.restart();
  context.poll();
  EXPECT_EQ(third, "alice");
  EXPECT_EQ(slow->calls, 1);
  EXPECT_EQ(cache.Find("same", {})->user->name, "alice");
  EXPECT_EQ(cache.Find("other", {}), nullptr);
}

TEST(TokenCache, IsBounded) {
  auto next = std::make_shared<FakeTokens>();
  next->answer = UserNamed("alice");
  TokenCache cache(next, {.success_ttl = std::chrono::hours(1)});
  constexpr int kMany = static_cast<int>(TokenCache::kStripes * TokenCache::kEntriesMax) + 20'000;
  for (int i = 0; i < kMany; ++i) RunNow(cache.AuthenticateToken(std::to_string(i), {}));
  RunNow(cache.AuthenticateToken("0", {}));
  EXPECT_EQ(next->calls, kMany + 1);  // the oldest was dropped
}

TEST(TokenUnion, CollectsErrors) {
  auto first = std::make_shared<FakeTokens>(), second = std::make_shared<FakeTokens>(),
       third = std::make_shared<FakeTokens>();
  first->answer = AuthenticationResult::Failed("one");
  second->answer = AuthenticationResult::Failed("two");
  using Union = UnionTokenAuthenticator;
  EXPECT_EQ(RunNow(Union({first, second, third}, Union::OnError::kContinue).AuthenticateToken("t", {})).Error(),
            "[one, two]");
  EXPECT_EQ(RunNow(Union({first, second}, Union::OnError::kStop).AuthenticateToken("t", {})).Error(), "one");
  third->answer = UserNamed("alice");
  EXPECT_TRUE(RunNow(Union({first, third}, Union::OnError::kContinue).AuthenticateToken("t", {})).user);
}

TEST(TokenUnion, AudiencesOfTokensWithoutAudiences) {
  auto next = std::make_shared<FakeTokens>();
  next->answer = UserNamed("alice");
  AudienceAgnosticTokenAuthenticator tokens(next, {"api", "api2"});
  EXPECT_EQ(RunNow(tokens.AuthenticateToken("t", {"x", "api2"})).audiences, std::vector<std::string>{"api2"});
  EXPECT_FALSE(RunNow(tokens.AuthenticateToken("t", {"x"})).user);
  EXPECT_TRUE(RunNow(tokens.AuthenticateToken("t", {})).audiences.empty());
}

TEST(RequestAuthenticator, OrderAndAnonymous) {
  auto tokens = std::make_shared<FakeTokens>();
  tokens->token = "good";
  tokens->answer = UserNamed("bob");
  tokens->answer.user = request::User{.name = "bob", .groups = {"g"}};
  RequestAuthenticator all({.api_audiences = {"api"},
                            .loopback_token = "loop",
                            .loopback_user = {.name = "system:apiserver", .groups = {"system:masters"}},
                            .tokens = std::make_shared<TokenCache>(tokens, TokenCache::Options()),
                            .anonymous = {.enabled = true, .paths = {"/healthz"}}});
  http::Request request;
  request.path = "/healthz";
  const auto ask = [&](const char* authorization) {
    request.headers.Set("Authorization", authorization);
    return RunNow(all.Authenticate(request, {"api"}, nullptr));
  };
  EXPECT_EQ(ask("").user->name, "system:anonymous");
  EXPECT_EQ(ask("Bearer loop").user->groups, std::vector<std::string>{"system:masters"});
  EXPECT_EQ(ask("Bearer good").user->groups, (std::vector<std::string>{"g", "system:authenticated"}));
  EXPECT_EQ(ask("Bearer bad").Error(), "invalid bearer token");
  EXPECT_FALSE(ask("Bearer bad").user);
  EXPECT_EQ(ask("Bearer  good").user->name, "system:anonymous");
  EXPECT_EQ(ask("Bearer  good").warnings.size(), 1u);
  request.path = "/healthz/";
  EXPECT_FALSE(ask("").user);
  EXPECT_EQ(ask("").Error(), "");
  tokens->token = "";
  tokens->answer = AuthenticationResult::Failed("too old");
  EXPECT_EQ(ask("Bearer x").Error(), "[invalid bearer token, too old]");
}

TEST(RequestAuthenticator, WebSocketTokenIsTakenOutOfTheHeader) {
  auto tokens = std::make_shared<FakeTokens>();
  tokens->token = "x";
  tokens->answer = UserNamed("bob");
  RequestAuthenticator all({.tokens = std::make_shared<TokenCache>(tokens, TokenCache::Options())});
  http::Request request;
  request.headers.Add("Connection", "Upgrade");
  request.headers.Add("Upgrade", "websocket");
  request.headers.Add("Sec-WebSocket-Protocol", "a, base64url.bearer.authorization.k8s.io.eA, b");
  ASSERT_TRUE(RunNow(all.Authenticate(request, {}, nullptr)).user);
  EXPECT_EQ(request.headers.Get("Sec-WebSocket-Protocol"), "a,b");
}

}  // namespace
}  // namespace keelson::auth
