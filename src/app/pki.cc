#include "app/pki.h"

#include <chrono>
#include <utility>

#include "app/files.h"
#include "app/x509.h"
#include "base/strings.h"

namespace keelson::app {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr hours kDay{24};
constexpr auto kAuthorityLife = kDay * 3650;
constexpr auto kAuthorityRenewBefore = kDay * 365;
constexpr auto kLeafLife = kDay * 365;
constexpr auto kLeafRenewBefore = kDay * 30;
constexpr auto kBackdate = hours{1};  // Clocks of clients may be behind.
constexpr mode_t kKeyMode = 0600, kCertMode = 0644;

struct Pair {
  x509::Certificate certificate;
  x509::Key key;
};

// The pair in the two files; nothing when one is missing or they do not belong together (a crash between two writes).
Outcome<std::optional<Pair>, Error> Load(const std::string& cert_path, const std::string& key_path) {
  if (!FileExists(cert_path) || !FileExists(key_path)) return std::optional<Pair>();
  KS_TRY(const std::string cert_text, ReadSmallFile(cert_path));
  KS_TRY(const std::string key_text, ReadSmallFile(key_path));
  auto certificate = x509::Certificate::Parse(cert_text);
  if (!certificate) return Error(cert_path + ": not a PEM certificate; remove it to have a new one made");
  auto key = x509::Key::Parse(key_text);
  if (!key) return Error(key_path + ": not a PEM private key; remove it to have a new one made");
  if (!certificate->BelongsTo(*key)) return std::optional<Pair>();
  return std::optional<Pair>(Pair{*std::move(certificate), *std::move(key)});
}

Outcome<void, Error> Save(const std::string& cert_path, const std::string& key_path, const Pair& pair,
                          std::vector<std::string>& made) {
  KS_RETURN_IF_ERROR(WriteFileAtomically(key_path, pair.key.PEM(), kKeyMode));
  made.push_back(key_path);
  KS_RETURN_IF_ERROR(WriteFileAtomically(cert_path, pair.certificate.PEM(), kCertMode));
  made.push_back(cert_path);
  return {};
}

Outcome<Pair, Error> Issue(x509::Template request, const Pair* authority, x509::KeyType type) {
  auto key = x509::Key::Generate(type);
  if (!key) return Error(std::string("cannot make a private key: ") + x509::LastError());
  auto certificate = x509::Certificate::Sign(request, *key, authority ? &authority->certificate : nullptr,
                                             authority ? authority->key : *key);
  if (!certificate) return Error(std::string("cannot make a certificate: ") + x509::LastError());
  return Pair{*std::move(certificate), *std::move(key)};
}

x509::Template Leaf(base::Clock::SystemTime now) {
  x509::Template leaf;
  leaf.not_before = now - kBackdate;
  leaf.not_after = leaf.not_before + kLeafLife;
  leaf.key_encipherment = true;
  return leaf;
}

// Keeps the pair on disk when it is still good, else issues and saves a new one.
Outcome<void, Error> EnsureLeaf(const std::string& cert_path, const std::string& key_path, const Pair& authority,
                                const x509::Template& wanted, base::Clock::SystemTime now,
                                std::vector<std::string>& made) {
  KS_TRY(const std::optional<Pair> present, Load(cert_path, key_path));
  if (present && present->certificate.SignedBy(authority.certificate) &&
      present->certificate.not_after() > now + kLeafRenewBefore && present->certificate.not_before() <= now &&
      present->certificate.Covers(wanted.dns_names, wanted.ip_addresses)) {
    return {};
  }
  KS_TRY(const Pair pair, Issue(wanted, &authority, x509::KeyType::kEC));
  return Save(cert_path, key_path, pair, made);
}

// The authority's pair; nothing when it is to be made: neither file is there, or it is the torn rest of a first start.
// A lost or foreign half is an error: a new authority would void every client certificate without a word.
Outcome<std::optional<Pair>, Error> LoadAuthority(const PKIFiles& files, base::Clock::SystemTime now) {
  const bool has_cert = FileExists(files.ca_cert), has_key = FileExists(files.ca_key);
  const bool in_use = FileExists(files.serving_cert) || FileExists(files.admin_cert);
  const std::string advice = "; put it back from a backup, or remove " + files.ca_cert + " and " + files.ca_key +
                             " to have a new authority made, which makes every issued certificate invalid";
  if (has_cert && !has_key) return Error(files.ca_key + " is missing, but " + files.ca_cert + " is there" + advice);
  if (has_key && !has_cert && in_use)
    return Error(files.ca_cert + " is missing, but " + files.ca_key + " is there" + advice);
  KS_TRY(std::optional<Pair> pair, Load(files.ca_cert, files.ca_key));
  if (pair || !has_cert) return pair;
  // Of two files the key is written first: a renewal that a crash tore apart has a new key beside an ending
  // certificate.
  KS_TRY(const std::string text, ReadSmallFile(files.ca_cert));
  const auto certificate = x509::Certificate::Parse(text);
  if (certificate && certificate->not_after() <= now + kAuthorityRenewBefore) return pair;
  return Error(files.ca_key + " is not the key of " + files.ca_cert + advice);
}

Outcome<void, Error> EnsureServiceAccountKey(const PKIFiles& files, std::vector<std::string>& made) {
  std::optional<x509::Key> key;
  if (!FileExists(files.sa_key) && FileExists(files.sa_pub)) {
    return Error(files.sa_key + " is missing, but " + files.sa_pub +
                 " is there; put it back from a backup, or remove both to have a new pair made, which makes every "
                 "issued token invalid");
  }
  if (FileExists(files.sa_key)) {
    KS_TRY(const std::string text, ReadSmallFile(files.sa_key));
    key = x509::Key::Parse(text);
    if (!key) return Error(files.sa_key + ": not a PEM private key; removing it makes every issued token invalid");
  } else {
    key = x509::Key::Generate(x509::KeyType::kEC);
    if (!key) return Error(std::string("cannot make a private key: ") + x509::LastError());
    KS_RETURN_IF_ERROR(WriteFileAtomically(files.sa_key, key->PEM(), kKeyMode));
    made.push_back(files.sa_key);
  }
  const std::string public_text = key->PublicPEM();
  if (FileExists(files.sa_pub)) {
    KS_TRY(const std::string present, ReadSmallFile(files.sa_pub));
    if (present == public_text) return {};
  }
  KS_RETURN_IF_ERROR(WriteFileAtomically(files.sa_pub, public_text, kCertMode));
  made.push_back(files.sa_pub);
  return {};
}

}  // namespace

Outcome<PKIResult, Error> EnsurePKI(const PKIRequest& request, const base::Clock& clock) {
  KS_RETURN_IF_ERROR(MakeDirectories(request.directory, 0700));
  const std::string& folder = request.directory;
  PKIResult result;
  PKIFiles& files = result.files;
  files = {folder + "/ca.crt",    folder + "/ca.key",    folder + "/apiserver.crt", folder + "/apiserver.key",
           folder + "/admin.crt", folder + "/admin.key", folder + "/sa.key",        folder + "/sa.pub"};
  const auto now = clock.Now();

  KS_TRY(std::optional<Pair> authority, LoadAuthority(files, now));
  if (!authority || authority->certificate.not_after() <= now + kAuthorityRenewBefore ||
      authority->certificate.not_before() > now) {
    x509::Template ca;
    ca.common_name = "keelson-ca";
    ca.not_before = now - kBackdate;
    ca.not_after = ca.not_before + kAuthorityLife;
    ca.is_authority = true;
    KS_TRY(Pair made, Issue(ca, nullptr, x509::KeyType::kEC));
    KS_RETURN_IF_ERROR(Save(files.ca_cert, files.ca_key, made, result.made));
    authority = std::move(made);
    result.made_ca = true;
  }

  x509::Template serving = Leaf(now);
  serving.common_name = "kube-apiserver";
  serving.server_auth = true;
  serving.dns_names = request.dns_names;
  serving.ip_addresses = request.ip_addresses;
  KS_RETURN_IF_ERROR(EnsureLeaf(files.serving_cert, files.serving_key, *authority, serving, now, result.made));

  x509::Template admin = Leaf(now);
  admin.common_name = "admin";
  admin.organizations = {"system:masters"};
  admin.client_auth = true;
  KS_RETURN_IF_ERROR(EnsureLeaf(files.admin_cert, files.admin_key, *authority, admin, now, result.made));

  KS_RETURN_IF_ERROR(EnsureServiceAccountKey(files, result.made));
  return result;
}

Outcome<bool, Error> EnsureKubeconfig(const std::string& path, const std::string& server, const PKIFiles& files) {
  KS_TRY(const std::string ca, ReadSmallFile(files.ca_cert));
  KS_TRY(const std::string certificate, ReadSmallFile(files.admin_cert));
  KS_TRY(const std::string key, ReadSmallFile(files.admin_key));
  std::string text = "apiVersion: v1\nkind: Config\nclusters:\n- name: keelson\n  cluster:\n";
  text += "    server: " + server + "\n    certificate-authority-data: " + base::Base64Encode(ca) + "\n";
  text += "users:\n- name: admin\n  user:\n    client-certificate-data: " + base::Base64Encode(certificate) + "\n";
  text += "    client-key-data: " + base::Base64Encode(key) + "\n";
  text += "contexts:\n- name: keelson\n  context:\n    cluster: keelson\n    user: admin\ncurrent-context: keelson\n";
  if (FileExists(path)) {
    KS_TRY(const std::string present, ReadSmallFile(path));
    if (present == text) return false;
  }
  KS_RETURN_IF_ERROR(WriteFileAtomically(path, text, kKeyMode));
  return true;
}

Outcome<bool, Error> MaybeDefaultWithSelfSignedCerts(const SelfSignedRequest& request, const base::Clock& clock) {
  const std::string cert_path = request.directory + "/apiserver.crt", key_path = request.directory + "/apiserver.key";
  const bool has_cert = FileExists(cert_path), has_key = FileExists(key_path);
  if (has_cert && has_key) return false;
  if (has_cert != has_key) {
    const auto& [present, missing] = has_cert ? std::pair{cert_path, key_path} : std::pair{key_path, cert_path};
    return Error("cannot read existing serving pair: " + present + " exists, but " + missing + " does not");
  }
  KS_RETURN_IF_ERROR(MakeDirectories(request.directory, 0755));

  const auto now = clock.Now();
  const std::string stamp = std::to_string(std::chrono::duration_cast<seconds>(now.time_since_epoch()).count());
  x509::Template ca = Leaf(now);
  ca.common_name = request.host + "-ca@" + stamp;
  ca.is_authority = true;
  KS_TRY(const Pair authority, Issue(ca, nullptr, x509::KeyType::kRSA2048));
  x509::Template leaf = Leaf(now);
  leaf.common_name = request.host + "@" + stamp;
  leaf.server_auth = true;
  leaf.ip_addresses = request.ip_addresses;
  leaf.dns_names = request.dns_names;
  KS_TRY(const Pair pair, Issue(leaf, &authority, x509::KeyType::kRSA2048));
  KS_RETURN_IF_ERROR(WriteFileAtomically(key_path, pair.key.PEM(), kKeyMode));
  KS_RETURN_IF_ERROR(WriteFileAtomically(cert_path, pair.certificate.PEM() + authority.certificate.PEM(), kCertMode));
  return true;
}

}  // namespace keelson::app
