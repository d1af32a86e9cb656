#include "endpoints/filters/large_bodies.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "endpoints/handlers.h"

namespace keelson::endpoints::filters {
namespace {

// A body that has been read already, with the error it ended in, if any.
class BufferedBody final : public http::BodyReader {
 public:
  Awaitable<Outcome<http::SharedBytes, http::BodyError>> Read() override {
    if (next_ < pieces_.size()) co_return std::move(pieces_[next_++]);
    if (error_) co_return *error_;
    co_return http::SharedBytes();
  }

  // All of `body`, or a little more than a handler would take.
  Awaitable<void> Fill(http::BodyReader& body) {
    while (size_ <= kBodyBytesMax) {
      auto piece = co_await body.Read();
      if (!piece.ok()) {
        error_ = piece.error();
        co_return;
      }
      if (piece->empty()) co_return;
      size_ += piece->size();
      pieces_.push_back(*std::move(piece));
    }
  }
  std::size_t size() const { return size_; }

 private:
  std::vector<http::SharedBytes> pieces_;
  std::size_t next_ = 0;
  std::size_t size_ = 0;
  std::optional<http::BodyError> error_;
};

bool MayBeLarge(const Exchange& exchange) {
  const std::string& method = exchange.http.method;
  const request::RequestInfo& info = exchange.context.info;
  if (!info.is_resource_request || info.IsLongRunning()) return false;
  if (method != "POST" && method != "PUT" && method != "PATCH" && method != "DELETE") return false;
  const http::Headers& headers = exchange.http.headers;
  if (const auto length = base::ParseUint64(headers.Get("Content-Length"))) return *length > kLargeBodyBytes;
  return exchange.http.http_major == 2 || headers.Has("Transfer-Encoding");  // HTTP/1.1 with neither has no body
}

Awaitable<http::Response> Serve(Handler next, async::IOPool* pool, ExchangePtr exchange) {
  auto buffered = std::make_unique<BufferedBody>();
  co_await buffered->Fill(*exchange->http.body);
  const bool large = buffered->size() > kLargeBodyBytes;
  exchange->http.body = std::move(buffered);
  if (!large) co_return co_await next(exchange);
  auto executor = pool->Next();
  auto running = next(exchange);
  co_return co_await asio::co_spawn(executor, std::move(running), asio::use_awaitable);
}

}  // namespace

Handler WithLargeBodiesElsewhere(Handler next, async::IOPool& pool) {
  return [next = std::move(next), pool = &pool](ExchangePtr exchange) {
    return MayBeLarge(*exchange) ? Serve(next, pool, std::move(exchange)) : next(std::move(exchange));
  };
}

}  // namespace keelson::endpoints::filters
