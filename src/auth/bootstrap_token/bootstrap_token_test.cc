#include <gtest/gtest.h>

#include "async/testing/run_now.h"
#include "auth/bootstrap_token/authenticator.h"
#include "base/fake_clock.h"

namespace keelson::auth {
namespace {

class FakeSecrets final : public BootstrapSecrets {
 public:
  std::optional<BootstrapSecret> secret;
  Awaitable<Outcome<std::optional<BootstrapSecret>, std::string>> Get(std::string name) override {
    EXPECT_EQ(name, "bootstrap-token-abcdef");
    co_return secret;
  }
};

TEST(BootstrapTokens, SecretDecides) {
  struct Case {
    const char* name;
    const char* key;     // of the secret's data to change
    const char* value;   // null: removed
    const char* groups;  // "" for no user
  };
  constexpr Case kCases[] = {
      {"good", "description", "x", "system:bootstrappers"},
      {"other secret", "token-secret", "0123456789abcdeg", ""},
      {"other id", "token-id", "abcdeg", ""},
      {"expired", "expiration", "2001-01-01T00:00:00Z", ""},
      {"expires later", "expiration", "2201-01-01T00:00:00Z", "system:bootstrappers"},
      {"unreadable expiration", "expiration", "soon", ""},
      {"not for authentication", "usage-bootstrap-authentication", "True", ""},
      {"not marked", "usage-bootstrap-authentication", nullptr, ""},
      {"more groups", "auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a,system:bootstrappers:b",
       "system:bootstrappers system:bootstrappers:a system:bootstrappers:b"},
      {"foreign group", "auth-extra-groups", "system:bootstrappers:a,system:masters", ""},
      {"group with an upper-case letter", "auth-extra-groups", "system:bootstrappers:A", ""},
  };
  base::FakeClock clock;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    auto secrets = std::make_shared<FakeSecrets>();
    secrets->secret = BootstrapSecret{
        .type = "bootstrap.kubernetes.io/token",
        .data = {
            {"token-id", "abcdef"}, {"token-secret", "0123456789abcdef"}, {"usage-bootstrap-authentication", "true"}}};
    if (c.value == nullptr) {
      secrets->secret->data.erase(c.key);
    } else {
      secrets->secret->data[c.key] = c.value;
    }
    BootstrapTokenAuthenticator authenticator(secrets, clock);
    const auto result = async::RunNow(authenticator.AuthenticateToken("abcdef.0123456789abcdef", {}));
    EXPECT_TRUE(result.errors.empty());
    std::string groups;
    if (result.user) {
      EXPECT_EQ(result.user->name, "system:bootstrap:abcdef");
      for (const auto& group : result.user->groups) groups += (groups.empty() ? "" : " ") + group;
    }
    EXPECT_EQ(groups, c.groups);
  }
}

TEST(BootstrapTokens, OtherTokenFormsAreIgnored) {
  BootstrapTokenAuthenticator authenticator(nullptr);
  for (const char* token : {"", "abcdef", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef",
                            "abcdef.0123456789abcdef\n", "abcdef_0123456789abcdef", "xabcdef.0123456789abcdef"}) {
    EXPECT_FALSE(async::RunNow(authenticator.AuthenticateToken(token, {})).user) << token;
  }
}

}  // namespace
}  // namespace keelson::auth
