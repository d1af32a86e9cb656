// Certificates and keys of the embedded default, and the self-signed serving pair of --cert-dir.
// Keys are EC P-256 (made in a fraction of a millisecond; RSA-2048 takes longer than the whole start may), except those
// of --cert-dir, which are RSA-2048 as upstream's are. Key files have mode 0600. Every file is written whole or not at
// all.
#pragma once

#include <string>
#include <vector>

#include "app/error.h"
#include "base/clock.h"
#include "base/outcome.h"

namespace keelson::app {

struct PKIFiles {
  std::string ca_cert, ca_key;            // pki/ca.crt, ca.key: signs serving and client certificates
  std::string serving_cert, serving_key;  // pki/apiserver.crt, .key
  std::string admin_cert, admin_key;      // pki/admin.crt, .key: CN=admin, O=system:masters
  std::string sa_key, sa_pub;             // pki/sa.key, sa.pub: service account tokens, ES256
};

struct PKIRequest {
  std::string directory;               // made with mode 0700 when missing
  std::vector<std::string> dns_names;  // of the serving certificate
  std::vector<std::string> ip_addresses;
};

struct PKIResult {
  PKIFiles files;
  bool made_ca = false;           // first start, or the authority itself was near its end
  std::vector<std::string> made;  // paths written this time
};

// Makes what is missing, renews what expires soon (leaf certificates 30 days, the authority a year before), what the
// authority did not sign, and a serving certificate that lacks a wanted name. Call it at start and then daily. A file
// that is there but is not what its name says is an error, not overwritten; so is the authority or the service account
// key of which one half is missing: a new one would make everything that was issued invalid.
Outcome<PKIResult, Error> EnsurePKI(const PKIRequest& request, const base::Clock& clock);

// A kubeconfig with everything inline, mode 0600, for `server` such as https://127.0.0.1:6443. Written only when it
// would change.
Outcome<bool, Error> EnsureKubeconfig(const std::string& path, const std::string& server, const PKIFiles& files);

// --cert-dir: apiserver.crt (leaf, then its authority) and apiserver.key under `directory`, made when neither is there
// and used as they are when both are. True when they were made.
struct SelfSignedRequest {
  std::string directory;
  std::string host;  // the advertise address: the subject, and the first name
  std::vector<std::string> ip_addresses;
  std::vector<std::string> dns_names;
};
Outcome<bool, Error> MaybeDefaultWithSelfSignedCerts(const SelfSignedRequest& request, const base::Clock& clock);

}  // namespace keelson::app
