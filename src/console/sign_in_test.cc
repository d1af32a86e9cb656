#include "console/sign_in.h"

#include <gtest/gtest.h>

#include "async/testing/run_now.h"
#include "base/fake_clock.h"

namespace keelson::console {
namespace {

class SignInTest : public testing::Test {
 protected:
  std::string UserOf(const std::string& token) {
    const auto result = async::RunNow(sign_in_.AuthenticateToken(token, {}));
    return result.user ? result.user->name : "";
  }
  base::FakeClock clock_;
  SignIn sign_in_{{.name = "admin", .groups = {"system:masters"}}, clock_};
};

TEST_F(SignInTest, LinkIsSingleUse) {
  const std::string link = sign_in_.NewLink();
  EXPECT_GE(link.size(), 43u);  // 256 bits
  const auto token = sign_in_.Exchange(link);
  ASSERT_TRUE(token);
  EXPECT_EQ(UserOf(*token), "admin");
  EXPECT_FALSE(sign_in_.Exchange(link));
  EXPECT_FALSE(sign_in_.Exchange(*token));
  EXPECT_EQ(UserOf(link), "");
  EXPECT_EQ(UserOf(*token + "x"), "");
  EXPECT_FALSE(sign_in_.Exchange(""));
}

TEST_F(SignInTest, UnusedLinksExpire) {
  const std::string link = sign_in_.NewLink();
  clock_.Advance(SignIn::kLinkLife);
  EXPECT_FALSE(sign_in_.Exchange(link));
}

TEST_F(SignInTest, SessionsExpireUnlessRenewed) {
  const auto token = sign_in_.Exchange(sign_in_.NewLink());
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(SignIn::kSessionLife - std::chrono::seconds(1));
    EXPECT_TRUE(sign_in_.Renew(*token));
  }
  EXPECT_EQ(UserOf(*token), "admin");
  clock_.Advance(SignIn::kSessionLife);
  EXPECT_EQ(UserOf(*token), "");
  EXPECT_FALSE(sign_in_.Renew(*token));
}

TEST_F(SignInTest, EndedSessionIsGone) {
  const auto token = sign_in_.Exchange(sign_in_.NewLink());
  sign_in_.End(*token);
  EXPECT_EQ(UserOf(*token), "");
}

TEST_F(SignInTest, NumbersAreBounded) {
  const std::string oldest = sign_in_.NewLink();
  for (std::size_t i = 0; i < SignIn::kLinksMax; ++i) sign_in_.NewLink();
  EXPECT_FALSE(sign_in_.Exchange(oldest));
  const auto first = sign_in_.Exchange(sign_in_.NewLink());
  for (std::size_t i = 0; i < SignIn::kSessionsMax; ++i) sign_in_.Exchange(sign_in_.NewLink());
  EXPECT_EQ(UserOf(*first), "");
}

TEST_F(SignInTest, SessionsHaveDistinctIDsInTheAuditLog) {
  const auto id = [&] {
    return async::RunNow(sign_in_.AuthenticateToken(*sign_in_.Exchange(sign_in_.NewLink()), {})).user->extra;
  };
  EXPECT_NE(id(), id());
}

}  // namespace
}  // namespace keelson::console
