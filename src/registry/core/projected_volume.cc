#include "registry/core/projected_volume.h"

#include "base/strings.h"
#include "registry/core/downward_api.h"
#include "registry/core/hub.h"
#include "registry/core/paths.h"
#include "registry/core/volume_sources.h"

namespace keelson::registry::core {
namespace {

constexpr std::int64_t kTokenSecondsMin = 10 * 60;
constexpr std::int64_t kTokenSecondsMax = std::int64_t{1} << 32;
constexpr std::int64_t kCertificateSecondsMin = 3600;
constexpr std::int64_t kCertificateSecondsMax = 91 * 86400;
constexpr std::int64_t kKubernetesCertificateSecondsMax = 86400;
constexpr std::string_view kKeyTypes[] = {"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"};

// example.com/signer-name.
void CheckSignerName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  constexpr std::size_t kDomainBytesMax = 253;
  constexpr std::size_t kNameBytesMax = kDomainBytesMax + 1 + 63 + 1 + 253;  // <domain>/<namespace>.<name>
  if (name.empty()) return errors.push_back(Required(path));
  const auto segments = base::Split(name, '/');
  if (segments.size() != 2) {
    return errors.push_back(
        Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'"));
  }
  const auto check_labels = [&](std::string_view segment, auto&& rule) {
    const auto labels = base::Split(segment, '.');
    for (const std::string_view label : labels) {
      const Messages messages = rule(label);
      for (const std::string& message : messages) {
        errors.push_back(Invalid(path, segment, "validating label " + base::GoQuote(label) + ": " + message));
      }
      if (!messages.empty()) break;  // more would only repeat it
    }
    return labels.size();
  };
  if (segments[0].size() > kDomainBytesMax) errors.push_back(validation::TooLong(path, kDomainBytesMax));
  if (check_labels(segments[0], validation::IsDNS1123Label) < 2) {
    errors.push_back(Invalid(path, segments[0], "should be a domain with at least two segments separated by dots"));
  }
  check_labels(segments[1], validation::IsDNS1123Subdomain);
  if (name.size() > kNameBytesMax) errors.push_back(validation::TooLong(path, kNameBytesMax));
}

// All sources write into one directory: `paths` collects what is taken.
class Projection {
 public:
  Projection(const PodOptions& options, const FieldPath& path, FieldErrors& errors)
      : options_(options), path_(path), errors_(errors) {}

  void Check(Value source, std::int64_t index) {
    const FieldPath sources = path_.Child("sources");
    const FieldPath at = sources.Index(index);
    int kinds = 0;
    for (const std::string_view key : {"secret", "configMap"}) {
      if (!IsSet(source, key)) continue;
      ++kinds;
      Keyed(source[key], at.Child(key));
    }
    if (IsSet(source, "downwardAPI")) {
      ++kinds;
      for (const Value file : source["downwardAPI"]["items"].items()) {
        CheckDownwardAPIFile(file, at.Child("downwardAPI"), errors_);
        if (!Text(file, "path").empty()) Take(Text(file, "path"), Text(file, "path"));
      }
    }
    if (IsSet(source, "serviceAccountToken")) {
      ++kinds;
      Token(source["serviceAccountToken"], at.Child("serviceAccountToken"));
    }
    if (IsSet(source, "clusterTrustBundle")) {
      ++kinds;
      TrustBundle(source["clusterTrustBundle"], at.Child("clusterTrustBundle"));
    }
    if (IsSet(source, "podCertificate")) {
      ++kinds;
      Certificate(source["podCertificate"], at.Child("podCertificate"));
    }
    if (kinds > 1) errors_.push_back(Forbidden(at, "may not specify more than 1 volume type per source"));
  }

 private:
  void Take(std::string_view path, std::string_view shown) {
    if (!paths_.emplace(path).second) errors_.push_back(Invalid(path_, shown, "conflicting duplicate paths"));
  }

  void Keyed(Value source, const FieldPath& at) {
    RequireText(source, "name", at, errors_);
    const FieldPath items = at.Child("items");
    std::int64_t index = 0;
    for (const Value item : source["items"].items()) {
      CheckKeyToPath(item, items.Index(index++), errors_);
      if (!Text(item, "path").empty()) Take(Text(item, "path"), Text(source, "name"));
    }
  }

  void Token(Value token, const FieldPath& at) {
    const std::int64_t seconds = Int(token, "expirationSeconds");
    const FieldPath expiration = at.Child("expirationSeconds");
    if (seconds < kTokenSecondsMin)
      errors_.push_back(Invalid(expiration, Value(seconds), "may not specify a duration less than 10 minutes"));
    if (seconds > kTokenSecondsMax)
      errors_.push_back(Invalid(expiration, Value(seconds), "may not specify a duration larger than 2^32 seconds"));
    if (Text(token, "path").empty()) {
      errors_.push_back(Required(path_.Child("path")));
    } else if (!options_.allow_non_local_token_path) {
      CheckLocalNonReservedPath(Text(token, "path"), path_.Child("path"), errors_);
    }
  }

  void TrustBundle(Value bundle, const FieldPath& at) {
    const bool by_name = IsSet(bundle, "name"), by_signer = IsSet(bundle, "signerName");
    if (by_name && by_signer) {
      errors_.push_back(InvalidHub(at, CoreHubTypes(), bundle, "ClusterTrustBundleProjection",
                                   "only one of name and signerName may be used"));
    } else if (by_name) {
      const std::string_view name = Text(bundle, "name");
      if (name.empty()) errors_.push_back(Required(at.Child("name"), "must be a valid object name"));
      for (const std::string& message : validation::IsDNS1123Subdomain(base::ReplaceAll(name, ":", "."))) {
        errors_.push_back(Invalid(at.Child("name"), name, "not a valid clustertrustbundlename: " + message));
      }
      if (IsSet(bundle, "labelSelector")) {
        errors_.push_back(InvalidHub(at.Child("labelSelector"), CoreHubTypes(), bundle["labelSelector"],
                                     "~LabelSelector", "labelSelector must be unset if name is specified"));
      }
    } else if (by_signer) {
      if (Text(bundle, "signerName").empty())
        errors_.push_back(Required(at.Child("signerName"), "must be a valid signer name"));
      CheckSignerName(Text(bundle, "signerName"), at.Child("signerName"), errors_);
      validation::ValidateLabelSelector(bundle["labelSelector"], at.Child("labelSelector"), errors_);
    } else {
      errors_.push_back(Required(at, "either name or signerName must be specified"));
    }
    RequireText(bundle, "path", at, errors_);
    CheckLocalNonReservedPath(Text(bundle, "path"), at.Child("path"), errors_);
    Take(Text(bundle, "path"), Text(bundle, "path"));
  }

  void Certificate(Value certificate, const FieldPath& at) {
    CheckSignerName(Text(certificate, "signerName"), at.Child("signerName"), errors_);
    for (const object::Member& annotation : SortedMembers(certificate["userAnnotations"])) {
      validation::ValidateDomainPrefixedKey(base::ToLower(annotation.key), at.Child("userAnnotations"), errors_);
    }
    CheckOneOf(certificate["keyType"], kKeyTypes, at.Child("keyType"), errors_);
    if (const Value seconds = certificate["maxExpirationSeconds"]; !seconds.is_null()) {
      const FieldPath path = at.Child("maxExpirationSeconds");
      const std::int64_t most = Text(certificate, "signerName").starts_with("kubernetes.io/")
                                    ? kKubernetesCertificateSecondsMax
                                    : kCertificateSecondsMax;
      if (seconds.as_int() < kCertificateSecondsMin) {
        errors_.push_back(Invalid(path, seconds, "if provided, maxExpirationSeconds must be >= 3600"));
      }
      if (seconds.as_int() > most) {
        errors_.push_back(
            Invalid(path, seconds, "if provided, maxExpirationSeconds must be <= " + std::to_string(most)));
      }
    }
    bool any = false;
    for (const std::string_view key : {"credentialBundlePath", "keyPath", "certificateChainPath"}) {
      const std::string_view path = Text(certificate, key);
      if (path.empty()) continue;
      any = true;
      CheckLocalNonReservedPath(path, at.Child(key), errors_);
      Take(path, path);
    }
    if (!any)
      errors_.push_back(
          Required(at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"));
  }

  const PodOptions& options_;
  const FieldPath& path_;
  FieldErrors& errors_;
  NameSet paths_;
};

}  // namespace

void ValidateProjectedSource(Value source, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  CheckFileMode(source, "defaultMode", path, errors);
  Projection projection(options, path, errors);
  std::int64_t index = 0;
  for (const Value one : source["sources"].items()) projection.Check(one, index++);
}

void CheckDownwardAPIFile(Value file, const FieldPath& path, FieldErrors& errors) {
  RequireText(file, "path", path, errors);
  CheckLocalNonReservedPath(Text(file, "path"), path.Child("path"), errors);
  if (IsSet(file, "fieldRef")) {
    CheckFieldRef(file["fieldRef"], DownwardUse::kVolume, path.Child("fieldRef"), errors);
    if (IsSet(file, "resourceFieldRef")) {
      errors.push_back(Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"));
    }
  } else if (IsSet(file, "resourceFieldRef")) {
    CheckResourceFieldRef(file["resourceFieldRef"], DownwardUse::kVolume, path.Child("resourceFieldRef"), errors);
  } else {
    errors.push_back(Required(path, "one of fieldRef and resourceFieldRef is required"));
  }
  CheckFileMode(file, "mode", path, errors);
}

}  // namespace keelson::registry::core
