#include "testing/line_codec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace keelson::testing {
namespace {

constexpr std::string_view kNow = "line/v1\n";
constexpr std::string_view kBefore = "line/v0\n";

void Line(std::string& out, std::string_view key, std::string_view value) {
  out.append(key).append("=").append(value).append("\n");
}

// Calls visit(key, value) for each line behind the first.
template <class Visit>
bool Lines(std::string_view stored, Visit visit) {
  if (!stored.starts_with(kNow) && !stored.starts_with(kBefore)) return false;
  stored.remove_prefix(kNow.size());
  while (!stored.empty()) {
    const std::size_t end = stored.find('\n');
    if (end == std::string_view::npos) return false;
    const std::string_view line = stored.substr(0, end);
    stored.remove_prefix(end + 1);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return false;
    visit(line.substr(0, equals), line.substr(equals + 1));
  }
  return true;
}

std::string Corrupt() { return "the text is no object"; }

}  // namespace

Outcome<base::SharedBytes, std::string> LineCodec::Encode(base::Arena&, Value object) const {
  const Value metadata = object["metadata"];
  if (metadata["name"].as_string().empty()) return std::string("an object needs a name");
  std::string out(kNow);
  Line(out, "name", metadata["name"].as_string());
  Line(out, "namespace", metadata["namespace"].as_string());
  Line(out, "uid", metadata["uid"].as_string());
  for (const char* group : {"labels", "fields"}) {
    const std::string_view name(group);
    std::vector<std::pair<std::string_view, std::string_view>> members;
    for (const auto& member : (name == "labels" ? metadata["labels"] : object["fields"]).members()) {
      members.emplace_back(member.key, member.value.as_string());
    }
    std::sort(members.begin(), members.end());
    for (const auto& [key, value] : members)
      Line(out, (name == "labels" ? "label:" : "field:") + std::string(key), value);
  }
  Line(out, "data", object["data"].as_string());
  return base::SharedBytes(out);
}

Outcome<Value, std::string> LineCodec::Decode(base::Arena& arena, std::string_view stored) const {
  stored = arena.Copy(stored);
  Value object = Value::Map(arena);
  Value metadata = object.EnsureMap(arena, "metadata");
  Value labels = metadata.EnsureMap(arena, "labels");
  Value fields = object.EnsureMap(arena, "fields");
  const bool read = Lines(stored, [&](std::string_view key, std::string_view value) {
    if (key.starts_with("label:")) {
      labels.Set(arena, key.substr(6), value);
    } else if (key.starts_with("field:")) {
      fields.Set(arena, key.substr(6), value);
    } else if (key == "data") {
      object.Set(arena, key, value);
    } else {
      metadata.Set(arena, key, value);
    }
  });
  if (!read) return Corrupt();
  return object;
}

Outcome<base::SharedBytes, std::string> LineCodec::Normalize(std::string_view stored) const {
  if (!Lines(stored, [](auto, auto) {})) return Corrupt();
  if (stored.starts_with(kNow)) return base::SharedBytes();
  return base::SharedBytes(std::string(kNow) + std::string(stored.substr(kBefore.size())));
}

Outcome<base::SharedBytes, std::string> LineCodec::WithResourceVersion(std::string_view stored,
                                                                       std::uint64_t resource_version) const {
  std::string out(kNow);
  const bool read = Lines(stored, [&](std::string_view key, std::string_view value) {
    if (key == "resourceVersion") return;
    Line(out, key, value);
    if (key == "uid" && resource_version != 0) Line(out, "resourceVersion", std::to_string(resource_version));
  });
  if (!read) return Corrupt();
  return base::SharedBytes(out);
}

Outcome<storage::Attributes, std::string> LineCodec::GetAttrs(const base::SharedBytes& stored) const {
  storage::Attributes attributes;
  const bool read = Lines(stored.view(), [&](std::string_view key, std::string_view value) {
    if (key == "name") attributes.name = value;
    if (key == "namespace") attributes.name_space = value;
    if (key.starts_with("label:")) attributes.labels.emplace_back(key.substr(6), value);
    if (key.starts_with("field:")) attributes.fields.emplace_back(key.substr(6), value);
  });
  if (!read) return Corrupt();
  attributes.fields.emplace_back("metadata.name", attributes.name);
  attributes.fields.emplace_back("metadata.namespace", attributes.name_space);
  return attributes;
}

std::string LineCodec::UID(std::string_view stored) const {
  std::string uid;
  Lines(stored, [&](std::string_view key, std::string_view value) {
    if (key == "uid") uid = value;
  });
  return uid;
}

}  // namespace keelson::testing
