// A real etcd for tests, on free ports of 127.0.0.1, gone with its owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace keelson::kv::etcd {

class TestServer {
 public:
  // KEELSON_ETCD, else keelson/bin/etcd in the cache folder, else etcd of PATH; "" when there is none.
  static std::string FindBinary();
  // A cluster of `members`; null when it does not start.
  static std::unique_ptr<TestServer> Start(int members);
  ~TestServer();

  const std::vector<std::string>& endpoints() const { return endpoints_; }
  void Kill(std::size_t member);  // kill -9
  void Restart(std::size_t member);

 private:
  TestServer() = default;
  void Spawn(std::size_t member);
  std::string binary_;
  std::string dir_;
  std::vector<std::vector<std::string>> arguments_;
  std::vector<std::string> endpoints_;
  std::vector<pid_t> pids_;
};

}  // namespace keelson::kv::etcd
