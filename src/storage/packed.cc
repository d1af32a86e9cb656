#include "storage/packed.h"

#include <zstd.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "storage/json_splice.h"
#include "storage/stored_form.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;

constexpr std::string_view kMagic("\x01pk\x01", 4);
constexpr std::size_t kHeaderBytes = 4 + 8 + 4;
constexpr int kLevel = 3;
constexpr std::string_view kDamaged = "object data is corrupt";

struct Header {
  std::uint64_t resource_version = 0;
  std::uint32_t size = 0;
};

Header ReadHeader(std::string_view held) {
  Header header;
  std::memcpy(&header.resource_version, held.data() + 4, 8);
  std::memcpy(&header.size, held.data() + 12, 4);
  return header;
}

void WriteHeader(char* out, const Header& header) {
  std::memcpy(out, kMagic.data(), kMagic.size());
  std::memcpy(out + 4, &header.resource_version, 8);
  std::memcpy(out + 12, &header.size, 4);
}

// `plain` itself where it is small or does not compress. REQUIRES: no resourceVersion inside.
SharedBytes Pack(const SharedBytes& plain) {
  if (plain.size() < kPackedBytesMin || plain.size() > UINT32_MAX) return plain;
  std::string out(kHeaderBytes + ZSTD_compressBound(plain.size()), '\0');
  const std::size_t packed =
      ZSTD_compress(out.data() + kHeaderBytes, out.size() - kHeaderBytes, plain.data(), plain.size(), kLevel);
  if (ZSTD_isError(packed) != 0 || kHeaderBytes + packed >= plain.size()) return plain;
  WriteHeader(out.data(), {.size = static_cast<std::uint32_t>(plain.size())});
  return SharedBytes(std::string_view(out).substr(0, kHeaderBytes + packed));  // a copy of the right size
}

// zstd's working memory (about 160 kB), kept by each thread that unpacks: to make it anew costs more than to unpack a
// definition.
ZSTD_DCtx* UnpackingContext() {
  thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  return context.get();
}

// Without resourceVersion. Nothing when it is damaged.
std::optional<SharedBytes> Plain(std::string_view held) {
  char* data = nullptr;
  const std::size_t size = ReadHeader(held).size;
  SharedBytes plain = SharedBytes::Uninitialized(size, &data);
  const std::size_t got =
      ZSTD_decompressDCtx(UnpackingContext(), data, size, held.data() + kHeaderBytes, held.size() - kHeaderBytes);
  if (got != size) return std::nullopt;
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
    return Pack(plain);
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
    const std::size_t size = normalized.empty() ? stored.size() : normalized.size();
    if (size < kPackedBytesMin) return normalized;
    const SharedBytes plain = normalized.empty() ? SharedBytes(stored) : std::move(normalized);
    KS_TRY(const SharedBytes unversioned, inner_->WithResourceVersion(plain.view(), 0));
    return Pack(unversioned);
  }
  Outcome<SharedBytes, std::string> WithResourceVersion(std::string_view stored,
                                                        std::uint64_t resource_version) const override {
    if (!IsPacked(stored)) return inner_->WithResourceVersion(stored, resource_version);
    char* data = nullptr;
    SharedBytes held = SharedBytes::Uninitialized(stored.size(), &data);
    std::memcpy(data, stored.data(), stored.size());
    WriteHeader(data, {resource_version, ReadHeader(stored).size});
    return held;
  }
  Outcome<Attributes, std::string> GetAttrs(const SharedBytes& stored) const override {
    if (!IsPacked(stored.view())) return inner_->GetAttrs(stored);
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
  bool IsCurrent(std::string_view raw) const override {
    const auto normalized = inner_->Normalize(raw);
    return normalized.ok() && normalized->empty();
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

std::unique_ptr<ResourceCodec> NewPackedCodec(std::unique_ptr<ResourceCodec> inner) {
  return std::make_unique<PackedCodec>(std::move(inner));
}

}  // namespace keelson::storage
