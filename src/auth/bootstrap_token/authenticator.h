// Bootstrap tokens. Thread safety: AuthenticateToken() from any I/O thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "auth/token_authenticator.h"
#include "base/clock.h"
#include "base/outcome.h"

namespace keelson::auth {

struct BootstrapSecret {
  std::string type;
  bool deleting = false;                    // it has a deletionTimestamp
  std::map<std::string, std::string> data;  // decoded
};

class BootstrapSecrets {
 public:
  virtual ~BootstrapSecrets() = default;
  // The secret of that name in kube-system; nothing when there is none.
  virtual Awaitable<Outcome<std::optional<BootstrapSecret>, std::string>> Get(std::string name) = 0;
};

class BootstrapTokenAuthenticator final : public TokenAuthenticator {
 public:
  explicit BootstrapTokenAuthenticator(std::shared_ptr<BootstrapSecrets> secrets,
                                       const base::Clock& clock = base::Clock::Real())
      : secrets_(std::move(secrets)), clock_(clock) {}
  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  const std::shared_ptr<BootstrapSecrets> secrets_;
  const base::Clock& clock_;
};

}  // namespace keelson::auth
