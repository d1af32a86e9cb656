// The floor under the rows of the comparison: a server that does their bare work and nothing else. TLS, HTTP/2
// (nghttp2), sockets and one fdatasync for all writes that wait; no API. interop/keelson-load drives it like an API
// server:
//
//   GET  .../pods/NAME                        --get bytes          POST, PATCH   --write bytes are appended to the log
//   and synced, GET  ...?...fieldSelector=...             --node bytes                       then --get bytes are
//   answered GET  ...?...labelSelector=...             --label bytes        GET ...?watch --event bytes after each
//   PATCH GET  /api/v1/pods?...                     --list-json bytes, or --list-protobuf by Accept
//
// usage: server --port N --cert FILE --key FILE --log FILE [--threads N] [--NAME bytes]. Prints "ready" once it
// listens. One epoll per thread, edge-triggered; a connection stays on its thread. Not part of the product: errors end
// it.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t kRecordBytes = 16384;    // one TLS record, and the largest HTTP/2 frame
constexpr std::size_t kSendBytes = 64 * 1024;  // gathered for one send

std::map<std::string, std::string> options{{"port", "0"},
                                           {"cert", ""},
                                           {"key", ""},
                                           {"log", ""},
                                           {"threads", "2"},
                                           {"get", "7600"},
                                           {"node", "152000"},
                                           {"label", "1520000"},
                                           {"event", "7700"},
                                           {"write", "6000"},
                                           {"list-json", "7600000"},
                                           {"list-protobuf", "5800000"}};
std::size_t Bytes(const char* name) { return std::strtoul(options.at(name).c_str(), nullptr, 10); }

void Must(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::exit(1);
}

// A JSON object of about that many bytes; lists of the load program need a resourceVersion.
std::string Body(std::size_t bytes, bool line) {
  std::string text = R"({"metadata":{"resourceVersion":"1"},"filler":")";
  if (bytes > text.size() + 3) text.append(bytes - text.size() - 3, 'x');
  return text + (line ? "\"}\n" : "\"}");
}

struct Stream {
  std::int32_t id = 0;
  std::string method, path, accept;
  std::string_view body;   // what is still to be sent
  std::size_t events = 0;  // of a watch: those not yet begun
  bool watch = false;
};

class Loop;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& loop, int fd, SSL* ssl);
  ~Connection();

  void OnReadable();
  void Answer(std::int32_t stream, std::string_view body);
  void Event();  // one more for each watch
  void Flush();
  bool closed() const { return closed_; }
  int fd() const { return fd_; }

 private:
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                      const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self);
  static int OnBegin(nghttp2_session*, const nghttp2_frame* frame, void* self);
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* self);
  static int OnClose(nghttp2_session*, std::int32_t id, std::uint32_t, void* self);
  static ssize_t Read(nghttp2_session*, std::int32_t id, std::uint8_t* out, std::size_t size, std::uint32_t* flags,
                      nghttp2_data_source* source, void* self);
  void Request(Stream& stream);
  void Close();

  Loop& loop_;
  int fd_;
  SSL* ssl_;
  BIO* out_;  // what was encrypted and is not sent yet
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Stream> streams_;
  bool accepted_ = false;
  bool closed_ = false;
};

// Group commit: appends waiting records, syncs once, and notifies the loops.
class Log {
 public:
  struct Write {
    Loop* loop;
    std::weak_ptr<Connection> connection;
    std::int32_t stream;
    bool patch;
  };
  void Start(const std::string& path);
  void Append(Write write);

 private:
  void Run();
  int fd_ = -1;
  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<Write> waiting_;
};

class Loop {
 public:
  Loop() : epoll_(epoll_create1(0)), wake_(eventfd(0, EFD_NONBLOCK)) {
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
    Must(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0, "epoll_ctl");
  }
  void Add(int fd, SSL* ssl) { Post({.fd = fd, .ssl = ssl, .done = {}}); }
  void Done(std::vector<Log::Write> writes) { Post({.done = std::move(writes)}); }
  void Events(std::size_t count) { Post({.done = {}, .events = count}); }
  void Run();

 private:
  struct Message {
    int fd = -1;
    SSL* ssl = nullptr;
    std::vector<Log::Write> done;
    std::size_t events = 0;
  };
  void Post(Message message) {
    {
      const std::lock_guard lock(mutex_);
      messages_.push_back(std::move(message));
    }
    const std::uint64_t one = 1;
    Must(write(wake_, &one, sizeof(one)) == sizeof(one), "eventfd");
  }
  void Handle();

  int epoll_;
  int wake_;
  std::mutex mutex_;
  std::vector<Message> messages_;
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
};

struct Bodies {
  std::string get, node, label, list_json, list_protobuf, event;
};
Bodies bodies;
Log disk;
std::vector<std::unique_ptr<Loop>> loops;

Connection::Connection(Loop& loop, int fd, SSL* ssl) : loop_(loop), fd_(fd), ssl_(ssl), out_(BIO_new(BIO_s_mem())) {
  SSL_set_fd(ssl_, fd_);
  SSL_set0_wbio(ssl_, out_);
  SSL_set_accept_state(ssl_);
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBegin);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
  nghttp2_session_server_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 250}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 1);
}

Connection::~Connection() {
  nghttp2_session_del(session_);
  SSL_free(ssl_);
  close(fd_);
}

void Connection::OnReadable() {
  if (!accepted_) {
    const int done = SSL_accept(ssl_);
    if (done != 1) {
      const int why = SSL_get_error(ssl_, done);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return Close();
      return Flush();
    }
    accepted_ = true;
  }
  static thread_local std::uint8_t buffer[kRecordBytes];
  for (;;) {
    const int some = SSL_read(ssl_, buffer, sizeof(buffer));
    if (some <= 0) {
      const int why = SSL_get_error(ssl_, some);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return Close();
      break;
    }
    if (nghttp2_session_mem_recv(session_, buffer, static_cast<std::size_t>(some)) < 0) return Close();
  }
  Flush();
}

void Connection::Close() { closed_ = true; }

// Sends what the session has, as far as the socket takes it; EPOLLOUT calls this again.
void Connection::Flush() {
  for (;;) {
    char* data = nullptr;
    long size = BIO_get_mem_data(out_, &data);
    while (accepted_ && size < static_cast<long>(kSendBytes)) {
      const std::uint8_t* frame = nullptr;
      const ssize_t bytes = nghttp2_session_mem_send(session_, &frame);
      if (bytes <= 0) break;
      Must(SSL_write(ssl_, frame, static_cast<int>(bytes)) == bytes, "SSL_write");
      size = BIO_get_mem_data(out_, &data);
    }
    if (size == 0) return;
    const ssize_t sent = send(fd_, data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return Close();
    if (sent == size) {
      (void)BIO_reset(out_);
      continue;
    }
    static thread_local std::vector<char> skipped(kSendBytes * 2);
    for (ssize_t left = sent; left > 0;)
      left -= BIO_read(out_, skipped.data(),
                       static_cast<int>(std::min<ssize_t>(left, static_cast<ssize_t>(skipped.size()))));
    return;
  }
}

int Connection::OnBegin(nghttp2_session*, const nghttp2_frame* frame, void* self) {
  static_cast<Connection*>(self)->streams_[frame->hd.stream_id].id = frame->hd.stream_id;
  return 0;
}

int Connection::OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                         const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
  const std::string_view key(reinterpret_cast<const char*>(name), name_size);
  const std::string_view text(reinterpret_cast<const char*>(value), value_size);
  Stream& stream = static_cast<Connection*>(self)->streams_[frame->hd.stream_id];
  if (key == ":method") stream.method = text;
  if (key == ":path") stream.path = text;
  if (key == "accept") stream.accept = text;
  return 0;
}

int Connection::OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
  auto& connection = *static_cast<Connection*>(self);
  const bool request = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
  if (!request || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  const auto found = connection.streams_.find(frame->hd.stream_id);
  if (found != connection.streams_.end()) connection.Request(found->second);
  return 0;
}

int Connection::OnClose(nghttp2_session*, std::int32_t id, std::uint32_t, void* self) {
  static_cast<Connection*>(self)->streams_.erase(id);
  return 0;
}

void Connection::Request(Stream& stream) {
  const auto has = [&](const char* text) { return stream.path.find(text) != std::string::npos; };
  if (stream.method != "GET") {
    return disk.Append({&loop_, weak_from_this(), stream.id, stream.method == "PATCH"});
  }
  if (has("watch=true")) {
    stream.watch = true;
    return Answer(stream.id, {});
  }
  const bool protobuf = stream.accept.find("protobuf") != std::string::npos;
  Answer(stream.id, has("fieldSelector")   ? bodies.node
                    : has("labelSelector") ? bodies.label
                    : has("/api/v1/pods?") ? (protobuf ? bodies.list_protobuf : bodies.list_json)
                                           : bodies.get);
}

void Connection::Answer(std::int32_t id, std::string_view body) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  found->second.body = body;
  const auto field = [](std::string_view name, std::string_view value) {
    return nghttp2_nv{reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
                      reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
                      NGHTTP2_NV_FLAG_NO_COPY_NAME};
  };
  const nghttp2_nv fields[] = {field(":status", "200"), field("content-type", "application/json")};
  const nghttp2_data_provider provider{.source = {.ptr = &found->second}, .read_callback = Read};
  nghttp2_submit_response(session_, id, fields, 2, &provider);
}

ssize_t Connection::Read(nghttp2_session*, std::int32_t, std::uint8_t* out, std::size_t size, std::uint32_t* flags,
                         nghttp2_data_source* source, void*) {
  auto& stream = *static_cast<Stream*>(source->ptr);
  if (stream.watch && stream.body.empty() && stream.events > 0) {
    --stream.events;
    stream.body = bodies.event;
  }
  if (stream.watch && stream.body.empty()) return NGHTTP2_ERR_DEFERRED;
  const std::size_t some = std::min({size, stream.body.size(), kRecordBytes - 9});  // with its header one record
  std::memcpy(out, stream.body.data(), some);
  stream.body.remove_prefix(some);
  if (stream.body.empty() && !stream.watch) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(some);
}

void Connection::Event() {
  for (auto& [id, stream] : streams_) {
    if (!stream.watch) continue;
    ++stream.events;
    nghttp2_session_resume_data(session_, id);
  }
  Flush();
}

void Loop::Run() {
  std::vector<epoll_event> ready(256);
  for (;;) {
    const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = ready[static_cast<std::size_t>(i)];
      if (event.data.ptr == nullptr) {
        Handle();
        continue;
      }
      const auto found = connections_.find(static_cast<Connection*>(event.data.ptr));
      if (found == connections_.end()) continue;
      if ((event.events & EPOLLIN) != 0) found->second->OnReadable();
      if ((event.events & EPOLLOUT) != 0 && !found->second->closed()) found->second->Flush();
      if (found->second->closed() || (event.events & (EPOLLHUP | EPOLLERR)) != 0) connections_.erase(found);
    }
  }
}

void Loop::Handle() {
  std::uint64_t count = 0;
  (void)!read(wake_, &count, sizeof(count));
  std::vector<Message> messages;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(messages_);
  }
  std::size_t events = 0;
  for (Message& message : messages) {
    if (message.ssl != nullptr) {
      auto connection = std::make_shared<Connection>(*this, message.fd, message.ssl);
      epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.ptr = connection.get()}};
      connections_.emplace(connection.get(), connection);
      Must(epoll_ctl(epoll_, EPOLL_CTL_ADD, message.fd, &event) == 0, "epoll_ctl");
    }
    for (const Log::Write& write : message.done) {
      const auto connection = write.connection.lock();
      if (!connection || connection->closed()) continue;
      connection->Answer(write.stream, bodies.get);
      connection->Flush();
    }
    events += message.events;
  }
  for (; events > 0; --events) {
    for (const auto& [pointer, connection] : connections_) connection->Event();
  }
}

void Log::Start(const std::string& path) {
  fd_ = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
  Must(fd_ >= 0, path.c_str());
  std::thread([this] { Run(); }).detach();
}

void Log::Append(Write write) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(write));
  }
  work_.notify_one();
}

void Log::Run() {
  const std::size_t bytes = Bytes("write");
  std::string data;
  for (;;) {
    std::vector<Write> writes;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return !waiting_.empty(); });
      writes.swap(waiting_);
    }
    data.resize(bytes * writes.size(), 'x');
    Must(write(fd_, data.data(), data.size()) == static_cast<ssize_t>(data.size()) && fdatasync(fd_) == 0, "log");
    const auto patches = static_cast<std::size_t>(std::ranges::count_if(writes, &Write::patch));
    std::map<Loop*, std::vector<Write>> by_loop;
    for (Write& one : writes) by_loop[one.loop].push_back(std::move(one));
    for (auto& [loop, done] : by_loop) loop->Done(std::move(done));
    for (const auto& loop : loops) {
      if (patches > 0) loop->Events(patches);
    }
  }
}

SSL_CTX* Context() {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  Must(SSL_CTX_use_certificate_chain_file(context, options["cert"].c_str()) == 1 &&
           SSL_CTX_use_PrivateKey_file(context, options["key"].c_str(), SSL_FILETYPE_PEM) == 1,
       "certificate");
  Must(SSL_CTX_load_verify_locations(context, options["cert"].c_str(), nullptr) == 1, "authority");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // A client certificate is verified where there is one.
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>("floor"), 5);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(
      context,
      [](SSL*, const unsigned char** out, unsigned char* size, const unsigned char*, unsigned int, void*) {
        static const unsigned char kH2[] = {'h', '2'};
        *out = kH2;
        *size = 2;
        return SSL_TLSEXT_ERR_OK;
      },
      nullptr);
  return context;
}

int Listen() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(Bytes("port")));
  Must(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 && listen(listener, 1024) == 0,
       "listen");
  return listener;
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = std::string(arguments[i]).substr(2);
    if (!options.contains(name)) {
      std::fprintf(stderr, "unknown option %s\n", arguments[i]);
      return 1;
    }
    options[name] = arguments[i + 1];
  }
  bodies = {Body(Bytes("get"), false),       Body(Bytes("node"), false),          Body(Bytes("label"), false),
            Body(Bytes("list-json"), false), Body(Bytes("list-protobuf"), false), Body(Bytes("event"), true)};
  SSL_CTX* const context = Context();
  disk.Start(options["log"]);
  for (std::size_t i = 0; i < std::max<std::size_t>(Bytes("threads"), 1); ++i)
    loops.push_back(std::make_unique<Loop>());
  for (const auto& loop : loops) std::thread([&loop] { loop->Run(); }).detach();
  const int listener = Listen();
  std::puts("ready");
  std::fflush(stdout);
  for (std::size_t next = 0;; ++next) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
    if (fd < 0) continue;
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    loops[next % loops.size()]->Add(fd, SSL_new(context));
  }
}
