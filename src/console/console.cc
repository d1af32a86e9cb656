#include "console/console.h"

#include <algorithm>
#include <string>
#include <utility>

#include "console/audit_pages.h"
#include "console/files.h"
#include "console/paths.h"
#include "console/yaml_page.h"
#include "endpoints/static_file.h"

namespace keelson::console {
namespace {

constexpr std::string_view kIndex = "index.html";

std::string_view TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

bool IsPublic(const auth::Attributes& attributes) {
  if (attributes.resource_request) return false;
  const std::string_view path = attributes.path;
  const auto is = [&](std::string_view verb, std::string_view name) { return attributes.verb == verb && path == name; };
  if (is("get", kNamespacesPath) || is("post", kYAMLPath))
    return std::ranges::find(attributes.user->groups, request::kAuthenticated) != attributes.user->groups.end();
  if (attributes.verb == "post") return path.starts_with(kSessionPrefix);
  return attributes.verb == "get" && (path == kRoot || (path.starts_with(kPrefix) && !path.starts_with(kAPIPrefix)));
}

class PagesAuthorizer final : public auth::Authorizer {
 public:
  explicit PagesAuthorizer(std::shared_ptr<auth::Authorizer> next) : next_(std::move(next)) {}
  Awaitable<auth::Authorization> Authorize(const auth::Attributes& attributes) override {
    if (IsPublic(attributes)) co_return Allowed();
    co_return co_await next_->Authorize(attributes);
  }
  std::optional<auth::Authorization> TryAuthorize(const auth::Attributes& attributes) override {
    return IsPublic(attributes) ? Allowed() : next_->TryAuthorize(attributes);
  }

 private:
  static auth::Authorization Allowed() {
    return {.decision = auth::Decision::kAllow, .reason = "pages of the console are public", .error = ""};
  }
  const std::shared_ptr<auth::Authorizer> next_;
};

}  // namespace

void InstallConsole(server::PathMux& mux, ConsoleParts parts) {
  if (parts.sign_in) InstallSignIn(mux, std::move(parts.sign_in));
  if (parts.tail) InstallAudit(mux, std::move(parts.tail));
  if (parts.store) InstallStore(mux, std::move(parts.store));
  if (parts.rules) InstallNamespaces(mux, std::move(parts.rules), std::move(parts.namespaces));
  InstallYAML(mux);
  for (const File& file : kFiles) {
    const endpoints::StaticFile served{.bytes = file.bytes, .type = TypeOf(file.name)};
    mux.Unlisted(std::string(kPrefix) + std::string(file.name), endpoints::NewStaticFile(served));
    if (file.name != kIndex) continue;
    for (const std::string_view path : {kRoot, kPrefix})
      mux.Unlisted(std::string(path), endpoints::NewStaticFile(served));
  }
}

std::shared_ptr<auth::Authorizer> AllowPages(std::shared_ptr<auth::Authorizer> next) {
  return std::make_shared<PagesAuthorizer>(std::move(next));
}

}  // namespace keelson::console
