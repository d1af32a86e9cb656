#include "console/yaml_page.h"

#include <utility>

#include "codec/yaml.h"
#include "console/paths.h"
#include "endpoints/page.h"

namespace keelson::console {
namespace {

Awaitable<meta::Result<endpoints::Page>> Convert(endpoints::ExchangePtr exchange) {
  const auto body = co_await exchange->http.body->ReadAll(kYAMLBytesMax);
  if (!body.ok()) co_return meta::NewBadRequest("the text cannot be read, or is too long");
  KS_CO_TRY(std::string json, PlainJSON(body->view()));
  co_return endpoints::JSONPage(base::SharedBytes::FromString(std::move(json)));
}

}  // namespace

meta::Result<std::string> PlainJSON(std::string_view yaml) {
  base::Arena arena;
  std::string json;
  const auto repeated = codec::YAMLToJSON(arena, yaml, {.strict = true}, json);
  if (!repeated.ok()) return meta::NewBadRequest(repeated.error().message);
  if (!repeated->empty()) return meta::NewBadRequest(repeated->front());
  return json;
}

void InstallYAML(server::PathMux& mux) {
  mux.Unlisted(std::string(kYAMLPath), endpoints::ServePageTask(Convert, {.method = "POST"}));
}

}  // namespace keelson::console
