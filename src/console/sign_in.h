// One-time links that sign their opener in, and the sessions that they are exchanged for. Everything is in memory: a
// restart ends all of it. Secrets are kept as SHA-256 digests only.
//   link:     random 256 bits in the fragment of a URL, which browsers do not send; used once, within kLinkLife
//   session:  a bearer token of random 256 bits; good for kSessionLife after it was made or renewed
// Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "auth/token_authenticator.h"
#include "base/clock.h"
#include "base/random.h"
#include "request/user.h"
#include "server/path_mux.h"

namespace keelson::console {

class SignIn final : public auth::TokenAuthenticator {
 public:
  static constexpr std::size_t kLinksMax = 16;     // unused ones; a new one takes the place of the oldest
  static constexpr std::size_t kSessionsMax = 64;  // the same
  static constexpr std::chrono::minutes kLinkLife{10}, kSessionLife{10};

  // Sessions are of `user`. The clock and the generator must outlive it.
  explicit SignIn(request::User user, const base::Clock& clock = base::Clock::Real(),
                  base::Random& random = base::Random::Real());

  std::string NewLink();  // the secret
  // The token of a new session; nothing for a secret that is unknown, used or too old.
  std::optional<std::string> Exchange(std::string_view secret);
  bool Renew(std::string_view token);  // false: no such session
  void End(std::string_view token);

  // No opinion about tokens that are not of a session.
  Awaitable<auth::AuthenticationResult> AuthenticateToken(std::string token,
                                                          std::vector<std::string> audiences) override;

 private:
  struct Secret {
    std::string digest;
    base::Clock::SteadyTime end;
  };
  using Secrets = std::deque<Secret>;  // in the order in which they end

  std::string Make(Secrets& secrets, std::size_t most, std::string_view prefix, std::chrono::minutes life);
  Secrets::iterator Find(Secrets& secrets, std::string_view digest);  // drops those that have ended

  const request::User user_;
  const base::Clock& clock_;
  base::Random& random_;
  std::mutex mutex_;
  Secrets links_, sessions_;
};

// POST /console/session/open, /renew and /end with the secret or token as application/octet-stream, from pages of this
// server only.
void InstallSignIn(server::PathMux& mux, std::shared_ptr<SignIn> sign_in);

}  // namespace keelson::console
