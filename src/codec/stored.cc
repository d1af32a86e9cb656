// Reading and changing a few bytes of stored objects: resourceVersion, metadata, selectable fields.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode.h"
#include "codec/wire.h"

namespace keelson::codec {
namespace {

using schema::Field;
using schema::Kind;
using schema::Struct;

// Numbers that every kind shares: metadata is its first field, and these are ObjectMeta's.
constexpr std::uint32_t kMetadata = 1;
constexpr std::uint32_t kRaw = 2;
constexpr std::uint32_t kName = 1, kNamespace = 3, kUID = 5, kResourceVersion = 6, kGeneration = 7,
                        kDeletionTimestamp = 9, kLabels = 11;

DecodeError Broken(std::string_view text = "unexpected EOF") { return {DecodeError::Kind::kSyntax, std::string(text)}; }

// The last occurrence of a length-delimited field, with where its tag begins and its value ends; nullopt data when it
// is not there.
struct Found {
  bool ok = true;  // the message makes sense
  bool there = false;
  std::string_view value;
  std::size_t begin = 0;  // of the tag
  std::size_t end = 0;
  std::size_t insert = 0;  // where it would go: before the first field of a higher number
};
Found FindBytes(std::string_view message, std::uint32_t wanted) {
  Found found;
  bool passed = false;
  WireReader in(message);
  while (!in.AtEnd()) {
    const auto begin = static_cast<std::size_t>(in.at() - message.data());
    std::uint32_t number = 0;
    WireType wire{};
    if (!in.Tag(number, wire)) return {.ok = false};
    if (number > wanted && !passed) found.insert = begin, passed = true;
    if (number == wanted && wire == WireType::kBytes) {
      if (!in.Bytes(found.value)) return {.ok = false};
      found.there = true;
      found.begin = begin;
      found.end = static_cast<std::size_t>(in.at() - message.data());
    } else if (!in.Skip(wire)) {
      return {.ok = false};
    }
  }
  if (!passed) found.insert = message.size();
  return found;
}

std::size_t VarintSize(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}
void AppendVarint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::string_view Decimal(std::uint64_t value, char (&buffer)[24]) {
  if (value == 0) return {};
  return {buffer, static_cast<std::size_t>(std::to_chars(buffer, buffer + sizeof buffer, value).ptr - buffer)};
}

}  // namespace

Outcome<void, DecodeError> SpliceResourceVersion(std::string_view stored, std::uint64_t resource_version,
                                                 std::string& out) {
  if (!HasEnvelope(stored))
    return Broken("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  const std::string_view unknown = stored.substr(kProtoMagic.size());
  const Found raw = FindBytes(unknown, kRaw);
  if (!raw.ok || !raw.there) return Broken();
  const Found metadata = FindBytes(raw.value, kMetadata);
  if (!metadata.ok || !metadata.there) return Broken("no metadata");
  const Found version = FindBytes(metadata.value, kResourceVersion);
  if (!version.ok) return Broken();
  char buffer[24];
  const std::string_view text = Decimal(resource_version, buffer);
  const std::size_t begin = version.there ? version.begin : version.insert,
                    end = version.there ? version.end : version.insert;
  const std::size_t metadata_size =
      metadata.value.size() - (end - begin) + 2 + text.size();  // tag and length are a byte each
  const std::size_t raw_size =
      raw.value.size() - (metadata.end - metadata.begin) + 1 + VarintSize(metadata_size) + metadata_size;
  out.reserve(out.size() + stored.size() + 48);
  out.append(kProtoMagic).append(unknown.substr(0, raw.begin));
  out += static_cast<char>(kRaw << 3 | 2);
  AppendVarint(out, raw_size);
  out.append(raw.value.substr(0, metadata.begin));
  out += static_cast<char>(kMetadata << 3 | 2);
  AppendVarint(out, metadata_size);
  out.append(metadata.value.substr(0, begin));
  out += static_cast<char>(kResourceVersion << 3 | 2);
  AppendVarint(out, text.size());
  out.append(text)
      .append(metadata.value.substr(end))
      .append(raw.value.substr(metadata.end))
      .append(unknown.substr(raw.end));
  return {};
}

namespace {

// Walks the members of one compact JSON object without looking into their values.
class ObjectWalker {
 public:
  explicit ObjectWalker(std::string_view text, std::size_t open) : text_(text), at_(open + 1) {}

  struct Member {
    std::string_view key;   // as written, without quotes
    std::size_t begin = 0;  // of the opening quote
    std::size_t value = 0;
    std::size_t end = 0;  // behind the value
  };

  // False at the end of the object, or where the text makes no sense (then ok() is false).
  bool Next(Member& member) {
    Space();
    if (Peek() == ',') ++at_, Space();
    if (Peek() == '}') {
      close_ = at_;
      return false;
    }
    member.begin = at_;
    if (Peek() != '"' || !String()) return Bad();
    member.key = text_.substr(member.begin + 1, at_ - member.begin - 2);
    Space();
    if (Peek() != ':') return Bad();
    ++at_;
    Space();
    member.value = at_;
    if (!Value()) return Bad();
    member.end = at_;
    return true;
  }
  bool ok() const { return ok_; }
  std::size_t close() const { return close_; }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Bad() {
    ok_ = false;
    return false;
  }
  void Space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool String() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }
  bool Value() {
    std::size_t depth = 0;
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!String()) return false;
        if (depth == 0) return true;
        continue;
      }
      if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) return at_ > start;
        if (--depth == 0) {
          ++at_;
          return true;
        }
      } else if (c == ',' && depth == 0) {
        return at_ > start;
      }
      ++at_;
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_;
  std::size_t close_ = 0;
  bool ok_ = true;
};

// Whether a member of metadata stands after resourceVersion.
bool ComesAfter(std::string_view key, const Struct* object_meta) {
  if (object_meta == nullptr) return key > "resourceVersion";
  const std::uint16_t position = object_meta->FindPosition(key);
  return position != Struct::kNoPosition && position > object_meta->FindPosition("resourceVersion");
}

}  // namespace

Outcome<void, DecodeError> SpliceResourceVersionJSON(std::string_view stored, std::uint64_t resource_version,
                                                     const Struct* type, std::string& out) {
  const std::size_t open = stored.find_first_not_of(" \t\r\n");
  if (open == std::string_view::npos || stored[open] != '{') return Broken("a JSON object is expected");
  ObjectWalker walker(stored, open);
  ObjectWalker::Member metadata;
  bool found = false;
  while (!found && walker.Next(metadata)) found = metadata.key == "metadata" && stored[metadata.value] == '{';
  if (!found) return Broken(walker.ok() ? "no metadata" : "broken JSON");
  const Field* field = type == nullptr ? nullptr : type->FindField("metadata");
  const Struct* object_meta = field == nullptr ? nullptr : field->type->structure;

  ObjectWalker members(stored, metadata.value);
  ObjectWalker::Member member, previous;
  std::size_t count = 0;
  std::optional<std::size_t> insert;
  bool insert_first = true;
  char buffer[24];
  const std::string_view text = Decimal(resource_version, buffer);
  while (members.Next(member)) {
    if (member.key == "resourceVersion") {
      if (!text.empty()) {
        out.append(stored.substr(0, member.value))
            .append("\"")
            .append(text)
            .append("\"")
            .append(stored.substr(member.end));
      } else if (count > 0) {  // with the comma before it
        out.append(stored.substr(0, previous.end)).append(stored.substr(member.end));
      } else {
        const std::size_t next = stored.find_first_not_of(" \t\r\n", member.end);
        const bool comma = next != std::string_view::npos && stored[next] == ',';
        out.append(stored.substr(0, member.begin)).append(stored.substr(comma ? next + 1 : member.end));
      }
      return {};
    }
    if (!insert.has_value() && ComesAfter(member.key, object_meta)) {
      insert = member.begin;
      insert_first = false;
    }
    previous = member;
    ++count;
  }
  if (!members.ok()) return Broken("broken JSON");
  if (text.empty()) {
    out.append(stored);
    return {};
  }
  const std::size_t at = insert.value_or(count == 0 ? metadata.value + 1 : previous.end);
  out.append(stored.substr(0, at));
  if (insert_first && count > 0) out += ',';
  out.append("\"resourceVersion\":\"").append(text).append("\"");
  if (!insert_first) out += ',';
  out.append(stored.substr(at));
  return {};
}

Outcome<std::string_view, DecodeError> MetadataMessage(std::string_view stored) {
  KS_TRY(const Envelope envelope, ParseEnvelope(stored));
  const Found metadata = FindBytes(envelope.raw, kMetadata);
  if (!metadata.ok) return Broken();
  return Outcome<std::string_view, DecodeError>(std::in_place, metadata.value);
}

Outcome<MetadataView, DecodeError> ReadMetadata(std::string_view stored) {
  KS_TRY(const std::string_view metadata, MetadataMessage(stored));
  MetadataView view;
  for (WireReader in(metadata); !in.AtEnd();) {
    std::uint32_t number = 0;
    WireType wire{};
    std::string_view bytes;
    if (!in.Tag(number, wire)) return Broken();
    if (number == kGeneration && wire == WireType::kVarint) {
      std::uint64_t value = 0;
      if (!in.Varint(value)) return Broken();
      view.generation = static_cast<std::int64_t>(value);
      continue;
    }
    if (wire != WireType::kBytes) {
      if (!in.Skip(wire)) return Broken();
      continue;
    }
    if (!in.Bytes(bytes)) return Broken();
    switch (number) {
      case kName:
        view.name = bytes;
        break;
      case kNamespace:
        view.name_space = bytes;
        break;
      case kUID:
        view.uid = bytes;
        break;
      case kResourceVersion:
        view.resource_version = bytes;
        break;
      case kDeletionTimestamp: {
        WireReader time(bytes);
        std::uint64_t seconds = 0;
        if (time.AtEnd()) break;
        if (!time.Tag(number, wire) || number != 1 || wire != WireType::kVarint || !time.Varint(seconds))
          return Broken();
        view.deleting = true;
        view.deletion_seconds = static_cast<std::int64_t>(seconds);
        break;
      }
      case kLabels: {
        const Found key = FindBytes(bytes, 1), value = FindBytes(bytes, 2);
        if (!key.ok || !value.ok) return Broken();
        view.labels.emplace_back(key.value, value.value);
        break;
      }
      default:
        break;
    }
  }
  return view;
}

Outcome<void, DecodeError> PartialMetadataToProto(std::string_view stored, std::string_view api_version,
                                                  std::string& out) {
  KS_TRY(const std::string_view metadata, MetadataMessage(stored));
  std::string message;
  message.reserve(metadata.size() + 12);
  message += static_cast<char>(kMetadata << 3 | 2);
  AppendVarint(message, metadata.size());
  message.append(metadata);
  EncodeEnvelope(api_version, "PartialObjectMetadata", message, out);
  return {};
}

Outcome<void, DecodeError> PartialMetadataToJSON(std::string_view stored, std::string_view api_version, bool type_meta,
                                                 std::string& out) {
  KS_TRY(const std::string_view metadata, MetadataMessage(stored));
  static const Struct* const kObjectMeta = schema::FindType("meta/v1", "ObjectMeta");
  const std::size_t start = out.size();
  out += '{';
  if (type_meta) out.append(R"("kind":"PartialObjectMetadata","apiVersion":")").append(api_version).append("\",");
  out.append("\"metadata\":");
  auto written = TranscodeMessage(metadata, *kObjectMeta, {}, {}, out);
  if (!written.ok()) {
    out.resize(start);
    return written;
  }
  out += '}';
  return {};
}

FieldReader::FieldReader(const Struct& type, std::vector<std::string> paths) : paths_(std::move(paths)) {
  for (const std::string& path : paths_) {
    Path compiled;
    const Struct* at = &type;
    std::string_view rest = path;
    while (at != nullptr) {
      const auto dot = rest.find('.');
      const std::string_view name = rest.substr(0, dot);
      // An inlined struct is a message of its own, on the way to its fields.
      const Field* found = nullptr;
      const Struct* next = at;
      for (bool deeper = true; deeper && found == nullptr;) {
        deeper = false;
        for (const Field& field : next->fields) {
          if (field.number == 0) continue;
          if (field.name == name) {
            found = &field;
            break;
          }
          if (field.inlined && field.type->structure->FindField(name) != nullptr) {
            compiled.steps.push_back({field.number, false});
            next = field.type->structure;
            deeper = true;
            break;
          }
        }
      }
      if (found == nullptr || found->type->kind == Kind::kList || found->type->kind == Kind::kMap) break;
      compiled.steps.push_back({found->number, found->pointer});
      if (dot == std::string_view::npos) {
        if (found->type->kind <= Kind::kInt64) {
          compiled.kind = found->type->kind;
          rest = {};
        }
        break;
      }
      rest = rest.substr(dot + 1);
      at = found->type->structure;
    }
    if (!rest.empty()) compiled.steps.clear();
    compiled_.push_back(std::move(compiled));
  }
}

Outcome<std::string_view, DecodeError> FieldReader::ReadOne(std::string_view stored, std::size_t path,
                                                            char (&buffer)[32]) const {
  using Text = Outcome<std::string_view, DecodeError>;
  const Path& compiled = compiled_[path];
  if (compiled.steps.empty()) return Text(std::in_place, std::string_view());
  const bool text = compiled.kind == Kind::kString;
  KS_TRY(const Envelope envelope, ParseEnvelope(stored));
  std::string_view message = envelope.raw;
  bool there = true;
  for (std::size_t i = 0; i + (text ? 0 : 1) < compiled.steps.size() && there; ++i) {
    const Found found = FindBytes(message, compiled.steps[i].number);
    if (!found.ok) return Broken();
    there = found.there;
    message = found.value;
    if (!there && compiled.steps[i].pointer && !text) return Text(std::in_place, std::string_view());
  }
  if (text) return Text(std::in_place, there ? message : std::string_view());
  std::uint64_t value = 0;
  bool present = false;
  const auto& last = compiled.steps.back();
  for (WireReader in(there ? message : std::string_view()); !in.AtEnd();) {
    std::uint32_t number = 0;
    WireType wire{};
    if (!in.Tag(number, wire)) return Broken();
    if (number == last.number && wire == WireType::kVarint) {
      if (!in.Varint(value)) return Broken();
      present = true;
    } else if (!in.Skip(wire)) {
      return Broken();
    }
  }
  if (!present && last.pointer) return Text(std::in_place, std::string_view());
  if (compiled.kind == Kind::kBool) return Text(std::in_place, value != 0 ? "true" : "false");
  const std::int64_t integer =
      compiled.kind == Kind::kInt32 ? std::int64_t{static_cast<std::int32_t>(value)} : static_cast<std::int64_t>(value);
  const char* end = std::to_chars(buffer, buffer + sizeof buffer, integer).ptr;
  return Text(std::in_place, std::string_view(buffer, static_cast<std::size_t>(end - buffer)));
}

}  // namespace keelson::codec
