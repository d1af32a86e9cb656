// A scripted external signer for tests: serves externaljwt/v1 on a unix socket with its own P-256 keys.
// Thread safety: all members from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace keelson::auth::external_jwt {

class TestSigner {
 public:
  struct Key {
    std::string id;
    bool excluded = false;
    std::optional<std::string> pkix;  // sent instead of the key's own
  };
  struct Script {
    std::vector<Key> keys = {
        {.id = "key-1"}};  // a key is made for each id, once; the last one that is not excluded signs
    std::int64_t refresh_hint_seconds = 60;
    std::optional<std::int64_t> data_timestamp = 1'700'000'000;
    std::int64_t max_token_expiration_seconds = 86'400;
    std::optional<std::string> header;  // JSON, sent instead of the right one
    bool empty_signature = false;
    bool failing = false;  // every call fails with Unavailable
    bool hanging = false;  // calls wait until this is false again or the signer goes
  };

  explicit TestSigner(const std::string& socket_path);  // serves until it is destroyed
  ~TestSigner();

  void Set(Script script);
  Script script() const;
  std::uint64_t signs() const;
  std::uint64_t fetches(std::uint64_t at_least = 0) const;  // waits until so many have begun

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::auth::external_jwt
