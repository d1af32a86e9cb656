#include "kv/snapshot/snapshot.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <utility>

#include "base/failpoint.h"
#include "kv/mvcc/store.h"

namespace keelson::kv::snapshot {
namespace {

//   "KEELSNP1" revision (8)
//   'l' id (8) ttl (8)                                                     one for each lease, before its keys
//   'k' create (8) mod (8) version (8) lease (8) size (4) key size (4) value   one for each key, by key
//   'e' leases (8) keys (8)
//   zeros to a multiple of 512                                             so that etcdctl accepts the file's size
//   SHA-256 of all before it (32)
constexpr std::string_view kMagic = "KEELSNP1";
constexpr std::size_t kBlockBytes = 512;
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::uint32_t kFieldBytesMax = 1U << 30;

void PutNumber(std::string& out, std::uint64_t number, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(number >> (8 * i)));
}

void AppendLease(std::string& out, LeaseID id, std::int64_t ttl) {
  out.push_back('l');
  PutNumber(out, static_cast<std::uint64_t>(id), 8);
  PutNumber(out, static_cast<std::uint64_t>(ttl), 8);
}

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }
  ~Digest() { EVP_MD_CTX_free(context_); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  void Update(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
  std::string Final() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_, digest, &size);
    return {reinterpret_cast<char*>(digest), size};
  }

 private:
  EVP_MD_CTX* context_;
};

Error Damaged(const std::string& path, const std::string& what) {
  return {.code = ErrorCode::kCorrupt, .message = "snapshot " + path + " is damaged: " + what};
}

// Reads the fields of a file; remembers when it ended too early.
class Reader {
 public:
  explicit Reader(std::ifstream& file) : file_(file) {}
  std::uint64_t Number(int bytes) {
    std::uint64_t number = 0;
    for (int i = 0; i < bytes; ++i) number = number << 8 | static_cast<std::uint8_t>(Byte());
    return number;
  }
  char Byte() {
    const int byte = file_.get();
    if (byte == std::ifstream::traits_type::eof()) ok_ = false;
    return static_cast<char>(byte);
  }
  std::string Bytes() {
    const auto size = static_cast<std::uint32_t>(Number(4));
    if (!ok_ || size > kFieldBytesMax) {
      ok_ = false;
      return "";
    }
    std::string bytes(size, '\0');
    if (!file_.read(bytes.data(), size)) ok_ = false;
    return bytes;
  }
  bool ok() const { return ok_; }

 private:
  std::ifstream& file_;
  bool ok_ = true;
};

Result<void> VerifyDigest(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Error{.code = ErrorCode::kInvalidArgument, .message = "cannot read snapshot " + path};
  auto left = static_cast<std::size_t>(file.tellg());
  if (left < kBlockBytes + kDigestBytes || left % kBlockBytes != kDigestBytes)
    return Damaged(path, "its size is not that of a whole snapshot");
  left -= kDigestBytes;
  file.seekg(0);
  Digest digest;
  std::string chunk(kChunkBytes, '\0');
  while (left > 0) {
    const std::size_t size = std::min(left, kChunkBytes);
    if (!file.read(chunk.data(), static_cast<std::streamsize>(size)))
      return Damaged(path, "it cannot be read to its end");
    digest.Update(std::string_view(chunk).substr(0, size));
    left -= size;
  }
  std::string stored(kDigestBytes, '\0');
  if (!file.read(stored.data(), kDigestBytes)) return Damaged(path, "it cannot be read to its end");
  if (stored != digest.Final()) return Damaged(path, "its checksum does not match");
  return {};
}

Awaitable<Result<void>> WriteToDescriptor(int file, std::string bytes) {
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t written = ::write(file, left.data(), left.size());
    if (written < 0)
      co_return Error{.code = ErrorCode::kInternal,
                      .message = std::string("cannot write the snapshot: ") + strerror(errno)};
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  co_return Result<void>();
}

// The whole file takes the place of `path`, durably.
Result<void> Finish(int file, const std::string& part, const std::string& path) {
  const auto failed = [&] {
    return Error{.code = ErrorCode::kInternal, .message = "cannot finish " + path + ": " + strerror(errno)};
  };
  if (::fsync(file) != 0) return failed();
  if (KS_FAILPOINT("kv/snapshot/before-rename"))
    return Error{.code = ErrorCode::kInternal, .message = "failpoint kv/snapshot/before-rename"};
  if (::rename(part.c_str(), path.c_str()) != 0) return failed();
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int folder = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failed();
  const bool synced = ::fsync(folder) == 0;
  ::close(folder);
  if (!synced) return failed();
  return {};
}

}  // namespace

Awaitable<Result<Info>> Write(Store& store, Sink sink, Progress progress) {
  Info info;
  std::int64_t about = 0;
  Digest digest;
  std::string chunk;
  // A store in this process keeps the revision readable meanwhile.
  mvcc::HeldRevision held;
  if (auto* embedded = dynamic_cast<mvcc::EmbeddedStore*>(&store)) held = embedded->HoldRevision();
  KS_CO_TRY(const Revision now, co_await store.CurrentRevision());
  const Revision revision = held.hold ? held.revision : now;
  KS_CO_TRY(const auto leases, co_await store.Leases());
  std::set<LeaseID> written;
  info.revision = revision;
  chunk.append(kMagic);
  PutNumber(chunk, static_cast<std::uint64_t>(revision), 8);
  for (const LeaseID id : leases) {
    KS_CO_TRY(const Lease lease, co_await store.LeaseTimeToLive(id, false));
    if (lease.remaining_ttl < 0) continue;  // With the first of its keys, if it had any.
    AppendLease(chunk, id, lease.granted_ttl);
    written.insert(id);
  }
  RangeRequest page{
      .key = std::string(1, '\0'), .range_end = std::string(1, '\0'), .limit = kPageKeys, .revision = revision};
  for (bool more = true; more;) {
    RangeRequest request = page;
    KS_CO_TRY(const RangeResponse answer, co_await store.Range(std::move(request)));
    about = std::max(about, answer.count);  // of the first page: later ones count the rest
    for (const KeyValue& kv : answer.kvs) {
      if (kv.lease != 0 && written.insert(kv.lease).second) {
        // It is due or was revoked since: its keys of this revision must end in a restored store, too.
        KS_CO_TRY(const Lease lease, co_await store.LeaseTimeToLive(kv.lease, false));
        AppendLease(chunk, kv.lease, lease.remaining_ttl < 0 ? kEndedLeaseTTL : lease.granted_ttl);
      }
      chunk.push_back('k');
      for (const std::int64_t number : {kv.create_revision, kv.mod_revision, kv.version, kv.lease})
        PutNumber(chunk, static_cast<std::uint64_t>(number), 8);
      PutNumber(chunk, kv.key.size(), 4);
      chunk.append(kv.key);
      PutNumber(chunk, kv.value.size(), 4);
      chunk.append(kv.value.view());
      ++info.keys;
    }
    more = answer.more;
    if (more) page.key = answer.kvs.back().key + std::string(1, '\0');
    if (progress) progress(info.keys, about);
    digest.Update(chunk);
    info.bytes += static_cast<std::int64_t>(chunk.size());
    if (!chunk.empty()) KS_CO_RETURN_IF_ERROR(co_await sink(std::exchange(chunk, {})));
    if (KS_FAILPOINT("kv/snapshot/page"))
      co_return Error{.code = ErrorCode::kInternal, .message = "failpoint kv/snapshot/page"};
  }
  info.leases = static_cast<std::int64_t>(written.size());
  chunk.push_back('e');
  PutNumber(chunk, static_cast<std::uint64_t>(info.leases), 8);
  PutNumber(chunk, static_cast<std::uint64_t>(info.keys), 8);
  const auto total = static_cast<std::size_t>(info.bytes) + chunk.size();
  chunk.append((kBlockBytes - total % kBlockBytes) % kBlockBytes, '\0');
  digest.Update(chunk);
  chunk.append(digest.Final());
  info.bytes += static_cast<std::int64_t>(chunk.size());
  KS_CO_RETURN_IF_ERROR(co_await sink(std::move(chunk)));
  co_return info;
}

Awaitable<Result<Info>> WriteFile(Store& store, std::string path, Progress progress) {
  const std::string part = path + ".part";
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    co_return Error{.code = ErrorCode::kInternal, .message = "cannot write " + part + ": " + strerror(errno)};
  Sink sink = [file](std::string bytes) { return WriteToDescriptor(file, std::move(bytes)); };
  auto info = co_await Write(store, std::move(sink), std::move(progress));
  auto finished = info.ok() ? Finish(file, part, path) : Result<void>(info.error());
  ::close(file);
  if (!finished.ok()) {
    ::unlink(part.c_str());
    co_return std::move(finished).error();
  }
  co_return *std::move(info);
}

Result<Info> ReadFile(const std::string& path, Visitor* visitor) {
  KS_RETURN_IF_ERROR(VerifyDigest(path));
  std::ifstream file(path, std::ios::binary);
  Reader reader(file);
  std::string magic(kMagic.size(), '\0');
  for (char& byte : magic) byte = reader.Byte();
  if (magic != kMagic) return Damaged(path, "it is no snapshot of this store");
  Info info;
  info.revision = static_cast<Revision>(reader.Number(8));
  for (;;) {
    const char kind = reader.Byte();
    if (!reader.ok()) return Damaged(path, "it ends too early");
    if (kind == 'e') break;
    if (kind == 'l') {
      const auto id = static_cast<LeaseID>(reader.Number(8));
      const auto ttl = static_cast<std::int64_t>(reader.Number(8));
      ++info.leases;
      if (visitor != nullptr) KS_RETURN_IF_ERROR(visitor->OnLease(id, ttl));
    } else if (kind == 'k') {
      KeyValue kv;
      kv.create_revision = static_cast<Revision>(reader.Number(8));
      kv.mod_revision = static_cast<Revision>(reader.Number(8));
      kv.version = static_cast<std::int64_t>(reader.Number(8));
      kv.lease = static_cast<LeaseID>(reader.Number(8));
      kv.key = reader.Bytes();
      kv.value = SharedBytes::FromString(reader.Bytes());
      if (!reader.ok()) return Damaged(path, "it ends too early");
      ++info.keys;
      if (visitor != nullptr) KS_RETURN_IF_ERROR(visitor->OnKey(std::move(kv)));
    } else {
      return Damaged(path, "it has a record of an unknown kind");
    }
  }
  if (reader.Number(8) != static_cast<std::uint64_t>(info.leases) ||
      reader.Number(8) != static_cast<std::uint64_t>(info.keys)) {
    return Damaged(path, "its counts do not match");
  }
  info.bytes = static_cast<std::int64_t>(file.tellg());
  return info;
}

}  // namespace keelson::kv::snapshot
