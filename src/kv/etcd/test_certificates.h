// A certificate authority and certificates of it in PEM files, for tests with TLS.
#pragma once

#include <memory>
#include <string>

namespace keelson::kv::etcd {

class TestCertificates {
 public:
  explicit TestCertificates(std::string dir);  // an existing folder for the files
  ~TestCertificates();
  std::string ca_file() const { return dir_ + "/ca.crt"; }
  // Makes <dir>/<name>.crt and <name>.key, for both sides of a connection: the name is the common name, 127.0.0.1 its
  // address.
  void Issue(const std::string& name);
  std::string cert_file(const std::string& name) const { return dir_ + "/" + name + ".crt"; }
  std::string key_file(const std::string& name) const { return dir_ + "/" + name + ".key"; }

 private:
  struct Impl;
  const std::string dir_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kv::etcd
