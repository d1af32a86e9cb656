#include "storage/proto_scan.h"

#include <cstring>

#include "codec/wire.h"

namespace keelson::storage {
namespace {

using codec::WireReader;
using codec::WireType;

constexpr std::string_view kMagic("k8s\0", 4);
constexpr std::uint32_t kEnvelopeRaw = 2;
constexpr std::uint32_t kMetadata = 1;

// A length-delimited field: its position, tag and length included, and its content.
struct Found {
  std::size_t begin = 0;  // of the tag
  std::size_t end = 0;
  std::string_view bytes;
  bool there = false;
};

// The first field `number`; if absent, its position in ascending order.
bool Find(std::string_view message, std::uint32_t number, Found& found) {
  WireReader reader(message);
  bool placed = false;
  while (!reader.AtEnd()) {
    const auto begin = static_cast<std::size_t>(reader.at() - message.data());
    std::uint32_t at = 0;
    WireType type{};
    if (!reader.Tag(at, type)) return false;
    if (at == number && type == WireType::kBytes) {
      if (!reader.Bytes(found.bytes)) return false;
      found.begin = begin;
      found.end = static_cast<std::size_t>(reader.at() - message.data());
      found.there = true;
      return true;
    }
    if (!reader.Skip(type)) return false;
    if (!placed && at > number) {
      found.begin = found.end = begin;
      placed = true;
    }
  }
  if (!placed) found.begin = found.end = message.size();
  return true;
}

std::size_t VarintSize(std::uint64_t value) {
  std::size_t size = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

class Writer {
 public:
  explicit Writer(char* at) : at_(at) {}
  void Bytes(std::string_view bytes) {
    std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void Header(std::uint32_t number, std::size_t size) {  // numbers below 16: one byte
    *at_++ = static_cast<char>(number << 3 | static_cast<std::uint32_t>(WireType::kBytes));
    std::uint64_t value = size;
    for (; value >= 0x80; value >>= 7) *at_++ = static_cast<char>(value | 0x80);
    *at_++ = static_cast<char>(value);
  }
  const char* at() const { return at_; }

 private:
  char* at_;
};

std::size_t FieldSize(std::size_t size) { return 1 + VarintSize(size) + size; }

}  // namespace

bool FindRaw(std::string_view stored, std::string_view& raw) {
  if (!stored.starts_with(kMagic)) return false;
  Found found;
  if (!Find(stored.substr(kMagic.size()), kEnvelopeRaw, found) || !found.there) return false;
  raw = found.bytes;
  return true;
}

std::optional<std::string_view> FindBytes(std::string_view message, std::uint32_t number, bool& valid) {
  std::optional<std::string_view> last;
  WireReader reader(message);
  while (!reader.AtEnd()) {
    std::uint32_t at = 0;
    WireType type{};
    std::string_view bytes;
    const bool read =
        reader.Tag(at, type) && (at == number && type == WireType::kBytes ? reader.Bytes(bytes) : reader.Skip(type));
    if (!read) {
      valid = false;
      return std::nullopt;
    }
    if (at == number && type == WireType::kBytes) last = bytes;
  }
  return last;
}

std::optional<base::SharedBytes> SetProtoResourceVersion(std::string_view stored, std::string_view text) {
  if (!stored.starts_with(kMagic)) return std::nullopt;
  const std::string_view envelope = stored.substr(kMagic.size());
  Found raw;
  Found metadata;
  Found version;
  if (!Find(envelope, kEnvelopeRaw, raw) || !raw.there) return std::nullopt;
  if (!Find(raw.bytes, kMetadata, metadata) || !metadata.there) return std::nullopt;
  if (!Find(metadata.bytes, object_meta::kResourceVersion, version)) return std::nullopt;
  // Three nested lengths change with the text.
  const std::size_t metadata_size = metadata.bytes.size() - (version.end - version.begin) + FieldSize(text.size());
  const std::size_t raw_size = raw.bytes.size() - (metadata.end - metadata.begin) + FieldSize(metadata_size);
  const std::size_t size = stored.size() - (raw.end - raw.begin) + FieldSize(raw_size);
  char* data = nullptr;
  base::SharedBytes out = base::SharedBytes::Uninitialized(size, &data);
  Writer writer(data);
  writer.Bytes(kMagic);
  writer.Bytes(envelope.substr(0, raw.begin));
  writer.Header(kEnvelopeRaw, raw_size);
  writer.Bytes(raw.bytes.substr(0, metadata.begin));
  writer.Header(kMetadata, metadata_size);
  writer.Bytes(metadata.bytes.substr(0, version.begin));
  writer.Header(object_meta::kResourceVersion, text.size());
  writer.Bytes(text);
  writer.Bytes(metadata.bytes.substr(version.end));
  writer.Bytes(raw.bytes.substr(metadata.end));
  writer.Bytes(envelope.substr(raw.end));
  if (writer.at() != data + size) return std::nullopt;
  return out;
}

void ProtoPaths::Add(const std::vector<std::uint32_t>& numbers, int leaf) {
  std::vector<Node>* level = &roots;
  Node* node = nullptr;
  for (const std::uint32_t number : numbers) {
    node = nullptr;
    for (Node& known : *level) {
      if (known.number == number) node = &known;
    }
    if (node == nullptr) node = &level->emplace_back(Node{.number = number});
    level = &node->children;
  }
  if (node != nullptr) node->leaf = leaf;
}

bool ScanProto(std::string_view message, const std::vector<ProtoPaths::Node>& paths,
               const std::function<void(int, const ProtoValue&)>& visit) {
  WireReader reader(message);
  while (!reader.AtEnd()) {
    std::uint32_t number = 0;
    WireType type{};
    if (!reader.Tag(number, type)) return false;
    const ProtoPaths::Node* wanted = nullptr;
    for (const ProtoPaths::Node& node : paths) {
      if (node.number == number) wanted = &node;
    }
    if (wanted == nullptr || (type != WireType::kBytes && type != WireType::kVarint)) {
      if (!reader.Skip(type)) return false;
      continue;
    }
    ProtoValue value;
    if (!(type == WireType::kBytes ? reader.Bytes(value.bytes) : reader.Varint(value.number))) return false;
    if (wanted->leaf >= 0) visit(wanted->leaf, value);
    // As deep as the requested paths.
    if (!wanted->children.empty() && !ScanProto(value.bytes, wanted->children, visit)) return false;
  }
  return true;
}

}  // namespace keelson::storage
