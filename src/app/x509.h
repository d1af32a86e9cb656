// Making and checking X.509 certificates: the little of OpenSSL the start of the server needs, without its headers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace keelson::app::x509 {

enum class KeyType { kEC, kRSA2048 };  // P-256

std::string LastError();  // OpenSSL's last reason, "" when there is none

class Key {
 public:
  static std::optional<Key> Generate(KeyType type);
  static std::optional<Key> Parse(std::string_view pem);  // EC, RSA or PKCS#8 private key
  Key(Key&&) noexcept;
  Key& operator=(Key&&) noexcept;
  ~Key();

  std::string PEM() const;        // "EC PRIVATE KEY" or "RSA PRIVATE KEY"
  std::string PublicPEM() const;  // "PUBLIC KEY"

  struct Impl;
  explicit Key(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct Template {
  std::string common_name;
  std::vector<std::string> organizations;
  base::Clock::SystemTime not_before, not_after;
  bool is_authority = false;
  bool key_encipherment = false;
  bool server_auth = false, client_auth = false;
  std::vector<std::string> dns_names, ip_addresses;
};

class Certificate {
 public:
  static std::optional<Certificate> Parse(std::string_view pem);  // the first one in it
  // `issuer` null: signed by itself.
  static std::optional<Certificate> Sign(const Template& request, const Key& key, const Certificate* issuer,
                                         const Key& issuer_key);
  Certificate(Certificate&&) noexcept;
  Certificate& operator=(Certificate&&) noexcept;
  ~Certificate();

  std::string PEM() const;
  base::Clock::SystemTime not_before() const;
  base::Clock::SystemTime not_after() const;
  std::string common_name() const;
  std::vector<std::string> organizations() const;
  bool BelongsTo(const Key& key) const;
  bool SignedBy(const Certificate& issuer) const;
  // True when every one of the names is among the subject alternative names.
  bool Covers(const std::vector<std::string>& dns_names, const std::vector<std::string>& ip_addresses) const;

  struct Impl;
  explicit Certificate(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::app::x509
