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
constexpr std::uint32_t kName = 1, kNamespace = 3, kUID = 5, kResourceVersion = 6, kGeneration = 7,
                        kDeletionTimestamp = 9, kLabels = 11;

DecodeError Broken(std::string_view text = "unexpected EOF") { return {DecodeError::Kind::kSyntax, std::string(text)}; }

// The last occurrence of a length-delimited field.
struct Found {
  bool ok = true;  // the message makes sense
  bool there = false;
  std::string_view value;
};
Found FindBytes(std::string_view message, std::uint32_t wanted) {
  Found found;
  WireReader in(message);
  while (!in.AtEnd()) {
    std::uint32_t number = 0;
    WireType wire{};
    if (!in.Tag(number, wire)) return {.ok = false};
    if (number == wanted && wire == WireType::kBytes) {
      if (!in.Bytes(found.value)) return {.ok = false};
      found.there = true;
    } else if (!in.Skip(wire)) {
      return {.ok = false};
    }
  }
  return found;
}

}  // namespace

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
      // An inlined struct is a nested message around its fields.
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
