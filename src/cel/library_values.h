// Values of the Kubernetes libraries: URLs, semantic versions, named formats, the authorizer.
// Ownership: they live in the arena of the evaluation; texts are views into it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "cel/value.h"

namespace keelson::cel {

struct URL {
  std::string_view scheme;
  std::string_view host;
  std::string_view hostname;
  std::string_view port;
  std::string_view escaped_path;
  std::string_view raw_query;
  std::string_view text;  // as Go's URL.String() writes it
};

struct Semver {
  struct Identifier {
    std::string_view text;  // "" for a number
    std::uint64_t number = 0;
  };
  std::uint64_t major = 0, minor = 0, patch = 0;
  std::span<const Identifier> prerelease;
  std::span<const std::string_view> build;
};

// blang/semver's Parse, with its error texts; texts stay in `text`, which must outlive the result.
Outcome<Semver, std::string> ParseSemver(Arena& arena, std::string_view text);
// The same after normalizing: a leading v and leading zeros are dropped, missing parts are filled up.
Outcome<Semver, std::string> ParseSemverNormalized(Arena& arena, std::string_view text);
int CompareSemver(const Semver& a, const Semver& b);
std::string SemverText(const Semver& version);

struct NamedFormat {
  std::string_view key;   // format.<key>()
  std::string_view name;  // as shown
  std::vector<std::string> (*validate)(std::string_view text);
  std::uint64_t regex_size;  // for the cost of validate()
};
const NamedFormat* FindNamedFormat(std::string_view key);

// Authorization checks of authorizer.…check(…). The caller decides the subject: the request's user, or the service
// account that the expression names.
class AuthorizerFunctions {
 public:
  struct Attributes {
    bool resource_request = false;
    std::string_view verb;
    std::string_view path;  // non-resource requests
    std::string_view group, resource, subresource, namespace_name, name;
    std::string_view field_selector, label_selector;                   // "" = none; not parsed
    std::string_view service_account_namespace, service_account_name;  // "" = the user of the request
  };
  struct Decision {
    enum class Verdict : std::uint8_t { kDeny, kAllow, kNoOpinion };
    Verdict verdict = Verdict::kNoOpinion;
    std::string reason;
    std::optional<std::string> error;
  };
  virtual ~AuthorizerFunctions() = default;
  // nullopt: the answer is not known yet. The evaluation ends with Result::pending; evaluate again once it is.
  virtual std::optional<Decision> Authorize(const Attributes& attributes) = 0;
};

// Authorizer, PathCheck, GroupCheck, ResourceCheck and Decision in one record: each step of the builder copies it.
struct AuthorizerObject {
  AuthorizerFunctions* functions = nullptr;
  AuthorizerFunctions::Attributes attributes;
  AuthorizerFunctions::Decision::Verdict verdict = AuthorizerFunctions::Decision::Verdict::kNoOpinion;
  std::string_view reason;
  std::string_view error;
  bool errored = false;
};
// The variable `authorizer`; `functions` must outlive the evaluation.
Val NewAuthorizer(Arena& arena, AuthorizerFunctions* functions);
// authorizer.requestResource.
Val NewResourceAuthorizer(Arena& arena, AuthorizerFunctions* functions,
                          const AuthorizerFunctions::Attributes& attributes);

}  // namespace keelson::cel
