#include "http/transport.h"

#include <utility>
#include <vector>

#include "http/proxy.h"
#include "net/address.h"

namespace keelson::http {
namespace {

// Through the proxy of HTTPS_PROXY, unless NO_PROXY names the target. Null: direct. Targets whose address was looked up
// elsewhere (services) and plain text are always direct.
net::DialerPtr EnvironmentProxy(async::IOPool& pool, const TransportTarget& target) {
  if (target.tls == nullptr || !target.dial.unix_path.empty()) return nullptr;
  const bool by_name = target.host_header.empty() || target.host_header == target.dial.host ||
                       target.host_header == net::JoinHostPort(target.dial.host, target.dial.port);
  if (!by_name) return nullptr;
  std::string text = ProxyFor(ProxyEnvironment::FromProcess(), true, target.dial.host, target.dial.port);
  if (text.empty()) return nullptr;
  if (text.find("://") == std::string::npos) text = "http://" + text;
  const auto proxy = ParseProxy(text);
  return proxy.ok() ? NewProxyDialer(pool, *proxy, target.tls, nullptr) : nullptr;
}

}  // namespace

std::shared_ptr<Client> Transport::ClientFor(TransportTarget target) {
  std::string address = target.partition + '\n' + target.dial.host + '\n' + std::to_string(target.dial.port) + '\n' +
                        target.dial.unix_path + '\n' + target.server_name + '\n' + target.host_header +
                        (target.http1_only ? "\n1" : "\n2");
  Key key{std::move(address), target.tls.get(), target.dialer.get()};
  std::vector<Entry> dropped;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  if (const auto found = clients_.find(key); found != clients_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second.used);
    return found->second.client;
  }
  ClientOptions options;
  options.dialer = target.dialer != nullptr ? target.dialer : EnvironmentProxy(pool_, target);
  options.target = std::move(target.dial);
  options.tls = target.tls;
  options.server_name = std::move(target.server_name);
  options.host_header = std::move(target.host_header);
  options.http1_only = target.http1_only;
  options.dial_timeout = target.dial_timeout;
  auto client = std::make_shared<Client>(pool_, std::move(options));
  by_use_.push_front(key);
  clients_.emplace(std::move(key), Entry{client, std::move(target.tls), std::move(target.dialer), by_use_.begin()});
  if (clients_.size() > clients_max_) {
    auto oldest = clients_.find(by_use_.back());
    dropped.push_back(std::move(oldest->second));
    clients_.erase(oldest);
    by_use_.pop_back();
  }
  return client;
}

Awaitable<Outcome<ClientResponse, ClientError>> Transport::Do(TransportTarget target, ClientRequest request) {
  const auto client = ClientFor(std::move(target));
  co_return co_await client->Do(std::move(request));
}

void Transport::Forget(const net::TLSClientContext* tls) {
  std::vector<Entry> dropped;
  std::lock_guard lock(mutex_);
  for (auto it = clients_.begin(); it != clients_.end();) {
    if (it->first.tls != tls) {
      ++it;
      continue;
    }
    by_use_.erase(it->second.used);
    dropped.push_back(std::move(it->second));
    it = clients_.erase(it);
  }
}

std::size_t Transport::clients() const {
  std::lock_guard lock(mutex_);
  return clients_.size();
}

}  // namespace keelson::http
