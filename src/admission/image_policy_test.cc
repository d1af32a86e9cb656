// ImagePolicyWebhook against a scripted backend.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>

#include "admission/plugins/plugins.h"
#include "admission/testing/fakes.h"
#include "base/fake_clock.h"
#include "http/transport.h"
#include "net/testing/scripted_peer.h"

namespace keelson::admission {
namespace {

using net::testing::ScriptedConnection;
using net::testing::ScriptedPeer;
using testing::ConfigurationOf;

class ImagePolicy : public ::testing::Test {
 protected:
  // A backend that answers every review with `status`, and the plugin that calls it.
  void Start(std::string status, std::string settings) {
    answer_ = R"({"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview","status":)" + std::move(status) + "}";
    peer_ = std::make_unique<ScriptedPeer>([this](ScriptedConnection& connection) {
      for (;;) {
        const std::string request = connection.ReadRequest();
        if (request.empty()) return;
        requests_.push_back(request.substr(request.find("\r\n\r\n") + 4));
        connection.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                         std::to_string(answer_.size()) + "\r\n\r\n" + answer_);
      }
    });
    Configure(peer_->port(), std::move(settings));
  }

  void Configure(std::uint16_t port, std::string settings) {
    path_ = ::testing::TempDir() + "image_policy_kubeconfig";
    std::ofstream(path_)
        << R"({"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],)"
        << R"("clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:)" << port << R"(/policy"}}]})";
    const auto configurations = ConfigurationOf(
        "ImagePolicyWebhook", R"({"imagePolicy":{"kubeConfigFile":")" + path_ + R"(",)" + settings + "}}");
    ASSERT_EQ(CheckImagePolicy(configurations->Of("ImagePolicyWebhook")), "");
    plugin_ = NewImagePolicyWebhook({.transport = transport_, .configurations = configurations, .clock = &clock_});
  }

  std::string Decide(std::string_view resource, std::string_view annotations, std::string_view spec) {
    context_ = std::make_unique<request::Context>();
    const Attributes attributes =
        testing::AttributesOf(context_->arena, Operation::kCreate, "", resource,
                              R"({"metadata":{"name":"p","namespace":"ns","annotations":)" + std::string(annotations) +
                                  R"(},"spec":)" + std::string(spec) + "}");
    return testing::Refusal(
        asio::co_spawn(pool_.Next(), plugin_->Validate(*context_, attributes), asio::use_future).get());
  }

  void TearDown() override { std::filesystem::remove(path_); }

  async::IOPool pool_{1};
  std::shared_ptr<http::Transport> transport_ = std::make_shared<http::Transport>(pool_);
  base::FakeClock clock_;
  std::string answer_, path_;
  std::vector<std::string> requests_;
  std::unique_ptr<request::Context> context_;
  std::unique_ptr<ScriptedPeer> peer_;
  std::unique_ptr<Plugin> plugin_;
};

constexpr std::string_view kSpec =
    R"({"containers":[{"image":"a"}],"initContainers":[{"image":"b"}],"ephemeralContainers":[{"image":"e"}]})";

TEST_F(ImagePolicy, ReviewAndCache) {
  Start(R"({"allowed":true,"auditAnnotations":{"k":"v"}})", R"("allowTTL":10)");
  EXPECT_EQ(Decide("pods", R"({"x.image-policy.k8s.io/y":"1","other":"2"})", kSpec), "");
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(
      requests_[0],
      R"({"kind":"ImageReview","apiVersion":"imagepolicy.k8s.io/v1alpha1","metadata":{},"spec":{"containers":[{"image":"a"},{"image":"b"}],)"
      R"("annotations":{"x.image-policy.k8s.io/y":"1"},"namespace":"ns"},"status":{"allowed":false}})");
  ASSERT_EQ(context_->audit_annotations.entries().size(), 1u);
  EXPECT_EQ(context_->audit_annotations.entries()[0],
            std::make_pair(std::string("imagepolicywebhook.image-policy.k8s.io/k"), std::string("v")));
  EXPECT_EQ(Decide("pods", R"({"x.image-policy.k8s.io/y":"1"})", kSpec), "");
  EXPECT_EQ(requests_.size(), 1u) << "the answer is cached";
  EXPECT_EQ(context_->audit_annotations.entries().size(), 1u) << "annotations come with cached answers, too";
  clock_.Advance(std::chrono::seconds(11));
  EXPECT_EQ(Decide("pods", R"({"x.image-policy.k8s.io/y":"1"})", kSpec), "");
  EXPECT_EQ(requests_.size(), 2u) << "for allowTTL";
  EXPECT_EQ(Decide("pods/ephemeralcontainers", "{}", kSpec), "");
  EXPECT_NE(requests_.back().find(R"("containers":[{"image":"e"}])"), std::string::npos);
  EXPECT_EQ(Decide("pods/status", "{}", kSpec), "");
  EXPECT_EQ(requests_.size(), 3u) << "other subresources are not reviewed";
}

TEST_F(ImagePolicy, Denials) {
  Start(R"({"allowed":false,"reason":"old"})", R"("denyTTL":-1)");
  EXPECT_EQ(Decide("pods", "{}", kSpec), "image policy webhook backend denied one or more images: old");
  answer_ = R"({"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview","status":{}})";
  EXPECT_EQ(Decide("pods", "{}", kSpec), "one or more images rejected by webhook backend");
  EXPECT_EQ(requests_.size(), 2u) << "-1 turns the cache off";
  answer_ = R"({"apiVersion":"v1","kind":"Pod"})";
  EXPECT_EQ(Decide("pods", "{}", kSpec), "converting (v1.Pod) to (v1alpha1.ImageReview): unknown conversion");
}

TEST_F(ImagePolicy, UnreachableBackend) {
  const std::uint16_t port = net::testing::RefusingPort();
  Configure(port, R"("defaultAllow":false)");
  const std::string address = "127.0.0.1:" + std::to_string(port);
  EXPECT_EQ(Decide("pods", "{}", kSpec), "Post \"http://" + address + "/policy?timeout=30s\": dial tcp " + address +
                                             ": connect: connection refused");
  Configure(port, R"("defaultAllow":true)");
  EXPECT_EQ(Decide("pods", "{}", kSpec), "");
  ASSERT_EQ(context_->audit_annotations.entries().size(), 1u);
  EXPECT_EQ(context_->audit_annotations.entries()[0].first, "imagepolicywebhook.image-policy.k8s.io/failed-open");
}

TEST(ImagePolicyConfiguration, Errors) {
  base::Arena arena;
  const auto check = [&](std::string_view json) { return CheckImagePolicy(testing::Parse(arena, json)); };
  EXPECT_EQ(check(""), "no config specified");
  EXPECT_EQ(check(R"({"imagePolicy":{"allowTTL":1801}})"), "valid value is between 1s and 30m0s, got 30m1s");
  EXPECT_EQ(check(R"({"imagePolicy":{"denyTTL":-2}})"), "valid value is between 1s and 30m0s, got -2s");
  EXPECT_EQ(check(R"({"imagePolicy":{"retryBackoff":300001}})"), "valid value is between 1ns and 5m0s, got 5m0.001s");
  EXPECT_EQ(check(R"({"imagePolicy":{"kubeConfigFile":"/nonexistent/file"}})"),
            "stat /nonexistent/file: no such file or directory");
}

}  // namespace
}  // namespace keelson::admission
