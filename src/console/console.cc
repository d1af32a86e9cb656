#include "console/console.h"

#include <string>
#include <utility>

#include "console/files.h"
#include "endpoints/static_file.h"

namespace keelson::console {
namespace {

constexpr std::string_view kRoot = "/console", kPrefix = "/console/";
constexpr std::string_view kIndex = "index.html";

std::string_view TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

bool IsPage(const auth::Attributes& attributes) {
  return !attributes.resource_request && attributes.verb == "get" &&
         (attributes.path == kRoot || attributes.path.starts_with(kPrefix));
}

class PagesAuthorizer final : public auth::Authorizer {
 public:
  explicit PagesAuthorizer(std::shared_ptr<auth::Authorizer> next) : next_(std::move(next)) {}
  Awaitable<auth::Authorization> Authorize(const auth::Attributes& attributes) override {
    if (IsPage(attributes)) co_return Allowed();
    co_return co_await next_->Authorize(attributes);
  }
  std::optional<auth::Authorization> TryAuthorize(const auth::Attributes& attributes) override {
    return IsPage(attributes) ? Allowed() : next_->TryAuthorize(attributes);
  }

 private:
  static auth::Authorization Allowed() {
    return {.decision = auth::Decision::kAllow, .reason = "pages of the console are public", .error = ""};
  }
  const std::shared_ptr<auth::Authorizer> next_;
};

}  // namespace

void InstallConsole(server::PathMux& mux) {
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
