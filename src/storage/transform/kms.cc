#include "storage/transform/kms.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "base/atomic_ref.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/ref.h"
#include "base/strings.h"
#include "storage/kms/encrypted_object.h"
#include "storage/kms/service.h"
#include "storage/transform/ciphers.h"
#include "telemetry/log.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;
using kms::DEKSourceType;
using kms::EncryptedObject;
using SteadyTime = base::Clock::SteadyTime;
using SystemTime = base::Clock::SystemTime;

constexpr std::size_t kSeedBytes = 32;
constexpr std::size_t kInfoBytes = 32;
constexpr auto kProbePeriod = std::chrono::minutes(1);
constexpr auto kProbePeriodFailed = std::chrono::seconds(10);
constexpr auto kHealthAge = std::chrono::seconds(20);  // of an answer to a health check
constexpr auto kHealthAgeFailed = std::chrono::seconds(3);
constexpr auto kWriteExpiry = std::chrono::minutes(3);  // a seed that no probe confirmed writes no longer
constexpr auto kKeyAge = std::chrono::hours(24);        // of keys that decrypt, when others need the room
constexpr std::size_t kKeysMax = 10'000;

std::string RandomBytes(base::Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  random.Fill({reinterpret_cast<std::uint8_t*>(bytes.data()), size});
  return bytes;
}

std::string Sha256(std::string_view text) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size, EVP_sha256(), nullptr);
  digest.resize(size);
  return digest;
}

std::string RFC3339(SystemTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::int64_t UnixSeconds(SystemTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

class ExtendedNonceGCM final : public Transformer {
 public:
  ExtendedNonceGCM(std::string seed, base::Random& random) : seed_(std::move(seed)), random_(random) {
    KS_CHECK(seed_.size() >= kSeedBytes);
  }
  ~ExtendedNonceGCM() override { OPENSSL_cleanse(seed_.data(), seed_.size()); }

  Outcome<Plain, std::string> TransformFromStorage(const SharedBytes& data,
                                                   const TransformContext& context) const override {
    if (data.size() < kInfoBytes) return std::string("the stored data was shorter than the required size");
    const auto cipher = NewAESGCMTransformer(Derive(data.view().substr(0, kInfoBytes)), random_);
    return cipher->TransformFromStorage(data.Slice(kInfoBytes, data.size() - kInfoBytes), context);
  }
  Outcome<SharedBytes, std::string> TransformToStorage(const SharedBytes& data,
                                                       const TransformContext& context) const override {
    const std::string info = RandomBytes(random_, kInfoBytes);
    const auto cipher = NewAESGCMTransformer(Derive(info), random_);
    KS_TRY(SharedBytes sealed, cipher->TransformToStorage(data, context));
    char* out = nullptr;
    SharedBytes whole = SharedBytes::Uninitialized(kInfoBytes + sealed.size(), &out);
    std::memcpy(out, info.data(), kInfoBytes);
    std::memcpy(out + kInfoBytes, sealed.data(), sealed.size());
    return whole;
  }

 private:
  // One block of HKDF's expansion is all that a key needs: HMAC(seed, info ‖ 1).
  std::string Derive(std::string_view info) const {
    std::string input(info);
    input.push_back('\1');
    std::string key(EVP_MAX_MD_SIZE, '\0');
    unsigned int size = 0;
    HMAC(EVP_sha256(), seed_.data(), static_cast<int>(seed_.size()),
         reinterpret_cast<const unsigned char*>(input.data()), input.size(),
         reinterpret_cast<unsigned char*>(key.data()), &size);
    key.resize(size);
    return key;
  }

  std::string seed_;
  base::Random& random_;
};

// Why a plugin is not healthy. Upstream names the section and the provider once, in the answer that made the probe, and
// the plugin's own error alone until the next probe.
struct Unhealthy {
  explicit(false) Unhealthy(std::string text) : first(text), repeated(std::move(text)) {}
  Unhealthy(std::string first, std::string repeated) : first(std::move(first)), repeated(std::move(repeated)) {}
  std::string first;
  std::string repeated;
};

std::optional<std::string> FirstText(const std::optional<Unhealthy>& found) {
  return found ? std::optional(found->first) : std::nullopt;
}

// When a probe is due, and what the last one found.
class Probing {
 public:
  explicit Probing(const base::Clock& clock) : clock_(clock) {}

  // False: another probe is running.
  bool Begin() {
    std::lock_guard lock(mutex_);
    if (busy_) return false;
    busy_ = true;
    asked_ = false;
    return true;
  }
  void End(std::optional<Unhealthy> found) {
    std::lock_guard lock(mutex_);
    busy_ = false;
    told_ = false;
    at_ = clock_.Monotonic();
    found_ = std::move(found);
  }
  bool Due(bool on_its_own) const {
    std::lock_guard lock(mutex_);
    if (!at_) return true;
    const auto age = clock_.Monotonic() - *at_;
    if (asked_ && age >= (found_ ? SteadyTime::duration(kHealthAgeFailed) : SteadyTime::duration(kHealthAge))) {
      return true;
    }
    return on_its_own &&
           age >= (found_ ? SteadyTime::duration(kProbePeriodFailed) : SteadyTime::duration(kProbePeriod));
  }
  std::optional<std::string> Last() {
    std::lock_guard lock(mutex_);
    asked_ = true;
    const bool repeated = std::exchange(told_, true);
    return found_ && repeated ? std::optional(found_->repeated) : FirstText(found_);
  }
  std::optional<std::string> found() const {
    std::lock_guard lock(mutex_);
    return FirstText(found_);
  }

 private:
  const base::Clock& clock_;
  mutable std::mutex mutex_;
  bool busy_ = false;
  bool asked_ = false;
  bool told_ = false;  // Last() was called since the last probe
  std::optional<SteadyTime> at_;
  std::optional<Unhealthy> found_ = std::string("the KMS plugin was not asked yet");
};

kms::DialOptions Dial(const KMSOptions& options) {
  kms::DialOptions dial{.endpoint = options.provider.endpoint,
                        .timeout = std::chrono::milliseconds(options.provider.timeout_ms)};
  if (options.metrics != nullptr) {
    dial.observe = [metrics = options.metrics, name = options.provider.name](
                       std::string_view method, std::string_view code, std::chrono::nanoseconds took) {
      metrics->KMSCall(name, method, code, took);
    };
  }
  return dial;
}

class KMSv2 final : public KMSProvider {
 public:
  explicit KMSv2(KMSOptions options)
      : options_(std::move(options)), probing_(*options_.clock), service_(Dial(options_)) {}

  Outcome<Plain, std::string> TransformFromStorage(const SharedBytes& data,
                                                   const TransformContext& context) const override {
    const telemetry::ScopedSpan span = StartSpan(context, "TransformFromStorage with envelopeTransformer");
    span->AddEvent("About to decode encrypted object");
    const auto decoded = kms::DecodeEncryptedObject(data.view());
    if (!decoded.ok()) return Failed(*span, "Decoding encrypted object failed", decoded.error());
    const EncryptedObject& object = *decoded;
    span->AddEvent("Decoded encrypted object");
    const auto state = state_.Load();
    if (!state) return std::string("got unexpected nil transformer");
    const auto cipher = Find(CacheKey(object));
    if (!cipher) return std::string("failed to decrypt DEK, error: the key was not fetched");
    if (options_.metrics != nullptr) {
      options_.metrics->KeyIDUsed("from_storage", options_.provider.name, object.key_id,
                                  UnixSeconds(options_.clock->Now()));
    }
    span->AddEvent("About to decrypt data using DEK");
    auto plain = cipher->TransformFromStorage(SharedBytes(object.encrypted_data), context);
    if (!plain.ok()) return Failed(*span, "Data decryption failed", plain.error());
    span->AddEvent("Data decryption succeeded");
    plain->stale = plain->stale || object.key_id != state->object.key_id || object.type != state->object.type;
    return plain;
  }

  Outcome<SharedBytes, std::string> TransformToStorage(const SharedBytes& data,
                                                       const TransformContext& context) const override {
    const telemetry::ScopedSpan span = StartSpan(context, "TransformToStorage with envelopeTransformer");
    const auto state = state_.Load();
    if (!state) return std::string("got unexpected nil transformer");
    const SystemTime now = options_.clock->Now();
    const SystemTime expires(SystemTime::duration(expires_.load(std::memory_order_acquire)));
    if (now > expires) {
      return "encryptedDEKSource with keyID hash " + base::GoQuote(HashIfNotEmpty(state->object.key_id)) +
             " expired at " + RFC3339(expires) + " (current time is " + RFC3339(now) + ")";
    }
    span->AddEvent("About to encrypt data using DEK");
    const auto sealed = state->cipher->TransformToStorage(data, context);
    if (!sealed.ok()) return Failed(*span, "Data encryption failed", sealed.error());
    span->AddEvent("Data encryption succeeded");
    if (options_.metrics != nullptr) {
      options_.metrics->KeyIDUsed("to_storage", options_.provider.name, state->object.key_id, UnixSeconds(now));
    }
    EncryptedObject object = state->object;
    object.encrypted_data = sealed->view();
    span->AddEvent("About to encode encrypted object");
    SharedBytes encoded(kms::EncodeEncryptedObject(object));
    span->AddEvent("Encoded encrypted object");
    return encoded;
  }

  bool NeedsPrepare(const SharedBytes& data) const override {
    const auto object = kms::DecodeEncryptedObject(data.view());
    return object.ok() && !Find(CacheKey(*object));
  }

  Awaitable<Outcome<void, std::string>> Prepare(SharedBytes data) const override {
    KS_CO_TRY(const EncryptedObject object, kms::DecodeEncryptedObject(data.view()));
    std::string cache_key = CacheKey(object);
    if (Find(cache_key)) co_return Outcome<void, std::string>();
    if (options_.metrics != nullptr) options_.metrics->CacheMiss();
    kms::DecryptRequest request{.ciphertext = object.encrypted_dek_source,
                                .uid = options_.random->UUID(),
                                .key_id = object.key_id,
                                .annotations = object.annotations};
    auto key = co_await service_.Decrypt(std::move(request));
    if (!key.ok()) co_return "failed to decrypt DEK, error: " + key.error().message;
    if (object.type == DEKSourceType::kHKDFSHA256XNonceAESGCMSeed) {
      if (key->size() < kSeedBytes) {
        co_return "invalid seed length " + std::to_string(key->size()) + " used for key generation";
      }
      Remember(std::move(cache_key), NewExtendedNonceGCMTransformer(*std::move(key), *options_.random));
    } else {
      if (key->size() != 16 && key->size() != 24 && key->size() != 32) {
        co_return "crypto/aes: invalid key size " + std::to_string(key->size());
      }
      Remember(std::move(cache_key), NewAESGCMTransformer(*std::move(key), *options_.random));
    }
    co_return Outcome<void, std::string>();
  }

  Awaitable<std::optional<std::string>> Probe() override {
    if (!probing_.Begin()) co_return probing_.found();
    auto found = co_await Ask();
    const auto text = FirstText(found);
    if (text) log::V(2).Info("The KMS plugin failed its health check", "name", options_.provider.name, "err", *text);
    probing_.End(std::move(found));
    co_return text;
  }
  Awaitable<void> ProbeWhenDue() override {
    if (probing_.Due(true)) co_await Probe();
  }
  std::optional<std::string> Health() override { return probing_.Last(); }

 private:
  telemetry::Span StartSpan(const TransformContext& context, std::string_view name) const {
    if (!context.span.active()) return {};
    return context.span.Start(name, {{"transformer.provider.name", options_.provider.name}});
  }
  static std::string Failed(const telemetry::Span& span, std::string_view event, const std::string& error) {
    span.AddEvent(event);
    span.AddEvent("exception", {{"exception.message", error}});  // OpenTelemetry's RecordError: no status
    return error;
  }

  struct State : base::RefCounted {
    std::shared_ptr<const Transformer> cipher;
    EncryptedObject object;  // without data
  };
  struct Known {
    std::shared_ptr<const Transformer> cipher;
    SteadyTime used;
  };

  static std::string CacheKey(const EncryptedObject& object) {
    std::string text;
    const auto number = [&](std::uint64_t value, int bytes) {
      for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
    };
    const auto piece = [&](std::string_view value) {
      number(value.size(), 2);
      text += value;
    };
    number(static_cast<std::uint64_t>(object.type), 4);
    piece(object.encrypted_dek_source);
    piece(object.key_id);
    if (!object.annotations.empty()) number(object.annotations.size(), 4);
    for (const auto& [key, value] : object.annotations) {
      piece(key);
      piece(value);
    }
    return Sha256(text);
  }

  std::shared_ptr<const Transformer> Find(const std::string& cache_key) const {
    std::lock_guard lock(mutex_);
    const auto found = known_.find(cache_key);
    if (found == known_.end()) return nullptr;
    found->second.used = options_.clock->Monotonic();
    return found->second.cipher;
  }
  void Remember(std::string cache_key, std::shared_ptr<const Transformer> cipher) const {
    const SteadyTime now = options_.clock->Monotonic();
    std::lock_guard lock(mutex_);
    if (known_.size() >= kKeysMax) {
      std::erase_if(known_, [&](const auto& item) { return now - item.second.used > kKeyAge; });
      if (known_.size() >= kKeysMax) known_.erase(known_.begin());
    }
    known_[std::move(cache_key)] = {std::move(cipher), now};
    if (options_.metrics != nullptr) options_.metrics->CacheSize(options_.provider.name, known_.size());
  }

  Awaitable<std::optional<Unhealthy>> Ask() {
    const std::string& name = options_.provider.name;
    // From before the call: how long the seed may be used without word from the plugin.
    const SystemTime now = options_.clock->Now();
    auto status = co_await service_.Status();
    if (!status.ok()) {
      const std::string& why = status.error().message;
      co_return Unhealthy(
          "failed to perform status section of the healthz check for KMS Provider " + name + ", error: " + why, why);
    }
    std::vector<std::string> wrong;
    if (status->healthz != "ok") wrong.push_back("got unexpected healthz status: " + status->healthz);
    if (status->version != "v2" && status->version != "v2beta1") {
      wrong.push_back("expected KMSv2 API version v2, got " + status->version);
    } else {
      if (version_.empty()) version_ = status->version;
      if (version_ != status->version) {
        wrong.push_back("KMSv2 API version should not change after the initial status response version " + version_ +
                        ", got " + status->version);
      }
    }
    if (const std::string invalid = kms::ValidateKeyID(status->key_id); !invalid.empty()) {
      if (options_.metrics != nullptr) {
        options_.metrics->InvalidKeyIDFromStatus(name, status->key_id.empty() ? "empty" : "too_long");
      }
      wrong.push_back("got invalid KMSv2 KeyID hash " + base::GoQuote(HashIfNotEmpty(status->key_id)) + ": " + invalid);
    } else {
      if (options_.metrics != nullptr) options_.metrics->KeyIDFromStatus(name, status->key_id, UnixSeconds(now));
      if (auto failed = co_await RotateOnKeyIDChange(status->key_id, now)) wrong.push_back(*std::move(failed));
    }
    if (wrong.empty()) co_return std::nullopt;
    co_return "kmsv2 Provider " + name +
        " is not healthy, error: " + (wrong.size() == 1 ? wrong[0] : "[" + base::Join(wrong, ", ") + "]");
  }

  // The seed in use stays, and may write until it expires, when no new one can be made.
  Awaitable<std::optional<std::string>> RotateOnKeyIDChange(std::string key_id, SystemTime now) {
    const auto expires = (now + kWriteExpiry).time_since_epoch().count();
    const auto state = state_.Load();
    if (state && state->object.key_id == key_id) {
      expires_.store(expires, std::memory_order_release);
      co_return std::nullopt;
    }
    const std::string uid = options_.random->UUID();
    std::string seed = RandomBytes(*options_.random, kSeedBytes);
    auto sealed = co_await service_.Encrypt(seed, uid);
    std::string wrong;
    EncryptedObject object;
    if (!sealed.ok()) {
      wrong = "failed to encrypt DEK, error: " + sealed.error().message;
    } else {
      object = {.key_id = std::move(sealed->key_id),
                .encrypted_dek_source = std::move(sealed->ciphertext),
                .annotations = std::move(sealed->annotations),
                .type = DEKSourceType::kHKDFSHA256XNonceAESGCMSeed};
      wrong = kms::ValidateEncryptedObject(object, false);
    }
    if (wrong.empty() && object.key_id == key_id) {
      auto next = base::MakeRef<State>();
      next->cipher = NewExtendedNonceGCMTransformer(std::move(seed), *options_.random);
      next->object = object;
      Remember(CacheKey(object), next->cipher);
      expires_.store(expires, std::memory_order_release);
      state_.Store(std::move(next));
      co_return std::nullopt;
    }
    const SystemTime until(SystemTime::duration(expires_.load(std::memory_order_acquire)));
    co_return "failed to rotate DEK uid=" + base::GoQuote(uid) +
        ", useSeed=true, errState=" + (state ? "<nil>" : "got unexpected nil transformer") +
        ", errGen=" + (wrong.empty() ? "<nil>" : wrong) + ", statusKeyIDHash=" + base::GoQuote(HashIfNotEmpty(key_id)) +
        ", encryptKeyIDHash=" + base::GoQuote(HashIfNotEmpty(object.key_id)) +
        ", stateKeyIDHash=" + base::GoQuote(state ? HashIfNotEmpty(state->object.key_id) : "") +
        ", expirationTimestamp=" + RFC3339(until);
  }

  const KMSOptions options_;
  Probing probing_;
  mutable kms::ServiceV2 service_;
  base::AtomicRef<const State> state_;
  std::atomic<SystemTime::rep> expires_{0};  // when state_ may no longer write
  std::string version_;                      // the prober's own
  mutable std::mutex mutex_;
  mutable base::StringMap<Known> known_;  // guarded; what decrypts, by what it is sealed as
};

class KMSv1 final : public KMSProvider {
 public:
  explicit KMSv1(KMSOptions options)
      : options_(std::move(options)), probing_(*options_.clock), service_(Dial(options_)) {}

  Outcome<Plain, std::string> TransformFromStorage(const SharedBytes& data,
                                                   const TransformContext& context) const override {
    if (options_.metrics != nullptr) options_.metrics->Arrival("from_storage");
    KS_TRY(const std::string_view sealed_key, SealedKey(data));
    const auto data_key = Take(sealed_key);
    if (!data_key) return std::string("the data key was not fetched");
    const std::size_t head = 2 + sealed_key.size();
    const SharedBytes body = data.Slice(head, data.size() - head);
    auto plain = NewAESGCMTransformer(*data_key, *options_.random)->TransformFromStorage(body, context);
    if (plain.ok()) return plain;
    // Before v1.25 it was CBC; what is read so is written anew.
    auto old = NewAESCBCTransformer(*data_key, *options_.random)->TransformFromStorage(body, context);
    if (!old.ok()) return "[" + plain.error() + ", " + old.error() + "]";
    old->stale = true;
    return old;
  }
  Outcome<SharedBytes, std::string> TransformToStorage(const SharedBytes&, const TransformContext&) const override {
    return std::string("a KMS v1 provider writes only with a key of the plugin");
  }
  bool WritesElsewhere() const override { return true; }

  Awaitable<Outcome<SharedBytes, std::string>> AwaitToStorage(SharedBytes data, std::string key) const override {
    if (options_.metrics != nullptr) options_.metrics->Arrival("to_storage");
    const auto begun = options_.clock->Monotonic();
    std::string data_key = RandomBytes(*options_.random, kSeedBytes);
    if (options_.metrics != nullptr) options_.metrics->DataKeyGenerated(options_.clock->Monotonic() - begun);
    auto sealed_key = co_await service_.Encrypt(data_key);
    if (!sealed_key.ok()) co_return sealed_key.error().message;
    if (sealed_key->size() > 0xffff) co_return std::string("the encrypted data key is too long");
    KS_CO_TRY(const SharedBytes body, NewAESGCMTransformer(data_key, *options_.random)->TransformToStorage(data, key));
    std::string out;
    out.reserve(2 + sealed_key->size() + body.size());
    out.push_back(static_cast<char>(sealed_key->size() >> 8));
    out.push_back(static_cast<char>(sealed_key->size()));
    out += *sealed_key;
    out += body.view();
    Remember(*std::move(sealed_key), std::move(data_key));
    co_return SharedBytes(out);
  }

  bool NeedsPrepare(const SharedBytes& data) const override {
    const auto sealed_key = SealedKey(data);
    if (!sealed_key.ok()) return false;
    if (options_.provider.cache_size <= 0) return true;  // each read calls the plugin
    std::lock_guard lock(mutex_);
    return !known_.contains(std::string(*sealed_key));
  }
  Awaitable<Outcome<void, std::string>> Prepare(SharedBytes data) const override {
    KS_CO_TRY(const std::string_view view, SealedKey(data));
    std::string sealed_key(view);
    if (options_.metrics != nullptr && options_.provider.cache_size > 0) options_.metrics->CacheMiss();
    auto data_key = co_await service_.Decrypt(sealed_key);
    if (!data_key.ok()) co_return data_key.error().message;
    if (data_key->size() != 16 && data_key->size() != 24 && data_key->size() != 32) {
      co_return "crypto/aes: invalid key size " + std::to_string(data_key->size());
    }
    if (options_.provider.cache_size > 0) {
      Remember(std::move(sealed_key), *std::move(data_key));
    } else {
      std::lock_guard lock(mutex_);
      if (fetched_.size() >= kKeysMax) fetched_.clear();
      fetched_.emplace(std::move(sealed_key), *std::move(data_key));
    }
    co_return Outcome<void, std::string>();
  }

  Awaitable<std::optional<std::string>> Probe() override {
    if (!probing_.Begin()) co_return probing_.found();
    auto found = co_await Ask();
    const auto text = FirstText(found);
    probing_.End(std::move(found));
    co_return text;
  }
  // Only if health is requested, as upstream: a probe costs two calls.
  Awaitable<void> ProbeWhenDue() override {
    if (probing_.Due(false)) co_await Probe();
  }
  std::optional<std::string> Health() override { return probing_.Last(); }

 private:
  static Outcome<std::string_view, std::string> SealedKey(const SharedBytes& data) {
    const std::string_view bytes = data.view();
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
    if (bytes.size() < 2 || bytes.size() - 2 < (byte(0) << 8 | byte(1))) {
      return std::string(
          "invalid data encountered by envelope transformer: failed to read uint16 length prefixed data");
    }
    return bytes.substr(2, byte(0) << 8 | byte(1));
  }

  // The data key: kept, or, when nothing is to be kept, the one that was fetched for this reading.
  std::optional<std::string> Take(std::string_view sealed_key) const {
    std::lock_guard lock(mutex_);
    if (const auto found = known_.find(std::string(sealed_key)); found != known_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->second;
    }
    const auto fetched = fetched_.find(std::string(sealed_key));
    if (fetched == fetched_.end()) return std::nullopt;
    std::string key = std::move(fetched->second);
    fetched_.erase(fetched);
    return key;
  }
  void Remember(std::string sealed_key, std::string data_key) const {
    if (options_.provider.cache_size <= 0) return;
    const auto size_max = static_cast<std::size_t>(options_.provider.cache_size);
    std::lock_guard lock(mutex_);
    if (known_.contains(sealed_key)) return;
    recent_.emplace_front(sealed_key, std::move(data_key));
    known_[std::move(sealed_key)] = recent_.begin();
    if (known_.size() > size_max) {
      known_.erase(recent_.back().first);
      recent_.pop_back();
    }
    if (options_.metrics != nullptr) {
      options_.metrics->CacheFill(static_cast<double>(known_.size()) / static_cast<double>(size_max));
    }
  }

  Awaitable<std::optional<Unhealthy>> Ask() {
    const std::string& name = options_.provider.name;
    auto sealed = co_await service_.Encrypt("ping");
    if (!sealed.ok()) {
      const std::string& why = sealed.error().message;
      co_return Unhealthy(
          "failed to perform encrypt section of the healthz check for KMS Provider " + name + ", error: " + why, why);
    }
    auto opened = co_await service_.Decrypt(*std::move(sealed));
    if (!opened.ok()) {
      const std::string& why = opened.error().message;
      co_return Unhealthy(
          "failed to perform decrypt section of the healthz check for KMS Provider " + name + ", error: " + why, why);
    }
    co_return std::nullopt;
  }

  using Recent = std::list<std::pair<std::string, std::string>>;  // sealed and open data key, newest first
  const KMSOptions options_;
  Probing probing_;
  mutable kms::ServiceV1 service_;
  mutable std::mutex mutex_;
  mutable Recent recent_;                            // guarded
  mutable base::StringMap<Recent::iterator> known_;  // guarded
  mutable std::unordered_multimap<std::string, std::string, base::StringHash, std::equal_to<>>
      fetched_;  // guarded; each is used once
};

}  // namespace

std::unique_ptr<Transformer> NewExtendedNonceGCMTransformer(std::string seed, base::Random& random) {
  return std::make_unique<ExtendedNonceGCM>(std::move(seed), random);
}

std::shared_ptr<KMSProvider> KMSProvider::New(KMSOptions options) {
  if (options.provider.api_version == "v1") return std::make_shared<KMSv1>(std::move(options));
  return std::make_shared<KMSv2>(std::move(options));
}

}  // namespace keelson::storage
