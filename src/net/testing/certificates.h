// Certificates for tests, made on the spot: a CA and what it signs. Slow paths of OpenSSL are avoided (EC keys).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace keelson::net::testing {

struct KeyPair {
  std::string cert_pem;
  std::string key_pem;
};

class Authority {
 public:
  explicit Authority(const std::string& common_name);
  ~Authority();
  const std::string& cert_pem() const;
  // `names` are DNS names or IP addresses; `organizations` go into the subject as O.
  KeyPair Issue(const std::string& common_name, const std::vector<std::string>& names,
                const std::vector<std::string>& organizations = {}) const;
  // The same, valid from an hour ago until `seconds` from now (negative: expired).
  KeyPair IssueUntil(const std::string& common_name, const std::vector<std::string>& names, long seconds) const;

 private:
  KeyPair IssueWith(const std::string& common_name, const std::vector<std::string>& names,
                    const std::vector<std::string>& organizations, long from, long until) const;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::net::testing
