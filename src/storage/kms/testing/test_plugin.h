// A KMS plugin for tests: serves v2 and v1beta1 on a unix socket. A key is sealed with AES-256-GCM under SHA-256 of its
// key id, so that two plugins with the same key ids read each other's keys. Thread safety: all members from any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
namespace keelson::storage::kms {
class TestPlugin {
 public:
  TestPlugin(const std::string& socket_path, std::string key_id);  // serves until it is destroyed
  ~TestPlugin();
  void SetKeyID(std::string key_id);     // rotates
  void SetHealthz(std::string healthz);  // "ok" is healthy
  void SetFailing(bool failing);         // every call fails with Unavailable
  std::uint64_t encrypts() const;
  std::uint64_t decrypts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
}  // namespace keelson::storage::kms
