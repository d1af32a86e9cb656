// HTTP as a handler sees it: a Request in, a Response out.
// A response's body is shared immutable slices, given at once or made on demand by a BodySource on the connection's
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "async/awaitable.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "base/shared_bytes.h"

namespace keelson::http {

using base::SharedBytes;

// Header fields in order; names compare without regard to case. Written in Go's canonical form on HTTP/1.1, lower case
// on HTTP/2. All texts lie in one buffer: views of them are good until the next change (moving the whole is none).
// Removed or replaced texts keep their room there until the end.
class Headers {
 public:
  using Field = std::pair<std::string_view, std::string_view>;  // name, value

  Headers() = default;
  Headers(std::initializer_list<Field> fields) {
    for (const auto& [name, value] : fields) Add(name, value);
  }

  // Name and value may be views into this.
  void Add(std::string_view name, std::string_view value);
  void Set(std::string_view name, std::string_view value);  // replaces all
  void Remove(std::string_view name);
  template <class Predicate>
  void RemoveIf(Predicate remove) {  // remove(name)
    std::erase_if(places_, [&](const Place& place) { return remove(NameOf(place)); });
  }
  void Clear() { places_.clear(); }
  void Reserve(std::size_t fields) { places_.reserve(fields); }
  std::string_view Get(std::string_view name) const;  // the first, "" when absent
  bool Has(std::string_view name) const;
  std::vector<std::string_view> Values(std::string_view name) const;
  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }

  class Iterator {
   public:
    Iterator(const Headers& headers, std::size_t at) : headers_(&headers), at_(at) {}
    Field operator*() const {
      const Place& place = headers_->places_[at_];
      return {headers_->NameOf(place), headers_->ValueOf(place)};
    }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const Headers* headers_;
    std::size_t at_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, places_.size()}; }

 private:
  struct Place {
    std::uint32_t name, value, end;  // offsets into text_; the value follows its name
  };
  std::string_view NameOf(const Place& place) const {
    return std::string_view(text_).substr(place.name, place.value - place.name);
  }
  std::string_view ValueOf(const Place& place) const {
    return std::string_view(text_).substr(place.value, place.end - place.value);
  }
  Place Store(std::string_view name, std::string_view value);

  std::string text_;
  std::vector<Place> places_;
};

enum class BodyError : std::uint8_t { kTooLarge, kClientGone, kTimeout, kMalformed };

// A request's body as it arrives. Thread safety: the connection's thread only.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  // The next piece; empty at the end. Flow control: what is not read is not taken from the peer beyond a window.
  virtual Awaitable<Outcome<SharedBytes, BodyError>> Read() = 0;
  // All of it; kTooLarge when there are more than `limit` bytes (the rest is not read).
  Awaitable<Outcome<SharedBytes, BodyError>> ReadAll(std::size_t limit);
};

struct PeerCertificate {
  std::vector<std::string> chain_der;  // leaf first, as the client sent it; not verified by the handshake
};

struct Request {
  std::string method;
  std::string target;     // as sent: path and query
  std::string path;       // percent-decoded
  std::string raw_query;  // after '?'
  std::string host;       // Host or :authority
  Headers headers;
  int http_major = 1;
  int http_minor = 1;
  bool tls = true;
  std::string remote_address;  // 127.0.0.1:41234
  std::shared_ptr<const PeerCertificate> peer;
  std::unique_ptr<BodyReader> body;  // never null
  base::Clock::SteadyTime received{};
  // Calls `callback` (any thread) once when the client goes away or resets the stream before the response has ended.
  std::function<void(std::function<void()> callback)> on_close;
};

// Makes a response's body on demand. Pull() runs on the connection's thread; the source is destroyed there when the
// response has ended or the client has gone, whichever is first.
class BodySource {
 public:
  enum class State : std::uint8_t {
    kMore,     // there is more (nothing appended: pull again after others had their turn)
    kPending,  // nothing (more) now: pull again after the wake call
    kDone,
    kAbort,  // give up: reset the stream or close the connection without a proper end
  };
  virtual ~BodySource() = default;
  // `wake` may be called from any thread, any number of times, also after the source is gone.
  virtual void Start(std::function<void()> wake) = 0;
  // Appends about `budget` bytes of slices (one slice more is fine, a slice is never split for it).
  virtual State Pull(std::size_t budget, std::vector<SharedBytes>& out) = 0;
  // Fields after the body, valid once Pull has returned kDone. Null: none.
  virtual const Headers* Trailers() { return nullptr; }
};

// An upgraded connection (101 Switching Protocols, or a CONNECT-like tunnel): raw bytes both ways.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Awaitable<Outcome<SharedBytes, BodyError>> Read() = 0;  // empty at the end
  virtual Awaitable<Outcome<void, BodyError>> Write(SharedBytes bytes) = 0;
  virtual void Close() = 0;  // from any thread
};

using UpgradeHandler = std::function<Awaitable<void>(std::unique_ptr<Stream>)>;

struct Response {
  int status = 200;
  Headers headers;
  // With bytes, Content-Length is written; a source without a Content-Length header is chunked on HTTP/1.1.
  std::variant<SharedBytes, std::unique_ptr<BodySource>> body;
  UpgradeHandler upgrade;  // with status 101
  // A body that is not sent by then is cut: the stream is reset, the connection closed. None: only a peer that takes
  // nothing at all is given up.
  std::optional<base::Clock::SteadyTime> write_deadline;
  // Called once on the connection's thread when the response has ended, with 101 when the upgrade handler has;
  // `complete` is false when it was cut short.
  std::vector<std::function<void(std::uint64_t body_bytes, bool complete)>> on_end;
};

// Never throws: the server's outermost filter turns exceptions into 500.
using Handler = std::function<Awaitable<Response>(Request)>;

std::string_view StatusText(int status);  // "Not Found"; "" for a code without a name
// Go's canonical form: "content-type" is "Content-Type". A name that is not a token stays as it is.
std::string CanonicalHeaderKey(std::string_view name);
// Whether a comma separated list (Connection, Upgrade) holds `token`, without regard to case.
bool HasToken(std::string_view list, std::string_view token);
// Splits a request target into Request::path (decoded) and raw_query. False when it is not a valid path.
bool ParseTarget(std::string_view target, std::string* path, std::string* raw_query);

}  // namespace keelson::http
