#include "auth/service_account/public_keys.h"

namespace keelson::auth {

Awaitable<bool> StaticPublicKeys::Sync() { co_return false; }

Awaitable<Outcome<std::string, SigningError>> LocalTokenGenerator::GenerateToken(std::string payload) {
  co_return key_.Sign(payload);
}

}  // namespace keelson::auth
