#include "storage/transform/prefix_transformers.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;

SharedBytes Behind(const SharedBytes& data, const std::string& prefix) {
  return data.Slice(prefix.size(), data.size() - prefix.size());
}

SharedBytes Prefixed(const std::string& prefix, SharedBytes sealed) {
  if (prefix.empty()) return sealed;
  char* out = nullptr;
  SharedBytes prefixed = SharedBytes::Uninitialized(prefix.size() + sealed.size(), &out);
  std::memcpy(out, prefix.data(), prefix.size());
  std::memcpy(out + prefix.size(), sealed.data(), sealed.size());
  return prefixed;
}

}  // namespace

PrefixTransformers::PrefixTransformers(std::vector<Entry> entries) : entries_(std::move(entries)) {
  KS_CHECK(!entries_.empty());
}

Outcome<Transformer::Plain, std::string> PrefixTransformers::TransformFromStorage(
    const SharedBytes& data, const TransformContext& context) const {
  std::string first_error;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!data.view().starts_with(entry.prefix)) continue;
    auto plain =
        entry.transformer->TransformFromStorage(entry.prefix.empty() ? data : Behind(data, entry.prefix), context);
    if (plain.ok()) {
      plain->stale = plain->stale || i != 0;
      return plain;
    }
    // Keys of the same name may follow (two providers that overlap). That identity cannot read encrypted data says
    // nothing.
    if (!entry.prefix.empty() && first_error.empty()) first_error = std::move(plain).error();
  }
  return first_error.empty() ? std::string("no matching prefix found") : first_error;
}

Outcome<SharedBytes, std::string> PrefixTransformers::TransformToStorage(const SharedBytes& data,
                                                                         const TransformContext& context) const {
  const Entry& writer = entries_[0];
  KS_TRY(SharedBytes sealed, writer.transformer->TransformToStorage(data, context));
  return Prefixed(writer.prefix, std::move(sealed));
}

Awaitable<Outcome<SharedBytes, std::string>> PrefixTransformers::AwaitToStorage(SharedBytes data,
                                                                                std::string key) const {
  const Entry& writer = entries_[0];
  KS_CO_TRY(SharedBytes sealed, co_await writer.transformer->AwaitToStorage(std::move(data), std::move(key)));
  co_return Prefixed(writer.prefix, std::move(sealed));
}

const std::string* PrefixTransformers::PrefixOf(const SharedBytes& data) const {
  for (const Entry& entry : entries_) {
    if (data.view().starts_with(entry.prefix)) return &entry.prefix;
  }
  return nullptr;
}

bool PrefixTransformers::NeedsPrepare(const SharedBytes& data) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return !entry.prefix.empty() && data.view().starts_with(entry.prefix) &&
           entry.transformer->NeedsPrepare(Behind(data, entry.prefix));
  });
}

Awaitable<Outcome<void, std::string>> PrefixTransformers::Prepare(SharedBytes data) const {
  std::optional<std::string> failed;
  for (const Entry& entry : entries_) {
    if (entry.prefix.empty() || !data.view().starts_with(entry.prefix)) continue;
    SharedBytes inner = Behind(data, entry.prefix);
    if (!entry.transformer->NeedsPrepare(inner)) continue;
    auto prepared = co_await entry.transformer->Prepare(std::move(inner));
    if (prepared.ok()) co_return prepared;
    if (!failed) failed = std::move(prepared).error();
  }
  if (failed) co_return *std::move(failed);
  co_return Outcome<void, std::string>();
}

}  // namespace keelson::storage
