// For the tests of this folder: a server on a free port with a small handler, and a blocking raw client.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "async/event.h"
#include "async/io_pool.h"
#include "http/client.h"
#include "http/server.h"
#include "net/testing/certificates.h"

namespace keelson::http {

// A plain-text client that sends and receives given bytes.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  ~RawClient();
  bool Send(std::string_view bytes);  // false: the peer has closed
  // Reads until the text ends with / contains `mark`, the peer closes, or ten seconds have passed.
  std::string ReadUntil(std::string_view mark);
  std::string ReadToEnd() { return ReadUntil({}); }
  std::string ReadSome();  // "" at the end
  bool closed() const { return closed_; }
  int fd() const { return fd_; }

 private:
  int fd_;
  bool closed_ = false;
};

// HTTP/2 frames by hand.
std::string Frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload);
std::string Preface();                              // with an empty SETTINGS frame
std::string RequestHeaders(std::string_view path);  // a header block without indexing
struct ReceivedFrame {
  std::uint8_t type;
  std::uint8_t flags;
  std::uint32_t stream;
  std::string payload;
};
std::vector<ReceivedFrame> ParseFrames(std::string_view bytes);

// Lines that /events sends as they are added, and that may wait as watch events do. Thread safety: any thread.
class EventFeed {
 public:
  void Add(std::string_view line);
  std::string Take();
  void Follow(std::function<void()> wake);

 private:
  std::mutex mutex_;
  std::string lines_;
  std::function<void()> wake_;
};

// Paths: /hello, /echo, /bytes/N, /stream/N (counted in `pulled`), /deadline/N (the same,
// with a write deadline 30 ms away), /gate (waits for `gate`), /hold (a body that never
// ends), /events (`feed`), /upgrade (echoes), /headers (the request's), /redirect, /close, /throw, /peer.
class TestServer {
 public:
  explicit TestServer(ServerOptions options = {}, bool tls = false, std::size_t threads = 2);
  ~TestServer();

  Awaitable<Response> Handle(Request request);

  async::IOPool pool;
  std::shared_ptr<async::Event> gate = std::make_shared<async::Event>();
  EventFeed feed;
  std::atomic<std::uint64_t> pulled{0};
  std::atomic<int> gone{0};  // close callbacks that ran
  std::atomic<int> started{0};
  std::atomic<int> ended{0};  // responses that ended, and how many of them completely
  std::atomic<int> complete{0};
  net::testing::Authority ca{"test-ca"};
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;

  ClientOptions client_options(bool http2 = true) const;
  template <class T>
  T Run(Awaitable<T> task) {
    return asio::co_spawn(pool.Next(), std::move(task), asio::use_future).get();
  }

 private:
  bool tls_;
};

// A POST where there is a body, else a GET.
ClientRequest To(std::string target, std::string body = {});
// The answer's status and body, or what went wrong.
Awaitable<std::string> Fetch(Client& client, ClientRequest request);

// Waits until `condition` holds; false after ten seconds.
bool Eventually(const std::function<bool()>& condition);

}  // namespace keelson::http
