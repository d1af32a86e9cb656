#include "storage/transformer.h"

namespace keelson::storage {
namespace {

class IdentityTransformer final : public Transformer {
 public:
  Outcome<Plain, std::string> TransformFromStorage(const base::SharedBytes& data,
                                                   const TransformContext&) const override {
    // Bytes of another provider must not reach a decoder: some would even parse.
    if (IsEncrypted(data)) return std::string("identity transformer tried to read encrypted data");
    return Plain{.data = data};
  }
  Outcome<base::SharedBytes, std::string> TransformToStorage(const base::SharedBytes& data,
                                                             const TransformContext&) const override {
    return data;
  }
};

}  // namespace

Awaitable<Outcome<void, std::string>> Transformer::Prepare(base::SharedBytes) const {
  co_return Outcome<void, std::string>();
}

Awaitable<Outcome<base::SharedBytes, std::string>> Transformer::AwaitToStorage(base::SharedBytes data,
                                                                               std::string key) const {
  co_return TransformToStorage(data, key);
}

const Transformer& Transformer::Identity() {
  static const IdentityTransformer identity;
  return identity;
}

}  // namespace keelson::storage
