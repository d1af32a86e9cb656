#include "http/transport.h"

#include <utility>
#include <vector>

namespace keelson::http {

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
  options.target = std::move(target.dial);
  options.dialer = target.dialer;
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
