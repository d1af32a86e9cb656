#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "registry/networking/strategies.h"
#include "registry/rules/address.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "validation/net.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Invalid;
using validation::Required;

constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";
constexpr std::string_view kPathSequencesRefused[] = {"//", "/./", "/../", "%2f", "%2F"};
constexpr std::string_view kPathSuffixesRefused[] = {"/..", "/."};

struct Options {
  bool allow_invalid_secret_name = false;
  bool allow_invalid_wildcard_rule = false;
};

void ValidatePathSegment(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path));
  } else {
    AddInvalid(path, text, validation::IsValidPathSegmentName(text), errors);
  }
}

void ValidateResourceBackend(const Value& reference, const FieldPath& path, FieldErrors& errors) {
  if (const Value group = reference["apiGroup"]; !group.is_null()) {
    AddInvalid(path.Child("apiGroup"), group.as_string(), validation::IsDNS1123Subdomain(group.as_string()), errors);
  }
  ValidatePathSegment(reference["kind"].as_string(), path.Child("kind"), errors);
  ValidatePathSegment(reference["name"].as_string(), path.Child("name"), errors);
}

void ValidateServiceBackend(const Value& service, const FieldPath& backend_path, FieldErrors& errors) {
  const FieldPath path = backend_path.Child("service");
  const std::string_view name = service["name"].as_string();
  if (name.empty()) {
    errors.push_back(Required(path.Child("name")));
  } else {
    AddInvalid(path.Child("name"), name, validation::NameIsDNSLabel(name, false), errors);
  }
  const FieldPath port_path = path.Child("port");
  const std::string_view port_name = service["port"]["name"].as_string();
  const Value number = service["port"]["number"];
  const bool has_number = number.as_int() != 0;
  if (!port_name.empty() && has_number) {
    errors.push_back(Invalid(backend_path, "", "cannot set both port name & port number"));
  } else if (!port_name.empty()) {
    AddInvalid(port_path.Child("name"), port_name, validation::IsValidPortName(port_name), errors);
  } else if (has_number) {
    for (const std::string& message : validation::IsValidPortNum(number.as_int())) {
      errors.push_back(Invalid(port_path.Child("number"), number, message));
    }
  } else {
    errors.push_back(Required(backend_path, "port name or number is required"));
  }
}

void ValidateBackend(const Value& backend, const FieldPath& path, FieldErrors& errors) {
  const Value resource = backend["resource"];
  const Value service = backend["service"];
  if (!resource.is_null() && !service.is_null()) {
    errors.push_back(Invalid(path, "", "cannot set both resource and service backends"));
  } else if (!resource.is_null()) {
    ValidateResourceBackend(resource, path.Child("resource"), errors);
  } else if (!service.is_null()) {
    ValidateServiceBackend(service, path, errors);
  } else {
    errors.push_back(Invalid(path, "", "resource or service backend is required"));
  }
}

void ValidateHTTPPath(const Value& item, const FieldPath& path, FieldErrors& errors) {
  const Value type = item["pathType"];
  if (type.is_null()) {
    errors.push_back(Required(path.Child("pathType"), "pathType must be specified"));
    return;
  }
  const std::string_view text = item["path"].as_string();
  const FieldPath text_path = path.Child("path");
  const std::string_view kind = type.as_string();
  if (kind == "Exact" || kind == "Prefix") {
    if (!text.starts_with('/')) errors.push_back(Invalid(text_path, text, "must be an absolute path"));
    for (const std::string_view refused : kPathSequencesRefused) {
      if (text.find(refused) != std::string_view::npos) {
        errors.push_back(Invalid(text_path, text, "must not contain '" + std::string(refused) + "'"));
      }
    }
    for (const std::string_view refused : kPathSuffixesRefused) {
      if (text.ends_with(refused))
        errors.push_back(Invalid(text_path, text, "cannot end with '" + std::string(refused) + "'"));
    }
  } else if (kind == "ImplementationSpecific") {
    if (!text.empty() && !text.starts_with('/')) errors.push_back(Invalid(text_path, text, "must be an absolute path"));
  } else {
    NotSupportedValue(path.Child("pathType"), kind, {"Exact", "ImplementationSpecific", "Prefix"}, errors);
  }
  ValidateBackend(item["backend"], path.Child("backend"), errors);
}

void ValidateRuleValue(const Value& rule, const FieldPath& path, FieldErrors& errors) {
  const Value http = rule["http"];
  if (http.is_null()) return;
  const FieldPath http_path = path.Child("http");
  const FieldPath paths_path = http_path.Child("paths");
  if (http["paths"].empty()) errors.push_back(Required(paths_path));
  std::int64_t index = 0;
  for (const Value& item : http["paths"].items()) ValidateHTTPPath(item, paths_path.Index(index++), errors);
}

Messages HostMessages(std::string_view host) {
  return host.find('*') != std::string_view::npos ? validation::IsWildcardDNS1123Subdomain(host)
                                                  : validation::IsDNS1123Subdomain(host);
}

void ValidateIngressRules(const Value& spec, const FieldPath& spec_path, const Options& options, FieldErrors& errors) {
  const FieldPath path = spec_path.Child("rules");
  std::int64_t index = 0;
  for (const Value& rule : spec["rules"].items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view host = rule["host"].as_string();
    if (!host.empty()) {
      if (validation::ParseIPSloppy(host).has_value())
        errors.push_back(Invalid(at.Child("host"), host, "must be a DNS name, not an IP address"));
      AddInvalid(at.Child("host"), host, HostMessages(host), errors);
    }
    const bool wildcard = host.find('*') != std::string_view::npos;
    if (!wildcard || !options.allow_invalid_wildcard_rule) ValidateRuleValue(rule, at, errors);
  }
}

Messages SecretNameMessages(std::string_view name) {
  return name.empty() ? Messages{} : validation::NameIsDNSSubdomain(name, false);
}

void ValidateTLS(const Value& spec, const FieldPath& spec_path, const Options& options, FieldErrors& errors) {
  const FieldPath path = spec_path.Child("tls");
  std::int64_t index = 0;
  for (const Value& tls : spec["tls"].items()) {
    const FieldPath at = path.Index(index++);
    const FieldPath hosts_path = at.Child("hosts");
    std::int64_t i = 0;
    for (const Value& host : tls["hosts"].items())
      AddInvalid(hosts_path.Index(i++), host.as_string(), HostMessages(host.as_string()), errors);
    if (options.allow_invalid_secret_name) continue;
    const std::string_view secret = tls["secretName"].as_string();
    AddInvalid(at.Child("secretName"), secret, SecretNameMessages(secret), errors);
  }
}

void ValidateSpec(const Value& spec, const Options& options, FieldErrors& errors) {
  const FieldPath path("spec");
  if (spec["rules"].empty() && spec["defaultBackend"].is_null()) {
    const Value rules = spec["rules"];
    errors.push_back(Invalid(path, rules, "either `defaultBackend` or `rules` must be specified"));
  }
  if (const Value backend = spec["defaultBackend"]; !backend.is_null())
    ValidateBackend(backend, path.Child("defaultBackend"), errors);
  ValidateIngressRules(spec, path, options, errors);
  ValidateTLS(spec, path, options, errors);
  if (const Value name = spec["ingressClassName"]; !name.is_null()) {
    AddInvalid(path.Child("ingressClassName"), name.as_string(),
               validation::NameIsDNSSubdomain(name.as_string(), false), errors);
  }
}

void ValidateIngress(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateSpec(object["spec"], {}, errors);
  const Value annotation = object["metadata"]["annotations"][kClassAnnotation];
  const Value name = object["spec"]["ingressClassName"];
  if (!annotation.is_null() && !name.is_null() && annotation.as_string() != name.as_string()) {
    const FieldPath annotations("annotations");
    errors.push_back(Invalid(annotations.Child(kClassAnnotation), annotation,
                             "must match `ingressClassName` when both are specified"));
  }
}

void ValidateIngressUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  Options options;
  for (const Value& tls : old["spec"]["tls"].items()) {
    if (!SecretNameMessages(tls["secretName"].as_string()).empty()) options.allow_invalid_secret_name = true;
  }
  for (const Value& rule : old["spec"]["rules"].items()) {
    if (rule["host"].as_string().find('*') == std::string_view::npos) continue;
    FieldErrors old_errors;
    ValidateRuleValue(rule, FieldPath("old"), old_errors);
    if (!old_errors.empty()) options.allow_invalid_wildcard_rule = true;
  }
  ValidateMetaUpdate(object, old, errors);
  ValidateMeta(object, true, validation::NameIsDNSSubdomain, errors);
  ValidateSpec(object["spec"], options, errors);
}

void ValidateIngressStatusUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  std::vector<std::string_view> old_ips;
  for (const Value& ingress : old["status"]["loadBalancer"]["ingress"].items()) {
    if (const std::string_view ip = ingress["ip"].as_string(); !ip.empty()) old_ips.push_back(ip);
  }
  const FieldPath status("status");
  const FieldPath balancer = status.Child("loadBalancer");
  const FieldPath path = balancer.Child("ingress");
  std::int64_t index = 0;
  for (const Value& ingress : object["status"]["loadBalancer"]["ingress"].items()) {
    const FieldPath at = path.Index(index++);
    if (const std::string_view ip = ingress["ip"].as_string(); !ip.empty()) {
      validation::ValidateIPForLegacyField(ip, at.Child("ip"), old_ips, AddressRulesOf(call), errors);
    }
    if (const std::string_view host = ingress["hostname"].as_string(); !host.empty()) {
      AddInvalid(at.Child("hostname"), host, validation::IsDNS1123Subdomain(host), errors);
      if (validation::ParseIPSloppy(host).has_value())
        errors.push_back(Invalid(at.Child("hostname"), host, "must be a DNS name, not an IP address"));
    }
  }
}

void WarningsOnCreate(const Call& call, Value object, Value) {
  if (object["metadata"]["annotations"].Has(kClassAnnotation) && object["spec"]["ingressClassName"].is_null()) {
    call.warnings.push_back(
        "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead");
  }
}

void WarningsOnStatusUpdate(const Call& call, Value object, Value) {
  const FieldPath status("status");
  const FieldPath balancer = status.Child("loadBalancer");
  const FieldPath path = balancer.Child("ingress");
  std::int64_t index = 0;
  for (const Value& ingress : object["status"]["loadBalancer"]["ingress"].items()) {
    const FieldPath at = path.Index(index++);
    if (const std::string_view ip = ingress["ip"].as_string(); !ip.empty()) WarnAboutIP(at, ip, call.warnings);
  }
}

std::string FormatHosts(const Value& rules) {
  constexpr std::size_t kHostsMax = 3;
  std::vector<std::string> hosts;
  bool more = false;
  for (const Value& rule : rules.items()) {
    if (hosts.size() == kHostsMax) more = true;
    if (const std::string_view host = rule["host"].as_string(); !more && !host.empty()) hosts.emplace_back(host);
  }
  if (hosts.empty()) return "*";
  std::string text = base::Join(hosts, ",");
  if (more) text += " + " + std::to_string(rules.size() - kHostsMax) + " more...";
  return text;
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  std::set<std::string> addresses;
  for (const Value& ingress : object["status"]["loadBalancer"]["ingress"].items()) {
    const std::string_view ip = ingress["ip"].as_string();
    const std::string_view address = ip.empty() ? ingress["hostname"].as_string() : ip;
    if (!address.empty()) addresses.emplace(address);
  }
  cells.Append(arena, NameCell(object));
  cells.Append(arena, spec["ingressClassName"].is_null() ? Value("<none>") : spec["ingressClassName"]);
  cells.Append(arena, Value::String(arena, FormatHosts(spec["rules"])));
  cells.Append(arena, Value::String(arena, base::Join({addresses.begin(), addresses.end()}, ",")));
  cells.Append(arena, spec["tls"].empty() ? "80" : "80, 443");
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"spec"};

}  // namespace

constexpr Strategy kIngressStrategy = {
    .group = "networking.k8s.io",
    .kind = "Ingress",
    .generation = Generation::kSpec,
    .has_status = true,
    .validate = ValidateIngress,
    .warnings_on_create = WarningsOnCreate,
    .update = {.validate_update = ValidateIngressUpdate, .reset_fields = kMainReset},
    .status = {.validate_update = ValidateIngressStatusUpdate,
               .warnings_on_update = WarningsOnStatusUpdate,
               .reset_fields = kStatusReset},
    .table_row = Row,
};

}  // namespace keelson::registry
