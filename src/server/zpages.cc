#include "server/zpages.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include "base/arena.h"
#include "base/strings.h"
#include "codec/cbor.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "endpoints/negotiation.h"
#include "endpoints/page.h"
#include "object/value.h"

namespace keelson::server {
namespace {

using endpoints::ExchangePtr;

constexpr std::string_view kComponent = "apiserver";
constexpr std::string_view kGroup = "config.k8s.io";
constexpr std::string_view kVersions[] = {"v1beta1", "v1alpha1"};  // all but the first are deprecated

std::string Heading(std::string_view page) {
  return "\n" + std::string(kComponent) + " " + std::string(page) +
         "\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
         "and is "
         "for debugging purposes only.\n";
}

struct Form {
  enum class Encoding : std::uint8_t { kText, kJSON, kYAML, kCBOR } encoding = Encoding::kText;
  std::string version;
};

// Text always; the kind as JSON, YAML or CBOR only where all of group, version and kind are named.
std::optional<Form> Negotiate(const http::Request& request, std::string_view kind, CBOR cbor) {
  const std::string_view header = request.headers.Get("Accept");
  if (header.empty()) return Form{};
  for (const auto& clause : endpoints::ParseAccept(header)) {
    const auto fits = [&](std::string_view type, std::string_view subtype) {
      return (clause.type == "*" || clause.type == type) && (clause.subtype == "*" || clause.subtype == subtype);
    };
    std::string as, group, version;
    for (const auto& [key, value] : clause.parameters) {
      if (key == "as") as = value;
      if (key == "g") group = value;
      if (key == "v") version = value;
    }
    const bool known = std::ranges::find(kVersions, version) != std::end(kVersions);
    if (as == kind && group == kGroup && known) {
      if (fits("application", "json")) return Form{Form::Encoding::kJSON, version};
      if (fits("application", "yaml")) return Form{Form::Encoding::kYAML, version};
      if (cbor == CBOR::kServed && fits("application", "cbor")) return Form{Form::Encoding::kCBOR, version};
    }
    if (fits("text", "plain")) return Form{};
  }
  return std::nullopt;
}

meta::Status NotAcceptable(CBOR cbor) {
  std::vector<std::string> types = {"application/json", "application/yaml", "text/plain"};
  if (cbor == CBOR::kServed) types.emplace_back("application/cbor");
  return meta::NewNotAcceptable(types);
}

// The document with its kind and name in front.
Value NewDocument(base::Arena& arena, std::string_view kind, const std::string& version) {
  Value document = Value::Map(arena);
  document.Set(arena, "kind", kind);
  document.Set(arena, "apiVersion", Value::String(arena, std::string(kGroup) + "/" + version));
  document.EnsureMap(arena, "metadata").Set(arena, "name", kComponent);
  return document;
}

// Members in upstream's order, not by name.
void WriteJSON(const Value& document, std::string& body) {
  for (const auto& member : document.members()) {
    body += body.empty() ? '{' : ',';
    codec::EncodeJSON(Value(member.key), body);
    body += ':';
    codec::EncodeJSON(member.value, body);
  }
  body += "}\n";
}

endpoints::Page Encoded(base::Arena& arena, Value document, const Form& form, std::string_view kind,
                        std::string_view page) {
  std::string body, type;
  if (form.encoding == Form::Encoding::kJSON) {
    type = "application/json";
    WriteJSON(document, body);
  } else if (form.encoding == Form::Encoding::kCBOR) {
    type = "application/cbor";
    codec::EncodeCBOR(arena, document, body);
  } else {
    type = "application/yaml";
    codec::EncodeYAML(document, body);
  }
  endpoints::Page encoded{
      .media_type = type + ";g=" + std::string(kGroup) + ";v=" + form.version + ";as=" + std::string(kind),
      .body = base::SharedBytes::FromString(std::move(body))};
  if (form.version != kVersions[0]) {
    encoded.headers.Add("Warning", "299 - \"This version of the " + std::string(page) +
                                       " endpoint is deprecated. Please use a newer version.\"");
  }
  return encoded;
}

// "Mon Nov 16 07:00:49 UTC 2026"
std::string UnixDate(base::Clock::SystemTime time) {
  const std::time_t seconds = base::Clock::SystemTime::clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), "%a %b %e %H:%M:%S UTC %Y", &parts)};
}

std::string RFC3339(base::Clock::SystemTime time) {
  const std::time_t seconds = base::Clock::SystemTime::clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// "0 hr 02 min 00 sec"
std::string UpTime(std::int64_t seconds) {
  const auto two = [](std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return std::to_string(seconds / 3600) + " hr " + two(seconds / 60 % 60) + " min " + two(seconds % 60) + " sec";
}

}  // namespace

void InstallFlagz(PathMux& mux, FlagValues flags, CBOR cbor) {
  auto shared = std::make_shared<const FlagValues>(std::move(flags));
  mux.Handle("/flagz",
             endpoints::ServePage([shared, cbor](const endpoints::Exchange& exchange) -> meta::Result<endpoints::Page> {
               const auto form = Negotiate(exchange.http, "Flagz", cbor);
               if (!form) return NotAcceptable(cbor);
               if (form->encoding == Form::Encoding::kText) {
                 std::string text = Heading("flagz");
                 for (const auto& [name, value] : *shared) text += name + ": " + value + "\n";
                 return endpoints::TextPage(text);
               }
               base::Arena arena;
               Value document = NewDocument(arena, "Flagz", form->version);
               Value map = document.EnsureMap(arena, "flags");
               for (const auto& [name, value] : *shared) map.Set(arena, name, std::string_view(value));
               return Encoded(arena, document, *form, "Flagz", "flagz");
             }));
}

void InstallStatusz(PathMux& mux, StatuszOptions options, const base::Clock& clock) {
  auto shared = std::make_shared<const StatuszOptions>(std::move(options));
  const auto started = clock.Now();
  const auto since = clock.Monotonic();
  mux.Handle(
      "/statusz", endpoints::ServePage([shared, started, since,
                                        &clock](const endpoints::Exchange& exchange) -> meta::Result<endpoints::Page> {
        const auto form = Negotiate(exchange.http, "Statusz", shared->cbor);
        if (!form) return NotAcceptable(shared->cbor);
        const auto up = std::chrono::duration_cast<std::chrono::seconds>(clock.Monotonic() - since).count();
        if (form->encoding == Form::Encoding::kText) {
          std::string text = Heading("statusz");
          text += "\nStarted: " + UnixDate(started) + "\nUp: " + UpTime(up) + "\nGo version: " + shared->go_version +
                  "\nBinary version: " + shared->binary_version + "\nEmulation version: " + shared->emulation_version +
                  "\nPaths: " + base::Join(shared->paths, " ") + "\n";
          return endpoints::TextPage(text);
        }
        base::Arena arena;
        Value document = NewDocument(arena, "Statusz", form->version);
        document.Set(arena, "startTime", Value::String(arena, RFC3339(started)));
        document.Set(arena, "uptimeSeconds", up);
        document.Set(arena, "goVersion", std::string_view(shared->go_version));
        document.Set(arena, "binaryVersion", std::string_view(shared->binary_version));
        document.Set(arena, "emulationVersion", std::string_view(shared->emulation_version));
        Value paths = Value::List(arena);
        for (const auto& path : shared->paths) paths.Append(arena, Value(std::string_view(path)));
        document.Set(arena, "paths", paths);
        return Encoded(arena, document, *form, "Statusz", "statusz");
      }));
}

}  // namespace keelson::server
