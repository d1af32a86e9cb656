#include "net/resolver.h"

#include <array>
#include <atomic>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/address.h"

namespace keelson::net {
namespace {

using Addresses = std::vector<boost::asio::ip::address>;
using Clock = std::chrono::steady_clock;

constexpr int kTimeoutMilliseconds = 2500;  // of one question to one server
constexpr int kTries = 2;
constexpr int kPollMilliseconds = 1000;
constexpr std::chrono::seconds kConfigurationCheck{5};

// One look-up: whoever comes first, the answer or the deadline, ends it.
struct Lookup {
  std::string host;
  std::mutex mutex;
  bool done = false;
  Result<Addresses> result = Error{": no such host"};
  std::function<void()> wake;

  void Finish(Result<Addresses> outcome) {
    std::lock_guard lock(mutex);
    if (std::exchange(done, true)) return;
    result = std::move(outcome);
    // Posts. The executor is there: Abandon() would have to wait for the lock.
    if (auto waiting = std::exchange(wake, nullptr)) waiting();
  }
  // The executor ends: later answers are dropped.
  void Abandon() {
    std::function<void()> dropped;
    std::lock_guard lock(mutex);
    done = true;
    dropped.swap(wake);
  }
};
using LookupPtr = std::shared_ptr<Lookup>;

// Held by the timer's handler, which goes when it has run, when it was cancelled, or with the executor.
struct AbandonAtEnd {
  explicit AbandonAtEnd(LookupPtr held) : lookup(std::move(held)) {}
  ~AbandonAtEnd() { lookup->Abandon(); }
  AbandonAtEnd(const AbandonAtEnd&) = delete;
  AbandonAtEnd& operator=(const AbandonAtEnd&) = delete;
  const LookupPtr lookup;
};

Result<Addresses> AddressesOf(const ares_addrinfo* list) {
  Addresses addresses;
  for (const ares_addrinfo_node* node = list->nodes; node != nullptr; node = node->ai_next) {
    if (node->ai_family == AF_INET) {
      boost::asio::ip::address_v4::bytes_type bytes;
      std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(node->ai_addr)->sin_addr, bytes.size());
      addresses.emplace_back(boost::asio::ip::address_v4(bytes));
    } else if (node->ai_family == AF_INET6) {
      boost::asio::ip::address_v6::bytes_type bytes;
      std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(node->ai_addr)->sin6_addr, bytes.size());
      addresses.emplace_back(boost::asio::ip::address_v6(bytes));
    }
  }
  if (addresses.empty()) return Error{": no such host"};
  return addresses;
}

// " on 10.0.0.2:53", the first server of the channel: c-ares does not report which one answered.
std::string OnServer(ares_channel channel) {
  ares_addr_port_node* servers = nullptr;
  if (ares_get_servers_ports(channel, &servers) != ARES_SUCCESS || servers == nullptr) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  ares_inet_ntop(servers->family, &servers->addr, text.data(), text.size());
  constexpr int kDNSPort = 53;
  const int port = servers->udp_port != 0 ? servers->udp_port : kDNSPort;
  ares_free_data(servers);
  return " on " + JoinHostPort(text.data(), static_cast<std::uint16_t>(port));
}

std::string Reason(int status, ares_channel channel) {
  switch (status) {
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
      return OnServer(channel) + ": no such host";
    case ARES_EBADNAME:
      return ": no such host";
    case ARES_ETIMEOUT:
      return ": i/o timeout";
    case ARES_ESERVFAIL:
    case ARES_EREFUSED:
    case ARES_ECONNREFUSED:
      return OnServer(channel) + ": server misbehaving";
    default:
      return std::string(": ") + ares_strerror(status);
  }
}

std::string ConfigurationIdentity() {
  struct stat info{};
  if (::stat("/etc/resolv.conf", &info) != 0) return {};
  return std::to_string(info.st_ino) + "." + std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec);
}

}  // namespace

struct Resolver::Impl {
  explicit Impl(Options given) : options(std::move(given)) {}
  const Options options;
  std::mutex mutex;
  std::deque<LookupPtr> queue;
  std::atomic<std::size_t> pending{0};
  std::atomic<bool> stopping{false};
  int wake_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  ares_channel channel = nullptr;
  std::string configuration;
  Clock::time_point next_check{};
  std::thread thread;

  ~Impl() {
    if (channel != nullptr) ares_destroy(channel);
    ::close(wake_fd);
  }

  void Wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_fd, &one, sizeof(one));
  }

  // A channel for the configuration as it is now; kept while look-ups are under way.
  bool EnsureChannel(bool busy) {
    const auto now = Clock::now();
    if (channel != nullptr && (busy || now < next_check)) return true;
    next_check = now + kConfigurationCheck;
    std::string identity = ConfigurationIdentity();
    if (channel != nullptr && identity == configuration) return true;
    ares_options wanted{};
    wanted.timeout = kTimeoutMilliseconds;
    wanted.tries = kTries;
    char lookups[] = "fb";  // the hosts file first
    wanted.lookups = lookups;
    ares_channel made = nullptr;
    if (ares_init_options(&made, &wanted, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS) != ARES_SUCCESS)
      return channel != nullptr;
    if (!options.servers.empty() && ares_set_servers_ports_csv(made, options.servers.c_str()) != ARES_SUCCESS) {
      ares_destroy(made);
      return channel != nullptr;
    }
    if (channel != nullptr) ares_destroy(channel);
    channel = made;
    configuration = std::move(identity);
    return true;
  }

  struct Question {
    Impl* impl;
    LookupPtr lookup;
  };
  static void OnAnswer(void* argument, int status, int, ares_addrinfo* list) {
    std::unique_ptr<Question> question(static_cast<Question*>(argument));
    --question->impl->pending;
    if (status == ARES_SUCCESS && list != nullptr) {
      question->lookup->Finish(AddressesOf(list));
    } else {
      question->lookup->Finish(Error{Reason(status, question->impl->channel)});
    }
    if (list != nullptr) ares_freeaddrinfo(list);
  }

  void Ask() {
    std::deque<LookupPtr> taken;
    {
      std::lock_guard lock(mutex);
      taken.swap(queue);
    }
    for (LookupPtr& lookup : taken) {
      if (!EnsureChannel(pending.load() > taken.size())) {
        --pending;
        lookup->Finish(Error{": server misbehaving"});
        continue;
      }
      ares_addrinfo_hints hints{};
      hints.ai_family = AF_UNSPEC;
      hints.ai_socktype = SOCK_STREAM;
      const std::string host = lookup->host;
      ares_getaddrinfo(channel, host.c_str(), nullptr, &hints, OnAnswer, new Question{this, std::move(lookup)});
    }
  }

  void Loop() {
    while (!stopping) {
      Ask();
      std::array<pollfd, ARES_GETSOCK_MAXNUM + 1> polled{};
      nfds_t count = 0;
      polled[count++] = {wake_fd, POLLIN, 0};
      int wait = -1;
      if (channel != nullptr && pending.load() != 0) {
        std::array<ares_socket_t, ARES_GETSOCK_MAXNUM> sockets{};
        const int bits = ares_getsock(channel, sockets.data(), ARES_GETSOCK_MAXNUM);
        for (int i = 0; i < ARES_GETSOCK_MAXNUM; ++i) {
          short events = 0;
          if (ARES_GETSOCK_READABLE(bits, i)) events |= POLLIN;
          if (ARES_GETSOCK_WRITABLE(bits, i)) events |= POLLOUT;
          if (events != 0) polled[count++] = {sockets[static_cast<std::size_t>(i)], events, 0};
        }
        timeval most{kPollMilliseconds / 1000, 0};
        timeval next{};
        const timeval* chosen = ares_timeout(channel, &most, &next);
        wait = static_cast<int>(chosen->tv_sec * 1000 + chosen->tv_usec / 1000) + 1;
      }
      ::poll(polled.data(), count, wait);
      std::uint64_t drained = 0;
      (void)!::read(wake_fd, &drained, sizeof(drained));
      if (channel == nullptr) continue;
      bool any = false;
      for (nfds_t i = 1; i < count; ++i) {
        if (polled[i].revents == 0) continue;
        any = true;
        const bool readable = (polled[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0;
        const bool writable = (polled[i].revents & POLLOUT) != 0;
        ares_process_fd(channel, readable ? polled[i].fd : ARES_SOCKET_BAD, writable ? polled[i].fd : ARES_SOCKET_BAD);
      }
      if (!any) ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    }
  }
};

Resolver::Resolver(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {
  static const int initialized = ares_library_init(ARES_LIB_INIT_ALL);
  (void)initialized;
  impl_->thread = std::thread([impl = impl_.get()] { impl->Loop(); });
}

Resolver::~Resolver() {
  impl_->stopping = true;
  impl_->Wake();
  impl_->thread.join();
}

Resolver& Resolver::Global() {
  static Resolver* const resolver = new Resolver();  // never ends: look-ups of detached work may come at any time
  return *resolver;
}

Awaitable<Result<Addresses>> Resolver::Resolve(std::string host, Clock::time_point deadline) {
  auto impl = impl_;
  if (impl->pending.fetch_add(1) >= kLookupsMax) {
    --impl->pending;
    co_return Error{": too many look-ups are under way"};
  }
  auto lookup = std::make_shared<Lookup>();
  lookup->host = std::move(host);
  auto executor = co_await asio::this_coro::executor;
  auto timer = std::make_shared<asio::steady_timer>(executor, deadline);
  auto guard = std::make_shared<AbandonAtEnd>(lookup);
  timer->async_wait([guard = std::move(guard), timer](const boost::system::error_code& error) {
    if (!error) guard->lookup->Finish(Error{": i/o timeout"});
  });
  auto token = asio::use_awaitable;
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [impl, lookup, executor](auto handler) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        lookup->wake = [shared, executor] { asio::post(executor, [shared] { (*shared)(); }); };
        {
          std::lock_guard lock(impl->mutex);
          impl->queue.push_back(lookup);
        }
        impl->Wake();
      },
      token);
  timer->cancel();
  std::lock_guard lock(lookup->mutex);
  co_return std::move(lookup->result);
}

}  // namespace keelson::net
