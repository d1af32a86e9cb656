#include "apidocs/openapi_service.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <mutex>
#include <optional>

#include "apidocs/openapi_documents.h"
#include "apidocs/openapi_protobuf.h"
#include "base/strings.h"

namespace keelson::apidocs {
namespace {

constexpr std::string_view kV3Prefix = "/openapi/v3/";
constexpr std::chrono::hours kImmutableFor{365 * 24};

enum class Form : std::uint8_t { kNone, kJSON, kProtobuf };

constexpr std::string_view kProtobufV2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
constexpr std::string_view kProtobufV2Old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
constexpr std::string_view kProtobufV3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
constexpr std::string_view kProtobufV3Old = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

// JSON for its media type, a wildcard or no Accept header; protobuf for either of its media types.
Form FormOf(std::string_view accept, bool v2) {
  if (base::Trim(accept).empty()) return Form::kJSON;
  for (const std::string_view clause : base::Split(accept, ',')) {
    const auto parts = base::Split(clause, ';');
    const std::string type = base::ToLower(base::Trim(parts[0]));
    if (type == "application/json" || type == "application/*" || type == "*/*") return Form::kJSON;
    if (type == (v2 ? kProtobufV2 : kProtobufV3) || type == (v2 ? kProtobufV2Old : kProtobufV3Old))
      return Form::kProtobuf;
  }
  return Form::kNone;
}

// If-None-Match: a list of tags, or *. Weak tags compare by their text.
bool Matches(std::string_view header, std::string_view etag) {
  for (const std::string_view one : base::Split(header, ',')) {
    std::string_view tag = base::Trim(one);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == "*" || tag == etag) return true;
  }
  return false;
}

struct ByteRange {
  std::size_t begin;
  std::size_t size;
};

// One range of bytes. Nothing for several, or for what is none: the whole is sent then, as a server may.
std::optional<ByteRange> ParseRange(std::string_view text, std::size_t size, bool* unsatisfiable) {
  *unsatisfiable = false;
  if (!text.starts_with("bytes=") || text.find(',') != std::string_view::npos) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = base::ParseUint64(base::Trim(text.substr(0, dash)));
  const auto last = base::ParseUint64(base::Trim(text.substr(dash + 1)));
  if (!first && !last) return std::nullopt;
  if (!first) {
    const std::size_t tail = std::min<std::size_t>(*last, size);
    *unsatisfiable = tail == 0;
    return tail == 0 ? std::nullopt : std::optional(ByteRange{size - tail, tail});
  }
  if (last && *last < *first) return std::nullopt;
  *unsatisfiable = *first >= size;
  if (*unsatisfiable) return std::nullopt;
  const std::size_t end = last ? std::min<std::size_t>(*last + 1, size) : size;
  return ByteRange{*first, end - *first};
}

}  // namespace

struct OpenAPIService::Document {
  std::string key;  // "" for v2
  std::once_flag made;
  base::SharedBytes json;
  std::once_flag protobuf_made;
  base::SharedBytes protobuf;
  std::string etag;  // of both forms
  std::string last_modified;
};

std::string HTTPDate(std::chrono::system_clock::time_point time, std::string_view zone) {
  static constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  const auto two = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  std::string out(kDays[static_cast<std::size_t>(parts.tm_wday)]);
  out += ", " + two(parts.tm_mday) + " ";
  out += kMonths[static_cast<std::size_t>(parts.tm_mon)];
  out += " " + std::to_string(parts.tm_year + 1900) + " " + two(parts.tm_hour) + ":" + two(parts.tm_min) + ":" +
         two(parts.tm_sec) + " ";
  out += zone;
  return out;
}

OpenAPIService::OpenAPIService(std::vector<DiscoveryGroup> groups, IsServed served,
                               std::shared_ptr<const DiscoverySource> source)
    : groups_(std::move(groups)),
      served_(std::move(served)),
      source_(std::move(source)),
      v2_(std::make_unique<Document>()) {
  for (const std::string& key : OpenAPIv3Keys(groups_)) {
    auto document = std::make_unique<Document>();
    document->key = key;
    v3_.emplace(key, std::move(document));
  }
}

OpenAPIService::~OpenAPIService() = default;

OpenAPIService::Document& OpenAPIService::Make(Document& document, Time now) const {
  std::call_once(document.made, [&] {
    std::string json =
        document.key.empty() ? OpenAPIv2Document(groups_, served_) : OpenAPIv3Document(document.key, groups_, served_);
    document.etag = ETagOf(json);
    document.json = base::SharedBytes::FromString(std::move(json));
    document.last_modified = HTTPDate(now);
  });
  return document;
}

OpenAPIService::Response OpenAPIService::Serve(const Request& request) const {
  if (request.path == "/openapi/v3" || request.path == kV3Prefix) return Root(request);
  if (request.path == "/openapi/v2") {
    const Form form = FormOf(request.accept, true);
    if (form == Form::kNone) return {.status = 406};
    Response response;
    response.headers = {{"Vary", "Accept-Encoding"}, {"Vary", "Accept"}};
    const auto document = V2(request.now);
    return Content(document ? *document : Make(*v2_, request.now), request, std::move(response),
                   form == Form::kProtobuf);
  }
  if (!request.path.starts_with(kV3Prefix)) return {.status = 404};
  const std::string_view key = request.path.substr(kV3Prefix.size());
  const auto found = v3_.find(key);
  const std::shared_ptr<Document> custom = found == v3_.end() ? FromSource(key, request.now) : nullptr;
  if (found == v3_.end() && !custom) return {.status = 404};
  const Form form = FormOf(request.accept, false);
  if (form == Form::kNone) return {.status = 406};
  Document& document = custom ? *custom : Make(*found->second, request.now);
  const std::string current = base::ReplaceAll(document.etag, "\"", "");
  Response response;
  response.headers = {{"Vary", "Accept"}};
  if (!request.hash.empty() && request.hash != current) {
    response.status = 301;
    response.headers.emplace_back("Content-Type", "application/json");
    response.headers.emplace_back("Location", std::string(request.path) + "?hash=" + current);
    return response;
  }
  if (!request.hash.empty()) {
    response.headers.emplace_back("Cache-Control", "public, immutable");
    response.headers.emplace_back("Expires", HTTPDate(request.now + kImmutableFor, "UTC"));
  }
  return Content(document, request, std::move(response), form == Form::kProtobuf);
}

// The list of keys, each with the hash of its document. The aggregator answers it without an ETag, as plain text.
OpenAPIService::Response OpenAPIService::Root(const Request& request) const {
  std::map<std::string, std::string> etags;
  for (const auto& [key, document] : v3_) etags.emplace(key, Make(*document, request.now).etag);
  if (source_) {
    for (const auto& group : source_->Discovery()->groups) {
      for (const auto& version : group->versions)
        etags.emplace("apis/" + group->group + "/" + version.version, version.etag);
    }
  }
  Response response;
  response.headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"Last-Modified", HTTPDate(request.now)}};
  response.body = base::SharedBytes::FromString(
      OpenAPIv3Root(etags, source_ ? source_->OpenAPIv3URLs() : std::vector<std::pair<std::string, std::string>>()));
  return response;
}

// The members of the source are at the end of `paths` and of `definitions`.
std::shared_ptr<OpenAPIService::Document> OpenAPIService::V2(Time now) const {
  const auto fragments = source_ ? source_->Discovery() : nullptr;
  if (!fragments || fragments->groups.empty()) return nullptr;
  std::lock_guard lock(mutex_);
  if (whole_v2_ && whole_v2_generation_ == fragments->generation) return whole_v2_;
  constexpr std::string_view kDefinitions = "},\"definitions\":{", kParameters = "},\"parameters\":{";
  const std::string_view base = Make(*v2_, now).json.view();
  const std::size_t definitions = base.find(kDefinitions), parameters = base.rfind(kParameters);
  if (definitions == std::string_view::npos || parameters == std::string_view::npos) return nullptr;
  std::string more_paths, more_definitions;
  source_->AppendOpenAPIv2To(base, more_paths, more_definitions);
  std::string json;
  json.reserve(base.size() + more_paths.size() + more_definitions.size());
  json.append(base.substr(0, definitions)).append(more_paths);
  json.append(base.substr(definitions, parameters - definitions)).append(more_definitions);
  json.append(base.substr(parameters));
  auto document = std::make_shared<Document>();
  document->etag = ETagOf(json);
  document->json = base::SharedBytes::FromString(std::move(json));
  document->last_modified = HTTPDate(now);
  whole_v2_ = document;
  whole_v2_generation_ = fragments->generation;
  return document;
}

std::shared_ptr<OpenAPIService::Document> OpenAPIService::FromSource(std::string_view key, Time now) const {
  const auto parts = base::Split(key, '/');
  if (!source_ || parts.size() != 3 || parts[0] != "apis") return nullptr;
  std::string etag;
  for (const auto& group : source_->Discovery()->groups) {
    if (group->group != parts[1]) continue;
    for (const auto& version : group->versions) {
      if (version.version == parts[2]) etag = version.etag;
    }
  }
  if (etag.empty()) return nullptr;
  std::lock_guard lock(mutex_);
  if (const auto kept = from_source_.find(key); kept != from_source_.end() && kept->second->etag == etag)
    return kept->second;
  std::string json = source_->OpenAPIv3(std::string(parts[1]), std::string(parts[2]));
  if (json.empty()) return nullptr;
  auto document = std::make_shared<Document>();
  document->key = key;
  document->etag = etag;
  document->json = base::SharedBytes::FromString(std::move(json));
  document->last_modified = HTTPDate(now);
  Keep(document);
  return document;
}

// Requested documents, up to kSourceDocumentBytesMax of JSON; all are dropped when one more does not fit.
void OpenAPIService::Keep(const std::shared_ptr<Document>& document) const {
  if (const auto before = from_source_.find(document->key); before != from_source_.end()) {
    from_source_bytes_ -= before->second->json.size();
    from_source_.erase(before);
  }
  if (from_source_bytes_ + document->json.size() > kSourceDocumentBytesMax) {
    from_source_.clear();
    from_source_bytes_ = 0;
  }
  if (document->json.size() > kSourceDocumentBytesMax) return;
  from_source_bytes_ += document->json.size();
  from_source_.emplace(document->key, document);
}

// As Go's ServeContent: conditional requests and ranges.
OpenAPIService::Response OpenAPIService::Content(Document& document, const Request& request, Response response,
                                                 bool protobuf) const {
  const bool v2 = document.key.empty();
  response.headers.emplace_back("Etag", document.etag);
  response.headers.emplace_back("Last-Modified", document.last_modified);
  const bool unchanged = request.if_none_match.empty() ? request.if_modified_since == document.last_modified
                                                       : Matches(request.if_none_match, document.etag);
  if (unchanged) {
    response.status = 304;
    return response;
  }
  if (protobuf) {
    std::call_once(document.protobuf_made, [&] {
      document.protobuf = base::SharedBytes::FromString(v2 ? OpenAPIv2Protobuf(document.json.view())
                                                           : OpenAPIv3Protobuf(document.json.view()));
    });
  }
  const base::SharedBytes whole = protobuf ? document.protobuf : document.json;
  response.headers.emplace_back("Content-Type", !protobuf ? "application/json" : v2 ? kProtobufV2 : kProtobufV3);
  response.headers.emplace_back("Accept-Ranges", "bytes");
  response.body = whole;
  bool unsatisfiable = false;
  const std::string total = std::to_string(whole.size());
  if (const auto range = ParseRange(request.range, whole.size(), &unsatisfiable)) {
    response.status = 206;
    response.headers.emplace_back("Content-Range", "bytes " + std::to_string(range->begin) + "-" +
                                                       std::to_string(range->begin + range->size - 1) + "/" + total);
    response.body = whole.Slice(range->begin, range->size);
  } else if (unsatisfiable) {
    response.status = 416;
    response.headers.emplace_back("Content-Range", "bytes */" + total);
    response.body = {};
  }
  return response;
}

}  // namespace keelson::apidocs
