#include "registry/rules/webhook.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "registry/fields.h"
#include "validation/primitives.h"

namespace keelson::registry::rules {
namespace {

using validation::Invalid;
using validation::Required;

constexpr std::string_view kForm = "; desired format: https://host[/path]";

struct URL {
  std::string_view scheme;
  std::string_view user;
  bool has_user = false;
  std::string_view host;
  std::string_view query;
  std::string_view fragment;
  std::string problem;  // why it does not parse
};

bool IsSchemeText(std::string_view text) {
  return !text.empty() && ((text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z') && std::ranges::all_of(text, [](char c) {
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

bool HasBadEscape(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && (i + 2 >= text.size() || !hex(text[i + 1]) || !hex(text[i + 2]))) return true;
  }
  return false;
}

// The subset of Go's url.Parse that the rules need.
URL ParseURL(std::string_view text) {
  URL url;
  const std::string_view whole = text;
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    url.problem = "net/url: invalid control character in URL";
  }
  if (const auto hash = text.find('#'); hash != std::string_view::npos) {
    url.fragment = text.substr(hash + 1);
    text = text.substr(0, hash);
  }
  const auto colon = text.find(':');
  if (colon == 0) url.problem = "missing protocol scheme";
  if (colon != std::string_view::npos && colon > 0) {
    if (IsSchemeText(text.substr(0, colon))) {
      url.scheme = text.substr(0, colon);
      text = text.substr(colon + 1);
    } else if (text.substr(0, colon).find('/') == std::string_view::npos) {
      url.problem = "first path segment in URL cannot contain colon";
    }
  }
  if (const auto question = text.find('?'); question != std::string_view::npos) {
    url.query = text.substr(question + 1);
    text = text.substr(0, question);
  }
  if (text.starts_with("//")) {
    text = text.substr(2);
    const auto slash = text.find('/');
    std::string_view authority = text.substr(0, slash);
    text = slash == std::string_view::npos ? std::string_view() : text.substr(slash);
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
      url.has_user = true;
      url.user = authority.substr(0, at);
      authority = authority.substr(at + 1);
    }
    url.host = authority;
    const auto port = authority.starts_with('[') ? authority.find("]:") : authority.rfind(':');
    if (authority.starts_with('[') && authority.find(']') == std::string_view::npos)
      url.problem = "missing ']' in host";
    if (port != std::string_view::npos) {
      const std::string_view digits = authority.substr(authority.starts_with('[') ? port + 2 : port + 1);
      if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) {
        url.problem = "invalid port " + base::GoQuote(":" + std::string(digits)) + " after host";
      }
    }
  }
  if (url.problem.empty() && HasBadEscape(text))
    url.problem = "invalid URL escape " + base::GoQuote(text.substr(text.find('%'), 3));
  if (!url.problem.empty()) url.problem = "parse " + base::GoQuote(whole) + ": " + url.problem;
  return url;
}

}  // namespace

void ValidateWebhookURL(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  const URL url = ParseURL(text);
  if (!url.problem.empty()) {
    errors.push_back(Required(path, "url must be a valid URL: " + url.problem + std::string(kForm)));
    return;
  }
  if (base::ToLower(url.scheme) != "https") {
    errors.push_back(Invalid(path, url.scheme, "'https' is the only allowed URL scheme" + std::string(kForm)));
  }
  if (url.host.empty()) errors.push_back(Invalid(path, url.host, "host must be specified" + std::string(kForm)));
  if (url.has_user) errors.push_back(Invalid(path, url.user, "user information is not permitted in the URL"));
  if (!url.fragment.empty()) errors.push_back(Invalid(path, url.fragment, "fragments are not permitted in the URL"));
  if (!url.query.empty()) errors.push_back(Invalid(path, url.query, "query parameters are not permitted in the URL"));
}

void ValidateWebhookService(const Value& service, const FieldPath& path, FieldErrors& errors) {
  // Each missing one is reported at the other's path: upstream passes them in the wrong order, and the texts are API.
  if (service["namespace"].as_string().empty()) errors.push_back(Required(path.Child("name")));
  if (service["name"].as_string().empty()) errors.push_back(Required(path.Child("namespace")));
  const std::int64_t port = service["port"].as_int();
  if (const validation::Messages messages = validation::IsValidPortNum(port); !messages.empty()) {
    errors.push_back(Invalid(path.Child("port"), Value(port), "port is not valid: " + base::Join(messages, ", ")));
  }
  const std::string_view url_path = service["path"].as_string();
  if (url_path.empty() || url_path == "/") return;
  const FieldPath at = path.Child("path");
  if (url_path == "//") {
    errors.push_back(Invalid(at, url_path, "segment[0] may not be empty"));
    return;
  }
  if (!url_path.starts_with('/')) errors.push_back(Invalid(at, url_path, "must start with a '/'"));
  std::string_view rest = url_path.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::size_t index = 0;
  for (const std::string_view step : base::Split(rest, '/')) {
    const std::string segment = "segment[" + std::to_string(index++) + "]";
    if (step.empty()) {
      errors.push_back(Invalid(at, url_path, segment + " may not be empty"));
      continue;
    }
    for (const std::string& message : validation::IsDNS1123Subdomain(step))
      errors.push_back(Invalid(at, url_path, segment + ": " + message));
  }
}

void ValidateWebhookClientConfig(const Value& config, const FieldPath& path, FieldErrors& errors) {
  const Value url = config["url"];
  const Value service = config["service"];
  if (url.is_null() == service.is_null()) {
    errors.push_back(Required(path, "exactly one of url or service is required"));
  } else if (!url.is_null()) {
    ValidateWebhookURL(url.as_string(), path.Child("url"), errors);
  } else {
    ValidateWebhookService(service, path.Child("service"), errors);
  }
}

bool IsAcceptedReviewVersion(std::string_view version) { return version == "v1" || version == "v1beta1"; }

void ValidateReviewVersions(const Value& versions, std::string_view missing, bool require_recognized,
                            const FieldPath& path, FieldErrors& errors) {
  if (versions.empty()) {
    errors.push_back(Required(path, missing));
    return;
  }
  std::set<std::string_view> seen;
  bool accepted = false;
  std::int64_t index = 0;
  for (const Value& item : versions.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view version = item.as_string();
    if (!seen.insert(version).second) {
      errors.push_back(Invalid(at, version, "duplicate version"));
      continue;
    }
    AddInvalid(at, version, validation::IsDNS1035Label(version), errors);
    accepted = accepted || IsAcceptedReviewVersion(version);
  }
  if (require_recognized && !accepted)
    errors.push_back(Invalid(path, versions, "must include at least one of v1, v1beta1"));
}

}  // namespace keelson::registry::rules
