#include "endpoints/negotiation.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/split_view.h"
#include "base/strings.h"

namespace keelson::endpoints {
namespace {

constexpr std::size_t kAcceptClausesMax = 256;

struct Supported {
  Format format;
  std::string_view type;
  std::string_view subtype;
  bool streams;
};

// In upstream's order, without an allocation: used by every request.
class SupportedFormats {
 public:
  explicit SupportedFormats(const EndpointRestrictions& restrictions) {
    Add({Format::kJSON, "application", "json", true});
    if (restrictions.allow_yaml) Add({Format::kYAML, "application", "yaml", false});
    if (restrictions.allow_protobuf || restrictions.allow_transforms)
      Add({Format::kProtobuf, "application", "vnd.kubernetes.protobuf", true});
    if (restrictions.allow_cbor) Add({Format::kCBOR, "application", "cbor", true});
  }
  const Supported* begin() const { return formats_.data(); }
  const Supported* end() const { return formats_.data() + count_; }

 private:
  void Add(const Supported& format) { formats_[count_++] = format; }
  std::array<Supported, 4> formats_{};
  std::size_t count_ = 0;
};

std::vector<std::string> AcceptedNames(const EndpointRestrictions& restrictions) {
  std::vector<std::string> names;
  for (const auto& supported : SupportedFormats(restrictions)) names.emplace_back(MediaType(supported.format));
  return names;
}

std::vector<std::string> StreamNames(const EndpointRestrictions& restrictions) {
  std::vector<std::string> names;
  for (const auto& supported : SupportedFormats(restrictions)) {
    if (!supported.streams) continue;
    names.push_back(supported.format == Format::kCBOR ? std::string(kCBORSequence)
                                                      : std::string(MediaType(supported.format)) + ";stream=watch");
  }
  return names;
}

bool ParseBoolStrict(std::string_view text) {
  return text == "1" || text == "t" || text == "T" || text == "true" || text == "TRUE" || text == "True";
}

// Reads a clause's parameters; false if they request something that this format does not support.
bool ReadParameters(const AcceptClause& clause, const Supported& supported, const EndpointRestrictions& restrictions,
                    bool stream, MediaTypeOptions& options) {
  std::string as, group, version;
  for (const auto& [key, value] : clause.parameters) {
    if (key == "as") as = value;
    if (key == "g") group = value;
    if (key == "v") version = value;
    if (key == "profile") options.profile = value;
    if (key == "pretty") options.pretty = value == "1";
    if (key == "stream" && !value.empty() && (value != "watch" || !supported.streams)) return false;
    if (key == "sv" && value != "v1") return false;
  }
  if (as.empty() && group.empty() && version.empty()) {
    return supported.format != Format::kProtobuf || restrictions.allow_protobuf;
  }
  if (!restrictions.allow_transforms || group != "meta.k8s.io" || (version != "v1" && version != "v1beta1"))
    return false;
  options.transform_version = version;
  if (as == "Table") {
    options.transform = Transform::kTable;
    return restrictions.allow_tables && (supported.format == Format::kJSON || supported.format == Format::kYAML);
  }
  if (as == "PartialObjectMetadata") {
    options.transform = Transform::kPartialObjectMetadata;
    return true;
  }
  if (as == "PartialObjectMetadataList" && !stream) {
    options.transform = Transform::kPartialObjectMetadataList;
    return true;
  }
  return false;
}

// None for text that is not a media range.
std::optional<AcceptClause> ParseAcceptClause(std::string_view text) {
  AcceptClause clause;
  const auto semicolon = text.find(';');
  const std::string_view range = base::Trim(text.substr(0, semicolon));
  const auto slash = range.find('/');
  if (slash == std::string_view::npos) {
    if (range != "*") return std::nullopt;
    clause.type = clause.subtype = "*";
  } else {
    if (range.find('/', slash + 1) != std::string_view::npos) return std::nullopt;
    clause.type = base::Trim(range.substr(0, slash));
    clause.subtype = base::Trim(range.substr(slash + 1));
  }
  if (semicolon == std::string_view::npos) return clause;
  for (const std::string_view piece : base::SplitView(text.substr(semicolon + 1), ';')) {
    const auto equals = piece.find('=');
    if (equals == std::string_view::npos || piece.find('=', equals + 1) != std::string_view::npos) continue;
    const std::string_view key = base::Trim(piece.substr(0, equals));
    const std::string_view value = base::Trim(piece.substr(equals + 1));
    if (key == "q") {
      clause.quality = std::strtod(std::string(value).c_str(), nullptr);
    } else {
      clause.parameters.emplace_back(key, value);
    }
  }
  return clause;
}

// The best supported form for one clause; none: unsupported.
std::optional<meta::Result<MediaTypeOptions>> NegotiateClause(const AcceptClause& clause, const http::Request& request,
                                                              const base::Query& query,
                                                              const EndpointRestrictions& restrictions, bool stream) {
  for (const Supported& supported : SupportedFormats(restrictions)) {
    const bool type_fits = clause.type == "*" || clause.type == supported.type;
    const bool subtype_fits = clause.subtype == "*" || clause.subtype == supported.subtype;
    if (!type_fits || !subtype_fits || (clause.type == "*" && clause.subtype != "*")) continue;
    MediaTypeOptions candidate;
    candidate.format = supported.format;
    candidate.stream = stream;
    if (!ReadParameters(clause, supported, restrictions, stream, candidate)) continue;
    // The best-ranked acceptable media type wins even if it cannot be streamed (YAML): 406, no fallback.
    if (stream && !supported.streams) return meta::NewNotAcceptable(StreamNames(restrictions));
    if (!candidate.pretty) candidate.pretty = IsPretty(request, query);
    return candidate;
  }
  return std::nullopt;
}

meta::Result<MediaTypeOptions> Negotiate(const http::Request& request, const base::Query& query,
                                         const EndpointRestrictions& restrictions, bool stream) {
  const std::string_view header = request.headers.Get("Accept");
  if (header.empty()) {
    MediaTypeOptions options;
    options.stream = stream;
    options.pretty = IsPretty(request, query);
    return options;
  }
  if (header.find(',') == std::string_view::npos) {  // most clients send one clause: nothing to rank
    const auto clause = ParseAcceptClause(header);
    if (clause) {
      if (auto answer = NegotiateClause(*clause, request, query, restrictions, stream)) return *std::move(answer);
    }
    return meta::NewNotAcceptable(AcceptedNames(restrictions));
  }
  for (const AcceptClause& clause : ParseAccept(header)) {
    if (auto answer = NegotiateClause(clause, request, query, restrictions, stream)) return *std::move(answer);
  }
  return meta::NewNotAcceptable(AcceptedNames(restrictions));
}

}  // namespace

std::string_view MediaType(Format format) {
  switch (format) {
    case Format::kJSON:
      return "application/json";
    case Format::kYAML:
      return "application/yaml";
    case Format::kProtobuf:
      return "application/vnd.kubernetes.protobuf";
    case Format::kCBOR:
      return "application/cbor";
  }
  return "application/json";
}

std::vector<AcceptClause> ParseAccept(std::string_view header) {
  std::vector<AcceptClause> clauses;
  for (const std::string_view text : base::SplitView(header, ',')) {
    if (clauses.size() >= kAcceptClausesMax) break;
    if (auto clause = ParseAcceptClause(text)) clauses.push_back(*std::move(clause));
  }
  const auto better = [](const AcceptClause& a, const AcceptClause& b) {
    if (a.quality != b.quality) return a.quality > b.quality;
    if ((a.type == "*") != (b.type == "*")) return b.type == "*";
    if ((a.subtype == "*") != (b.subtype == "*")) return b.subtype == "*";
    return false;
  };
  // Insertion keeps equals in their order; there are few of them.
  for (std::size_t i = 1; i < clauses.size(); ++i) {
    for (std::size_t j = i; j > 0 && better(clauses[j], clauses[j - 1]); --j) std::swap(clauses[j], clauses[j - 1]);
  }
  return clauses;
}

meta::Result<MediaTypeOptions> NegotiateOutput(const http::Request& request, const base::Query& query,
                                               const EndpointRestrictions& restrictions) {
  return Negotiate(request, query, restrictions, false);
}

meta::Result<MediaTypeOptions> NegotiateStream(const http::Request& request, const base::Query& query,
                                               const EndpointRestrictions& restrictions) {
  return Negotiate(request, query, restrictions, true);
}

std::string BareMediaType(std::string_view header) {
  return base::ToLower(base::Trim(header.substr(0, header.find(';'))));
}

meta::Result<Format> NegotiateInput(const http::Request& request, const EndpointRestrictions& restrictions) {
  const std::string type = BareMediaType(request.headers.Get("Content-Type"));
  if (type.empty()) return Format::kJSON;
  for (const Supported& supported : SupportedFormats(restrictions)) {
    if (type == MediaType(supported.format)) return supported.format;
  }
  return meta::NewUnsupportedMediaType(AcceptedNames(restrictions));
}

bool AcceptsGzip(const http::Request& request) {
  for (const std::string_view token : base::SplitView(request.headers.Get("Accept-Encoding"), ',')) {
    if (base::Trim(token) == "gzip") return true;
  }
  return false;
}

bool IsPretty(const http::Request& request, const base::Query& query) {
  if (const auto value = query.Get("pretty"); !value.empty()) return ParseBoolStrict(value);
  const std::string_view agent = request.headers.Get("User-Agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

}  // namespace keelson::endpoints
