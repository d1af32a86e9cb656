#include "app/commands/doctor_checks.h"
#include "app/files.h"
#include "app/x509.h"
#include "object/time.h"

namespace keelson::app {
namespace {

using std::chrono::hours;
constexpr const char* kArea = "certificates";
constexpr hours kDay{24};
constexpr hours kSoon = kDay * 30;

std::string Text(base::Clock::SystemTime time) {
  return object::FormatTime(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

bool JudgeTimes(const std::string& file, const x509::Certificate& certificate, base::Clock::SystemTime now,
                Findings& findings) {
  const auto left = certificate.not_after() - now;
  if (left.count() <= 0) {
    findings.Fail(kArea, file + " ended at " + Text(certificate.not_after()), "renew it; clients refuse it");
    return false;
  }
  if (certificate.not_before() > now) {
    findings.Fail(kArea, file + " is valid from " + Text(certificate.not_before()) + " on only",
                  "is this machine's clock right?");
    return false;
  }
  if (left < kSoon) {
    findings.Warn(kArea, file + " ends at " + Text(certificate.not_after()),
                  "renew it; those that the server made itself it renews at its next start or within a day");
    return false;
  }
  return true;
}

bool JudgeKey(const CertificatePair& pair, const x509::Certificate& certificate, Findings& findings) {
  if (pair.key_file.empty()) return true;
  const auto text = ReadSmallFile(pair.key_file);
  if (!text.ok()) {
    findings.Fail(kArea, text.error().message(), "put the file back, or name another");
    return false;
  }
  const auto key = x509::Key::Parse(*text);
  if (!key || !certificate.BelongsTo(*key)) {
    findings.Fail(kArea, pair.key_file + " is not the key of " + pair.cert_file, "name the pair that belongs together");
    return false;
  }
  return true;
}

bool JudgeAuthority(const CertificatePair& pair, const x509::Certificate& certificate, Findings& findings) {
  if (pair.ca_file.empty()) return true;
  const auto text = ReadSmallFile(pair.ca_file);
  const auto authority = text.ok() ? x509::Certificate::Parse(*text) : std::nullopt;
  if (!authority || certificate.SignedBy(*authority)) return true;  // an unreadable one has its own line
  findings.Fail(kArea, pair.cert_file + " is not signed by " + pair.ca_file,
                "remove the pair: the next start makes a new one");
  return false;
}

}  // namespace

std::vector<CertificatePair> CertificatesOf(const CompletedOptions& completed) {
  const ServerRunOptions& o = completed.options;
  std::vector<CertificatePair> pairs;
  const auto add = [&pairs](std::string cert, std::string key, std::string ca = "") {
    if (!cert.empty()) pairs.push_back({std::move(cert), std::move(key), std::move(ca)});
  };
  add(o.secure_serving.cert_file, o.secure_serving.private_key_file);
  for (const auto& pair : o.secure_serving.sni_cert_keys) add(pair.cert_file, pair.key_file);
  add(o.authentication.client_ca_file, "");
  add(o.authentication.request_header.client_ca_file, "");
  add(o.etcd.ca_file, "");
  add(o.etcd.cert_file, o.etcd.key_file);
  add(o.extra.kubelet_ca_file, "");
  add(o.extra.kubelet_cert_file, o.extra.kubelet_key_file);
  add(o.extra.proxy_client_cert_file, o.extra.proxy_client_key_file);
  const std::string pki = o.keelson.data_dir + "/pki";
  if (!completed.embedded || !FileExists(pki)) return pairs;
  add(pki + "/ca.crt", FileExists(pki + "/ca.key") ? pki + "/ca.key" : "");
  for (const char* const name : {"apiserver", "admin"}) {
    const std::string file = pki + "/" + name;
    if (FileExists(file + ".crt")) add(file + ".crt", file + ".key", pki + "/ca.crt");
  }
  return pairs;
}

void CheckCertificate(const CertificatePair& pair, base::Clock::SystemTime now, Findings& findings) {
  const auto text = ReadSmallFile(pair.cert_file);
  if (!text.ok()) {
    findings.Fail(kArea, text.error().message(), "put the file back, or name another");
    return;
  }
  const auto certificate = x509::Certificate::Parse(*text);
  if (!certificate) {
    findings.Fail(kArea, pair.cert_file + " is not a PEM certificate", "put the right file there");
    return;
  }
  const bool times = JudgeTimes(pair.cert_file, *certificate, now, findings);
  const bool key = JudgeKey(pair, *certificate, findings);
  const bool authority = JudgeAuthority(pair, *certificate, findings);
  if (times && key && authority) findings.OK(kArea, pair.cert_file + " until " + Text(certificate->not_after()));
}

void CheckKeys(const std::string& pki_folder, Findings& findings) {
  struct Half {
    const char *secret, *open, *voids;
  };
  constexpr Half kHalves[] = {{"ca.key", "ca.crt", "every issued certificate"},
                              {"sa.key", "sa.pub", "every issued token"}};
  for (const Half& half : kHalves) {
    const std::string secret = pki_folder + "/" + half.secret, open = pki_folder + "/" + half.open;
    if (FileExists(secret) || !FileExists(open)) continue;
    findings.Fail(kArea, secret + " is missing, but " + open + " is there",
                  std::string("put it back from a backup; without it the server does not start, and a new one voids ") +
                      half.voids);
  }
}

}  // namespace keelson::app
