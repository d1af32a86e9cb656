#include "storage/packed.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/companion.h"
#include "storage/compress.h"
#include "storage/json_splice.h"
#include "storage/stored_form.h"
#include "storage/text_pool.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;

constexpr std::string_view kMagic("\x01pk\x02", 4);
constexpr std::string_view kResourceVersion = "\"resourceVersion\"";
constexpr std::string_view kDamaged = "object data is corrupt";
// Bounds of the shared part. Any cut gives the same bytes back, so these need not be the members of the top level.
constexpr std::string_view kSharedBegin = ",\"spec\":{", kSharedEnd = ",\"status\":{";

struct Header {
  std::uint64_t resource_version = 0;
  std::uint32_t size : 31 = 0;    // of the plain bytes
  std::uint32_t current : 1 = 1;  // These are what was stored, and what would be stored.
  std::uint32_t begin = 0;        // of the shared text in them
  TextPool::ID text = 0;          // 0: none
};
constexpr std::size_t kHeaderBytes = kMagic.size() + sizeof(Header);
constexpr std::size_t kSizeMax = 0x7fffffff;

Header ReadHeader(std::string_view held) {
  Header header;
  std::memcpy(&header, held.data() + kMagic.size(), sizeof(header));
  return header;
}

void WriteHeader(char* out, const Header& header) {
  std::memcpy(out, kMagic.data(), kMagic.size());
  std::memcpy(out + kMagic.size(), &header, sizeof(header));
}

struct TextHolder final : base::Companion {
  explicit TextHolder(TextPool::TextPtr text_in) : text(std::move(text_in)) {}
  const TextPool::TextPtr text;
};

// A copy of packed bytes that keeps its shared text.
SharedBytes Hold(const Header& header, std::string_view packed, TextPool::TextPtr text) {
  char* data = nullptr;
  SharedBytes held = SharedBytes::Uninitialized(kHeaderBytes + packed.size(), &data);
  if (text) base::Attach(held, std::make_unique<TextHolder>(std::move(text)));
  WriteHeader(data, header);
  std::memcpy(data + kHeaderBytes, packed.data(), packed.size());
  return held;
}

bool IsCompressed(const Header& header) { return header.size >= kCompressedBytesMin; }
// Repetitions of the shared text in a large rest (an annotation with the whole definition) are worth its decompression.
bool IsPrefix(std::size_t rest_size) { return rest_size >= kCompressedBytesMin / 2; }

// string_view::find() looks at every quote.
bool HasResourceVersion(std::string_view plain) {
  return ::memmem(plain.data(), plain.size(), kResourceVersion.data(), kResourceVersion.size()) != nullptr;
}

// The part of `plain` that other versions of the object have too; empty when there is none to speak of.
std::string_view SharedPart(std::string_view plain) {
  const std::size_t begin = plain.find(kSharedBegin), end = plain.rfind(kSharedEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + kPackedBytesMin / 2) return {};
  return plain.substr(begin, end - begin);
}

std::optional<SharedBytes> PackShared(const SharedBytes& plain, Header header) {
  const std::string_view part = SharedPart(plain.view());
  if (part.empty()) return std::nullopt;
  const auto form = IsCompressed(header) ? TextPool::Form::kCompressed : TextPool::Form::kPlain;
  TextPool::TextPtr text = TextPool::Global().Intern(part, form);
  if (!text) return std::nullopt;
  header.begin = static_cast<std::uint32_t>(part.data() - plain.data());
  header.text = text->id;
  std::string rest(plain.view().substr(0, header.begin));
  rest += plain.view().substr(header.begin + part.size());
  if (!IsCompressed(header)) return Hold(header, rest, std::move(text));
  std::string packed;
  if (!AppendCompressed(packed, rest, IsPrefix(rest.size()) ? part : "")) return std::nullopt;
  return Hold(header, packed, std::move(text));
}

// `plain` itself where it is small or does not compress. REQUIRES: no resourceVersion inside.
SharedBytes Pack(const SharedBytes& plain, bool current) {
  if (plain.size() < kPackedBytesMin || plain.size() > kSizeMax) return plain;
  const Header header{.size = static_cast<std::uint32_t>(plain.size()), .current = current ? 1U : 0U};
  if (auto shared = PackShared(plain, header)) return *std::move(shared);
  std::string packed;
  if (!IsCompressed(header) || !AppendCompressed(packed, plain.view())) return plain;
  return Hold(header, packed, nullptr);
}

// Null: there is none, or `held` is damaged.
TextPool::TextPtr TextOf(const Header& header) {
  if (header.text == 0) return nullptr;
  TextPool::TextPtr text = TextPool::Global().Find(header.text);
  if (!text || text->size > header.size || header.begin > header.size - text->size) return nullptr;
  return text;
}

// Fills [out, out + size) with the part that is not shared.
bool WriteRest(std::string_view held, char* out, std::size_t size, std::string_view prefix) {
  const std::string_view rest = held.substr(kHeaderBytes);
  if (IsCompressed(ReadHeader(held))) return Decompress(rest, out, size, prefix);
  if (rest.size() != size) return false;
  std::memcpy(out, rest.data(), size);
  return true;
}

// The plain bytes without their shared text; nothing where it is needed to read them.
std::optional<SharedBytes> Rest(std::string_view held) {
  const Header header = ReadHeader(held);
  const TextPool::TextPtr text = TextOf(header);
  if (!text || IsPrefix(header.size - text->size)) return std::nullopt;
  char* data = nullptr;
  SharedBytes rest = SharedBytes::Uninitialized(header.size - text->size, &data);
  if (!WriteRest(held, data, rest.size(), "")) return std::nullopt;
  return rest;
}

// Without resourceVersion. Nothing when it is damaged.
std::optional<SharedBytes> Plain(std::string_view held) {
  const Header header = ReadHeader(held);
  char* data = nullptr;
  SharedBytes plain = SharedBytes::Uninitialized(header.size, &data);
  if (header.text == 0) {
    if (!Decompress(held.substr(kHeaderBytes), data, header.size)) return std::nullopt;
    return plain;
  }
  const TextPool::TextPtr text = TextOf(header);
  if (!text) return std::nullopt;
  char* const part = data + header.begin;
  if (!text->Write(part)) return std::nullopt;
  const std::size_t rest_size = header.size - text->size;
  const std::unique_ptr<char[]> rest(new char[rest_size]);
  const std::string_view prefix = IsPrefix(rest_size) ? std::string_view(part, text->size) : "";
  if (!WriteRest(held, rest.get(), rest_size, prefix)) return std::nullopt;
  std::memcpy(data, rest.get(), header.begin);
  std::memcpy(part + text->size, rest.get() + header.begin, rest_size - header.begin);
  return plain;
}

// With the resourceVersion; empty when it is damaged.
SharedBytes Whole(std::string_view held) {
  const auto plain = Plain(held);
  if (!plain) return {};
  const std::uint64_t version = ReadHeader(held).resource_version;
  auto whole = SetJSONResourceVersion(plain->view(), version == 0 ? std::string() : std::to_string(version),
                                      MetadataOrder::kStruct);
  return whole ? *std::move(whole) : SharedBytes();
}

class PackedCodec final : public ResourceCodec, public StoredForm {
 public:
  explicit PackedCodec(std::unique_ptr<ResourceCodec> inner) : inner_(std::move(inner)) {}

  const meta::GroupResource& resource() const override { return inner_->resource(); }
  bool completes_on_read() const override { return inner_->completes_on_read(); }

  Outcome<SharedBytes, std::string> Encode(base::Arena& arena, Value object) const override {
    KS_TRY(const SharedBytes plain, inner_->Encode(arena, object));
    return Pack(plain, true);
  }
  Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const override {
    if (!IsPacked(stored)) return inner_->Decode(arena, stored);
    const std::string_view whole = Unpacked(arena, stored);
    if (whole.empty()) return std::string(kDamaged);
    return inner_->Decode(arena, whole);
  }
  Outcome<SharedBytes, std::string> Normalize(std::string_view stored) const override {
    if (IsPacked(stored)) return SharedBytes();
    KS_TRY(SharedBytes normalized, inner_->Normalize(stored));
    const bool current = normalized.empty();
    const std::size_t size = current ? stored.size() : normalized.size();
    if (size < kPackedBytesMin) return normalized;
    const SharedBytes plain = current ? SharedBytes(stored) : std::move(normalized);
    if (!HasResourceVersion(plain.view())) return Pack(plain, current);
    KS_TRY(const SharedBytes unversioned, inner_->WithResourceVersion(plain.view(), 0));
    return Pack(unversioned, current);
  }
  Outcome<SharedBytes, std::string> WithResourceVersion(std::string_view stored,
                                                        std::uint64_t resource_version) const override {
    if (!IsPacked(stored)) return inner_->WithResourceVersion(stored, resource_version);
    Header header = ReadHeader(stored);
    TextPool::TextPtr text = TextOf(header);
    if (header.text != 0 && !text) return std::string(kDamaged);
    header.resource_version = resource_version;
    return Hold(header, stored.substr(kHeaderBytes), std::move(text));
  }
  Outcome<Attributes, std::string> GetAttrs(const SharedBytes& stored) const override {
    if (!IsPacked(stored.view())) return inner_->GetAttrs(stored);
    // Selectors read metadata, which is in the rest; an object without its spec is still JSON.
    if (const auto rest = Rest(stored.view())) {
      if (auto attributes = inner_->GetAttrs(*rest); attributes.ok()) return attributes;
    }
    const auto plain = Plain(stored.view());
    if (!plain) return std::string(kDamaged);
    KS_TRY(Attributes attributes, inner_->GetAttrs(*plain));
    KS_CHECK(attributes.message.empty());  // views are of `extra`: the plain bytes go
    return attributes;
  }
  std::string UID(std::string_view stored) const override {
    if (!IsPacked(stored)) return inner_->UID(stored);
    const auto plain = Plain(stored);
    return plain ? inner_->UID(plain->view()) : std::string();
  }

  bool differs() const override { return true; }
  Outcome<SharedBytes, std::string> ToStorage(const SharedBytes& normalized) const override {
    if (!IsPacked(normalized.view())) return normalized;
    auto plain = Plain(normalized.view());
    if (!plain) return std::string(kDamaged);
    return *std::move(plain);
  }
  bool IsCurrent(std::string_view raw, const SharedBytes& normalized) const override {
    if (IsPacked(normalized.view())) return ReadHeader(normalized.view()).current == 1;
    const auto inner = inner_->Normalize(raw);
    return inner.ok() && inner->empty();
  }

 private:
  const std::unique_ptr<ResourceCodec> inner_;
};

}  // namespace

bool IsPacked(std::string_view held) { return held.size() > kHeaderBytes && held.starts_with(kMagic); }

SharedBytes Unpacked(const SharedBytes& held) {
  if (!IsPacked(held.view())) return held;
  return Whole(held.view());
}

std::string_view Unpacked(base::Arena& arena, std::string_view held) {
  return IsPacked(held) ? arena.Copy(Whole(held).view()) : held;
}

UnversionedText UnpackedUnversioned(base::Arena& arena, std::string_view held) {
  if (!IsPacked(held)) return {.json = held};
  const auto plain = Plain(held);
  if (!plain) return {};
  return {.json = arena.Copy(plain->view()), .resource_version = ReadHeader(held).resource_version};
}

std::unique_ptr<ResourceCodec> NewPackedCodec(std::unique_ptr<ResourceCodec> inner) {
  return std::make_unique<PackedCodec>(std::move(inner));
}

}  // namespace keelson::storage
