#include "storage/transform/encryption_at_rest.h"

#include <openssl/evp.h>

#include <utility>
#include <vector>

#include "base/strings.h"
#include "storage/transform/ciphers.h"
#include "storage/transform/prefix_transformers.h"

namespace keelson::storage {
namespace {

using Kind = EncryptionProvider::Kind;
using base::SharedBytes;

std::string SHA256(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  return "sha256:" + base::HexEncode({reinterpret_cast<const char*>(digest), size});
}

meta::GroupResource Parse(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {"", std::string(text)};
  return {std::string(text.substr(dot + 1)), std::string(text.substr(0, dot))};
}

// As it is written in the file: "*." for everything in the core group.
std::string Shown(const meta::GroupResource& resource) {
  return resource.group.empty() && resource.resource == "*" ? "*." : resource.ToString();
}

std::string_view ProviderPrefix(Kind kind) {
  switch (kind) {
    case Kind::kAESGCM:
      return "k8s:enc:aesgcm:v1:";
    case Kind::kAESCBC:
      return "k8s:enc:aescbc:v1:";
    case Kind::kSecretbox:
      return "k8s:enc:secretbox:v1:";
    case Kind::kIdentity:
    case Kind::kKMS:
      break;
  }
  return "";
}

std::unique_ptr<Transformer> NewCipher(Kind kind, const std::string& secret, base::Random& random) {
  switch (kind) {
    case Kind::kAESGCM:
      return NewAESGCMTransformer(secret, random);
    case Kind::kAESCBC:
      return NewAESCBCTransformer(secret, random);
    case Kind::kSecretbox:
      return NewSecretboxTransformer(secret, random);
    case Kind::kIdentity:
    case Kind::kKMS:
      break;
  }
  return nullptr;
}

Outcome<PrefixTransformers::Entry, std::string> NewProvider(const EncryptionProvider& provider, base::Random& random) {
  if (provider.kind == Kind::kIdentity) {
    return PrefixTransformers::Entry{
        "", std::shared_ptr<const Transformer>(&Transformer::Identity(), [](const Transformer*) {})};
  }
  if (provider.kind == Kind::kKMS) {
    return "KMS provider " + base::GoQuote(provider.name) +
           ": this server has no KMS client; use aesgcm, aescbc or secretbox";
  }
  std::vector<PrefixTransformers::Entry> keys;
  for (const EncryptionKey& key : provider.keys)
    keys.push_back({key.name + ":", NewCipher(provider.kind, key.secret, random)});
  return PrefixTransformers::Entry{std::string(ProviderPrefix(provider.kind)),
                                   std::make_shared<PrefixTransformers>(std::move(keys))};
}

}  // namespace

struct EncryptionAtRest::Rules : base::RefCounted {
  std::map<meta::GroupResource, PrefixTransformers> transformers;
  std::string hash;

  const Transformer& For(const meta::GroupResource& resource) const {
    for (const meta::GroupResource& rule :
         {resource, meta::GroupResource{resource.group, "*"}, meta::GroupResource{"*", "*"}}) {
      if (const auto found = transformers.find(rule); found != transformers.end()) return found->second;
    }
    return Transformer::Identity();
  }
};

// Asks for the rules anew each time, so that a reload is seen by the next read and write.
class EncryptionAtRest::Following final : public Transformer {
 public:
  Following(const EncryptionAtRest& owner, meta::GroupResource resource)
      : owner_(owner), resource_(std::move(resource)) {}

  Outcome<Plain, std::string> TransformFromStorage(const SharedBytes& data, std::string_view key) const override {
    const auto rules = owner_.rules_.Load();
    return rules->For(resource_).TransformFromStorage(data, key);
  }
  Outcome<SharedBytes, std::string> TransformToStorage(const SharedBytes& data, std::string_view key) const override {
    const auto rules = owner_.rules_.Load();
    return rules->For(resource_).TransformToStorage(data, key);
  }
  bool NeedsPrepare(const SharedBytes& data) const override {
    const auto rules = owner_.rules_.Load();
    return rules->For(resource_).NeedsPrepare(data);
  }
  Awaitable<Outcome<void, std::string>> Prepare(SharedBytes data) const override {
    const auto rules = owner_.rules_.Load();
    co_return co_await rules->For(resource_).Prepare(std::move(data));
  }

 private:
  const EncryptionAtRest& owner_;
  const meta::GroupResource resource_;
};

EncryptionAtRest::EncryptionAtRest(Options options) : options_(options) {}
EncryptionAtRest::~EncryptionAtRest() = default;

Outcome<base::Ref<const EncryptionAtRest::Rules>, std::string> EncryptionAtRest::Build(std::string_view text,
                                                                                       const Options& options) {
  KS_TRY(const EncryptionConfiguration config, ParseEncryptionConfiguration(text, options.reload));
  std::map<meta::GroupResource, std::vector<PrefixTransformers::Entry>> entries;
  for (const EncryptionResources& item : config.resources) {
    std::vector<PrefixTransformers::Entry> providers;
    for (const EncryptionProvider& provider : item.providers) {
      KS_TRY(PrefixTransformers::Entry entry, NewProvider(provider, *options.random));
      providers.push_back(std::move(entry));
    }
    for (const std::string& name : item.resources) {
      const meta::GroupResource resource = Parse(name);
      for (const meta::GroupResource& rule :
           {meta::GroupResource{resource.group, "*"}, meta::GroupResource{"*", "*"}}) {
        if (!entries.contains(rule)) continue;
        return "resource " + base::GoQuote(Shown(resource)) + " is masked by earlier rule " +
               base::GoQuote(Shown(rule));
      }
      auto& list = entries[resource];
      list.insert(list.end(), providers.begin(), providers.end());
    }
  }
  auto rules = base::MakeRef<Rules>();
  for (auto& [resource, list] : entries) rules->transformers.emplace(resource, std::move(list));
  rules->hash = SHA256(text);
  return base::Ref<const Rules>(rules);
}

Outcome<std::unique_ptr<EncryptionAtRest>, std::string> EncryptionAtRest::New(std::string_view text, Options options) {
  KS_TRY(base::Ref<const Rules> rules, Build(text, options));
  std::unique_ptr<EncryptionAtRest> made(new EncryptionAtRest(options));
  made->rules_.Store(std::move(rules));
  return made;
}

const Transformer& EncryptionAtRest::For(const meta::GroupResource& resource) {
  std::lock_guard lock(mutex_);
  auto& follower = followers_[resource];
  if (!follower) follower = std::make_unique<Following>(*this, resource);
  return *follower;
}

Outcome<bool, std::string> EncryptionAtRest::Reload(std::string_view text) {
  if (SHA256(text) == hash()) return false;
  KS_TRY(base::Ref<const Rules> rules, Build(text, options_));
  rules_.Store(std::move(rules));
  return true;
}

std::string EncryptionAtRest::hash() const { return rules_.Load()->hash; }

}  // namespace keelson::storage
