// Pages about the process: /flagz, /statusz, /debug.
#include <gtest/gtest.h>

#include "async/testing/run_now.h"
#include "base/arena.h"
#include "codec/cbor.h"
#include "codec/json.h"
#include "server/debug_pages.h"
#include "server/zpages.h"
#include "telemetry/log.h"

namespace keelson::server {
namespace {

class FixedBody final : public http::BodyReader {
 public:
  explicit FixedBody(std::string text) : text_(std::move(text)) {}
  Awaitable<Outcome<base::SharedBytes, http::BodyError>> Read() override {
    co_return base::SharedBytes::FromString(std::exchange(text_, {}));
  }

 private:
  std::string text_;
};

class FixedClock final : public base::Clock {
 public:
  SystemTime Now() const override { return SystemTime(std::chrono::seconds(1'794'812'449)); }
  SteadyTime Monotonic() const override { return SteadyTime(steady); }
  std::chrono::seconds steady{0};
};

http::Response Ask(const PathMux& mux, const std::string& path, const std::string& accept = "",
                   const std::string& method = "GET", const std::string& body = "") {
  auto exchange = std::make_shared<endpoints::Exchange>();
  exchange->http.method = method;
  exchange->http.path = path.substr(0, path.find('?'));
  if (path.find('?') != std::string::npos) exchange->query = base::Query(path.substr(path.find('?') + 1));
  if (!accept.empty()) exchange->http.headers.Add("Accept", accept);
  exchange->http.body = std::make_unique<FixedBody>(body);
  return async::RunNow((*mux.Find(exchange->http.path))(exchange));
}

std::string Body(const http::Response& response) {
  return std::string(std::get<base::SharedBytes>(response.body).view());
}

constexpr char kHeading[] =
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for "
    "debugging purposes only.\n";

TEST(Flagz, AsTextAndAsAKind) {
  PathMux mux;
  InstallFlagz(mux, {{"bind-address", "127.0.0.1"}, {"v", "2"}});
  EXPECT_EQ(Body(Ask(mux, "/flagz")),
            std::string("\napiserver flagz\n") + kHeading + "bind-address: 127.0.0.1\nv: 2\n");
  EXPECT_EQ(Ask(mux, "/flagz", "*/*").headers.Get("Content-Type"), "text/plain; charset=utf-8");

  const auto json = Ask(mux, "/flagz", "application/json;as=Flagz;g=config.k8s.io;v=v1beta1");
  EXPECT_EQ(json.headers.Get("Content-Type"), "application/json;g=config.k8s.io;v=v1beta1;as=Flagz");
  EXPECT_EQ(Body(json), R"({"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"apiserver"},)"
                        R"("flags":{"bind-address":"127.0.0.1","v":"2"}})"
                        "\n");
  EXPECT_FALSE(json.headers.Has("Warning"));
  const auto old = Ask(mux, "/flagz", "application/yaml;as=Flagz;g=config.k8s.io;v=v1alpha1");
  EXPECT_EQ(old.headers.Get("Warning"),
            "299 - \"This version of the flagz endpoint is deprecated. Please use a newer version.\"");
  EXPECT_EQ(
      Body(old),
      "apiVersion: config.k8s.io/v1alpha1\nflags:\n  bind-address: 127.0.0.1\n  v: \"2\"\nkind: Flagz\nmetadata:\n"
      "  name: apiserver\n");
  EXPECT_EQ(Ask(mux, "/flagz", "application/cbor;as=Flagz;g=config.k8s.io;v=v1beta1").status, 406);
  const auto refused = Ask(mux, "/flagz", "application/json");
  EXPECT_EQ(refused.status, 406);
  EXPECT_NE(Body(refused).find("only the following media types are accepted: application/json, application/yaml, "
                               "text/plain"),
            std::string::npos);
}

TEST(Flagz, AsCBOR) {
  PathMux mux;
  InstallFlagz(mux, {{"v", "2"}}, CBOR::kServed);
  const auto cbor = Ask(mux, "/flagz", "application/cbor;as=Flagz;g=config.k8s.io;v=v1beta1");
  EXPECT_EQ(cbor.headers.Get("Content-Type"), "application/cbor;g=config.k8s.io;v=v1beta1;as=Flagz");
  base::Arena arena;
  const std::string body = Body(cbor);
  auto decoded = codec::DecodeCBOR(arena, body);
  ASSERT_TRUE(decoded.ok());
  std::string json;
  codec::EncodeJSON(decoded->value, json);
  EXPECT_EQ(
      json,
      R"({"apiVersion":"config.k8s.io/v1beta1","flags":{"v":"2"},"kind":"Flagz","metadata":{"name":"apiserver"}})");
  EXPECT_NE(Body(Ask(mux, "/flagz", "application/json"))
                .find("application/json, application/yaml, text/plain, application/cbor"),
            std::string::npos);
}

TEST(Statusz, AsTextAndAsAKind) {
  PathMux mux;
  FixedClock clock;
  InstallStatusz(mux,
                 {.binary_version = "1.36.4", .emulation_version = "1.36", .go_version = "none", .paths = {"/a", "/b"}},
                 clock);
  clock.steady = std::chrono::seconds(3 * 3600 + 2 * 60 + 5);
  EXPECT_EQ(
      Body(Ask(mux, "/statusz", "text/plain")),
      std::string("\napiserver statusz\n") + kHeading +
          "\nStarted: Mon Nov 16 07:00:49 UTC 2026\nUp: 3 hr 02 min 05 sec\nGo version: none\nBinary version: 1.36.4\n"
          "Emulation version: 1.36\nPaths: /a /b\n");
  EXPECT_EQ(Body(Ask(mux, "/statusz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz")),
            R"({"kind":"Statusz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"apiserver"},)"
            R"("startTime":"2026-11-16T07:00:49Z","uptimeSeconds":10925,"goVersion":"none","binaryVersion":"1.36.4",)"
            R"("emulationVersion":"1.36","paths":["/a","/b"]})"
            "\n");
}

TEST(DebugPages, ServeKnownProfiles) {
  PathMux mux;
  InstallDebugPages(mux);
  EXPECT_TRUE(mux.ListedPaths().empty());
  EXPECT_EQ(Ask(mux, "/debug/pprof").status, 302);
  EXPECT_NE(Body(Ask(mux, "/debug/pprof/")).find("profile?seconds=30"), std::string::npos);
  EXPECT_NE(Body(Ask(mux, "/debug/pprof/threads")).find("server_test"), std::string::npos);
  EXPECT_TRUE(Body(Ask(mux, "/debug/pprof/malloc")).starts_with("<malloc"));
  const auto unknown = Ask(mux, "/debug/pprof/goroutine");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(Body(unknown), "Unknown profile\n");
  EXPECT_EQ(Ask(mux, "/debug/pprof/profile?seconds=1000").status, 400);
  const auto profile = Ask(mux, "/debug/pprof/profile?seconds=1");
  EXPECT_EQ(profile.status, 200);
  auto& source = std::get<std::unique_ptr<http::BodySource>>(profile.body);
  std::vector<base::SharedBytes> slices;
  while (source->Pull(1 << 20, slices) == http::BodySource::State::kMore) {
  }
  ASSERT_FALSE(slices.empty());
  EXPECT_TRUE(slices[0].view().starts_with("\x1f\x8b"));
}

TEST(DebugPages, SetTheVerbosity) {
  PathMux mux;
  InstallDebugPages(mux);
  EXPECT_EQ(Ask(mux, "/debug/flags/v").status, 406);
  EXPECT_EQ(Body(Ask(mux, "/debug/flags/v", "", "PUT", "7")), "successfully set klog.logging.verbosity to 7\n");
  EXPECT_TRUE(log::V(7).enabled());
  EXPECT_FALSE(log::V(8).enabled());
  EXPECT_EQ(Ask(mux, "/debug/flags/v", "", "PUT", "x").status, 400);
  EXPECT_TRUE(log::V(7).enabled());
  EXPECT_EQ(Ask(mux, "/debug/flags/v", "", "PUT", "0").status, 200);
}

}  // namespace
}  // namespace keelson::server
