// A real etcd for tests, on free ports of 127.0.0.1, gone with its owner.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "kv/etcd/test_certificates.h"

namespace keelson::kv::etcd {

class TestServer {
 public:
  // KEELSON_ETCD, else keelson/bin/etcd in the cache folder, else etcd of PATH; "" when there is none.
  static std::string FindBinary();
  // A program beside that etcd: etcdctl, say. "" when there is none.
  static std::string FindTool(const std::string& name);
  // A cluster of `members` that answers; null when it does not start. With certificates clients are served with TLS and
  // have to show a certificate of the same authority; the servers' own is named "server".
  static std::unique_ptr<TestServer> Start(int members, const TestCertificates* certificates = nullptr);
  ~TestServer();

  const std::vector<std::string>& endpoints() const { return endpoints_; }
  void Kill(std::size_t member);  // kill -9
  void Restart(std::size_t member);

 private:
  TestServer() = default;
  bool TryStart(int members, const TestCertificates* certificates);
  bool Answers(std::size_t member) const;  // its port is open
  void Spawn(std::size_t member);
  std::string binary_;
  std::string dir_;
  std::vector<std::vector<std::string>> arguments_;
  std::vector<std::string> endpoints_;
  std::vector<int> ports_;  // of clients
  std::vector<pid_t> pids_;
};

}  // namespace keelson::kv::etcd
