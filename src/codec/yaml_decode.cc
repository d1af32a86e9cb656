// libyaml's events, one document, built into a Value; aliases share what their anchor made, so a bomb costs nothing
// until it is counted, and it is counted as Go's decoder counts it.
#include <yaml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/strings.h"
#include "codec/json.h"
#include "codec/scalars.h"
#include "codec/yaml.h"
#include "codec/yaml_resolve.h"

namespace keelson::codec {
namespace {

using base::Arena;

// yaml.v2's bounds on how much of a document may come from aliases.
constexpr double kAliasRatioLow = 400'000, kAliasRatioHigh = 4'000'000;
constexpr std::uint64_t kNodesMax = 8'000'000;
// libyaml looks at every open flow collection for each token, so small items below many brackets cost a multiple of
// their number. The sum of flow levels over all events is bounded: half a million items below a hundred brackets.
constexpr std::uint64_t kFlowWorkMax = 50'000'000;

double AllowedAliasRatio(std::uint64_t nodes) {
  const auto count = static_cast<double>(nodes);
  if (count <= kAliasRatioLow) return 0.99;
  if (count >= kAliasRatioHigh) return 0.10;
  return 0.99 - 0.89 * ((count - kAliasRatioLow) / (kAliasRatioHigh - kAliasRatioLow));
}

struct Event {
  yaml_event_t event{};
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&event); }
};

std::string_view Text(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

struct Node {
  Value value;
  std::uint64_t nodes = 1;   // with aliases expanded
  bool merge_source = true;  // a mapping, or a sequence of mappings
  std::size_t line = 0;
};

class Builder {
 public:
  Builder(Arena& arena, std::string_view text) : arena_(arena) {
    yaml_parser_initialize(&parser_);
    if (text.data() == nullptr) text = "";  // the library insists on a pointer, and a body may have none
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Builder() { yaml_parser_delete(&parser_); }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  bool Document(Value& out) {
    Event start;
    if (!Next(start)) return false;  // the stream
    Event document;
    if (!Next(document)) return false;
    if (document.event.type == YAML_STREAM_END_EVENT) return true;  // nothing at all: null
    if (!CheckVersion(document.event)) return false;
    Node root;
    Event first;
    if (!Next(first) || !Build(first, root)) return false;
    out = root.value;
    Event end;
    return Next(end);  // Only the first document counts; what follows it is not read.
  }

  const std::string& error() const { return error_; }
  const std::vector<std::string>& duplicates() const { return duplicates_; }

 private:
  bool Fail(std::string text) {
    if (error_.empty()) error_ = "yaml: " + std::move(text);
    return false;
  }

  bool Next(Event& event) {
    if (yaml_parser_parse(&parser_, &event.event) != 0) {
      flow_work_ += static_cast<std::uint64_t>(parser_.flow_level);
      return flow_work_ <= kFlowWorkMax || Fail("too many items in nested flow collections");
    }
    std::size_t line = parser_.problem_mark.line;
    if (line != 0) {
      if (parser_.error == YAML_SCANNER_ERROR) ++line;
    } else {
      line = parser_.context_mark.line;
    }
    std::string text = line != 0 ? "line " + std::to_string(line) + ": " : "";
    text += parser_.problem != nullptr ? parser_.problem : "unknown problem parsing YAML content";
    return Fail(std::move(text));
  }

  // libyaml also takes version 1.2, which Go's port of it refuses.
  bool CheckVersion(const yaml_event_t& document) {
    const auto* const version = document.data.document_start.version_directive;
    if (version == nullptr || (version->major == 1 && version->minor == 1)) return true;
    const std::size_t line = document.start_mark.line;
    return Fail((line != 0 ? "line " + std::to_string(line) + ": " : "") + "found incompatible YAML document");
  }

  bool Build(Event& event, Node& out) {
    out.line = event.event.start_mark.line;
    if (event.event.type == YAML_ALIAS_EVENT) return Alias(event, out);
    std::string anchor;
    ++nodes_;
    switch (event.event.type) {
      case YAML_SCALAR_EVENT:
        anchor = Text(event.event.data.scalar.anchor);
        out.merge_source = false;
        if (!Scalar(event, out.value)) return false;
        break;
      case YAML_SEQUENCE_START_EVENT:
        anchor = Text(event.event.data.sequence_start.anchor);
        Open(anchor);
        if (++depth_ > kYAMLDepthMax || !Sequence(out))
          return Fail("exceeded max depth of " + std::to_string(kYAMLDepthMax));
        --depth_;
        break;
      case YAML_MAPPING_START_EVENT:
        anchor = Text(event.event.data.mapping_start.anchor);
        Open(anchor);
        if (++depth_ > kYAMLDepthMax || !Mapping(out))
          return Fail("exceeded max depth of " + std::to_string(kYAMLDepthMax));
        --depth_;
        break;
      default:
        return Fail("unknown problem parsing YAML content");
    }
    if (!anchor.empty()) {
      open_.erase(anchor);
      anchors_[anchor] = out;
    }
    return true;
  }

  void Open(const std::string& anchor) {
    if (!anchor.empty()) open_[anchor] = true;
  }

  bool Alias(const Event& event, Node& out) {
    const std::string name(Text(event.event.data.alias.anchor));
    if (open_.contains(name)) return Fail("anchor '" + name + "' value contains itself");
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) return Fail("unknown anchor '" + name + "' referenced");
    const std::size_t line = out.line;
    out = found->second;
    out.line = line;
    nodes_ += out.nodes;
    aliased_ += out.nodes;
    const bool excessive = aliased_ > 100 && nodes_ > 1000 &&
                           static_cast<double>(aliased_) / static_cast<double>(nodes_) > AllowedAliasRatio(nodes_);
    if (excessive || nodes_ > kNodesMax) return Fail("document contains excessive aliasing");
    return true;
  }

  bool Scalar(const Event& event, Value& out) {
    const auto& scalar = event.event.data.scalar;
    const std::string_view text = arena_.Copy({reinterpret_cast<const char*>(scalar.value), scalar.length});
    const std::string_view tag = Text(scalar.tag);
    constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
    out = Value(text);
    if (tag.empty() && scalar.plain_implicit == 0) return true;  // quoted
    if (tag == "!" || (!tag.empty() && !tag.starts_with(kPrefix))) return true;
    const std::string_view name = tag.empty() ? tag : tag.substr(kPrefix.size());
    if (name == "str") return true;
    if (name == "binary") {
      const auto bytes = base::Base64Decode(text);
      if (!bytes.has_value()) return Fail("!!binary value contains invalid base64 data");
      out = Value::String(arena_, *bytes);
      return true;
    }
    if (!name.empty() && name != "bool" && name != "int" && name != "float" && name != "null" && name != "timestamp")
      return true;
    const YAMLTag resolved = ResolvePlain(arena_, text, out);
    return name.empty() || Agree(name, resolved, text, out);
  }

  // An explicit tag must be what the text resolves to; an integer may be a float.
  bool Agree(std::string_view name, YAMLTag resolved, std::string_view text, Value& out) {
    static constexpr std::string_view kNames[] = {"str", "bool", "int", "float", "null", "timestamp"};
    const std::string_view actual = kNames[static_cast<std::size_t>(resolved)];
    if (actual == name) return true;
    if (name == "float" && resolved == YAMLTag::kInt) {
      out = Value(out.as_double());
      return true;
    }
    return Fail("cannot decode !!" + std::string(actual) + " `" + std::string(text) + "` as a !!" + std::string(name));
  }

  bool Sequence(Node& out) {
    out.value = Value::List(arena_);
    for (;;) {
      Event event;
      if (!Next(event)) return false;
      if (event.event.type == YAML_SEQUENCE_END_EVENT) return true;
      Node item;
      if (!Build(event, item)) return false;
      out.merge_source = out.merge_source && item.value.is_map();
      out.nodes += item.nodes;
      out.value.Append(arena_, item.value);
    }
  }

  bool Mapping(Node& out) {
    out.value = Value::Map(arena_);
    for (;;) {
      Event key_event;
      if (!Next(key_event)) return false;
      if (key_event.event.type == YAML_MAPPING_END_EVENT) break;
      const bool merge = IsMerge(key_event);
      Node key, value;
      std::string_view name;
      std::string shown;
      if (!Build(key_event, key)) return false;
      if (!merge && !KeyText(key.value, name, shown)) return false;
      Event value_event;
      if (!Next(value_event) || !Build(value_event, value)) return false;
      out.nodes += key.nodes + value.nodes;
      if (!merge && key.value.is_null()) {
        if (error_.empty()) {
          error_ = "unsupported map key of type: %!s(<nil>), key: <nil>, value: " +
                   (value.value.is_null() ? std::string("<nil>") : GoSyntax(value.value));
        }
        return false;
      }
      if (merge) {
        if (!value.merge_source || (!value.value.is_map() && !value.value.is_list())) {
          return Fail("map merge requires map or sequence of maps as the value");
        }
        Merge(value, out.value);
        continue;
      }
      if (out.value.Has(name)) Duplicate(value.line, shown);
      out.value.Set(arena_, name, value.value);
    }
    return true;
  }

  // As Go's %#v has it.
  std::string GoSyntax(const Value& value) const {
    constexpr std::size_t kBytesMax = 16 * 1024;
    std::string text;
    AppendGoSyntax(value, kBytesMax, text);
    return text;
  }
  static void AppendGoSyntax(const Value& value, std::size_t bytes_max, std::string& out) {
    if (out.size() > bytes_max) return;
    if (value.is_null()) {
      out += "interface {}(nil)";
    } else if (value.is_string()) {
      out += base::GoQuote(value.as_string());
    } else if (value.is_list()) {
      out += "[]interface {}{";
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out += ", ";
        AppendGoSyntax(value[i], bytes_max, out);
      }
      out += '}';
    } else if (value.is_map()) {
      out += "map[interface {}]interface {}{";
      bool first = true;
      for (const object::Member& member : value.members()) {
        if (!first) out += ", ";
        first = false;
        out += base::GoQuote(member.key) + ":";
        AppendGoSyntax(member.value, bytes_max, out);
      }
      out += '}';
    } else {
      EncodeJSON(value, out);
    }
  }

  static bool IsMerge(const Event& event) {
    if (event.event.type != YAML_SCALAR_EVENT) return false;
    const auto& scalar = event.event.data.scalar;
    if (std::string_view(reinterpret_cast<const char*>(scalar.value), scalar.length) != "<<") return false;
    return (scalar.plain_implicit != 0 && scalar.style == YAML_PLAIN_SCALAR_STYLE) ||
           Text(scalar.tag) == "tag:yaml.org,2002:merge";
  }

  // Merged members are inserted at the merge key and replace earlier ones, as in Go, which also counts them as
  // duplicates.
  void Merge(const Node& source, Value into) {
    const auto put = [&](const Value& map) {
      for (const auto& member : map.members()) {
        if (into.Has(member.key)) Duplicate(source.line, base::GoQuote(member.key));
        into.Set(arena_, member.key, member.value);
      }
    };
    if (source.value.is_map()) return put(source.value);
    const auto items = source.value.items();
    for (std::size_t i = items.size(); i-- > 0;) put(items[i]);  // Earlier ones win, so they come last.
  }

  void Duplicate(std::size_t line, std::string_view key) {
    if (duplicates_.size() >= kStrictErrorsMax) return;
    duplicates_.push_back("line " + std::to_string(line + 1) + ": key " + std::string(key) + " already set in map");
  }

  bool KeyText(const Value& key, std::string_view& out, std::string& shown) {
    switch (key.kind()) {
      case Value::Kind::kString:
        out = key.as_string();
        shown = base::GoQuote(out);
        return true;
      case Value::Kind::kInt:
        out = arena_.Copy(std::to_string(key.as_int()));
        shown = out;
        return true;
      case Value::Kind::kBool:
        out = key.as_bool() ? "true" : "false";
        shown = out;
        return true;
      case Value::Kind::kDouble: {
        const double number = key.as_double();
        std::string text;
        if (std::isnan(number)) {
          text = ".nan";
        } else if (std::isinf(number)) {
          text = number > 0 ? ".inf" : "-.inf";
        } else {
          EncodeJSON(Value(number), text);
        }
        out = arena_.Copy(text);
        shown = text;
        return true;
      }
      case Value::Kind::kNull:
        return true;  // an error that shows the value, too
      default:
        return Fail("invalid map key: " + GoSyntax(key));
    }
  }

  Arena& arena_;
  yaml_parser_t parser_{};
  int depth_ = 0;
  std::uint64_t nodes_ = 0;
  std::uint64_t aliased_ = 0;
  std::uint64_t flow_work_ = 0;
  std::map<std::string, Node, std::less<>> anchors_;
  std::map<std::string, bool, std::less<>> open_;
  std::string error_;
  std::vector<std::string> duplicates_;
};

bool HasUnwritable(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kDouble:
      return !std::isfinite(value.as_double());
    case Value::Kind::kList:
      return std::ranges::any_of(value.items(), HasUnwritable);
    case Value::Kind::kMap:
      return std::ranges::any_of(value.members(), [](const auto& member) { return HasUnwritable(member.value); });
    default:
      return false;
  }
}

}  // namespace

Outcome<std::vector<std::string>, DecodeError> YAMLToJSON(Arena& arena, std::string_view text,
                                                          const DecodeOptions& options, std::string& out) {
  Builder builder(arena, text);
  Value value;
  if (!builder.Document(value)) return DecodeError{DecodeError::Kind::kSyntax, builder.error()};
  if (HasUnwritable(value)) return DecodeError{DecodeError::Kind::kSyntax, "json: unsupported value: NaN"};
  EncodeJSON(value, out);
  std::vector<std::string> strict;
  if (options.strict && !builder.duplicates().empty()) {
    std::string all = "yaml: unmarshal errors:";
    for (const std::string& duplicate : builder.duplicates()) all += "\n  " + duplicate;
    strict.push_back(std::move(all));
  }
  return strict;
}

namespace {

Outcome<Decoded, DecodeError> Decode(Arena& arena, std::string_view text, const schema::Struct* type,
                                     const DecodeOptions& options) {
  std::string json;
  KS_TRY(std::vector<std::string> strict, YAMLToJSON(arena, text, options, json));
  KS_TRY(Decoded decoded, type != nullptr ? DecodeJSON(arena, json, *type, options) : DecodeJSON(arena, json, options));
  decoded.strict_errors.insert(decoded.strict_errors.begin(), strict.begin(), strict.end());
  return decoded;
}

}  // namespace

Outcome<Decoded, DecodeError> DecodeYAML(Arena& arena, std::string_view text, const schema::Struct& type,
                                         const DecodeOptions& options) {
  return Decode(arena, text, &type, options);
}

Outcome<Decoded, DecodeError> DecodeYAML(Arena& arena, std::string_view text, const DecodeOptions& options) {
  return Decode(arena, text, nullptr, options);
}

}  // namespace keelson::codec
