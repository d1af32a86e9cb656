#include "app/host_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace keelson::app {
namespace {

// /proc/net/route: the interface is the first column, the destination in hexadecimal the second.
std::string DefaultInterfaceIPv4() {
  std::ifstream routes("/proc/net/route");
  for (std::string line; std::getline(routes, line);) {
    std::istringstream columns(line);
    std::string interface, destination, gateway;
    if (columns >> interface >> destination >> gateway && destination == "00000000" && gateway != "00000000")
      return interface;
  }
  return "";
}

// /proc/net/ipv6_route: destination, prefix length, source, its prefix, next hop, metric, counters, flags, interface.
std::string DefaultInterfaceIPv6() {
  std::ifstream routes("/proc/net/ipv6_route");
  for (std::string line; std::getline(routes, line);) {
    std::istringstream columns(line);
    std::vector<std::string> words;
    for (std::string word; columns >> word;) words.push_back(word);
    if (words.size() < 10 || words[0].find_first_not_of('0') != std::string::npos || words[1] != "00") continue;
    if (words[4].find_first_not_of('0') != std::string::npos) return words[9];
  }
  return "";
}

bool IsGlobal(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const std::uint32_t ip = ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    return ip >> 24 != 127 && ip >> 16 != 0xa9fe && ip >> 28 != 0xe && ip != 0;
  }
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return !IN6_IS_ADDR_LOOPBACK(&ip) && !IN6_IS_ADDR_LINKLOCAL(&ip) && !IN6_IS_ADDR_MULTICAST(&ip) &&
         !IN6_IS_ADDR_UNSPECIFIED(&ip);
}

std::string AddressOf(const std::string& interface, int family) {
  if (interface.empty()) return "";
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != family || interface != at->ifa_name ||
        (at->ifa_flags & IFF_UP) == 0)
      continue;
    if (!IsGlobal(at->ifa_addr)) continue;
    char text[INET6_ADDRSTRLEN];
    const void* const bytes =
        family == AF_INET ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr)
                          : &reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr;
    if (::inet_ntop(family, bytes, text, sizeof text) != nullptr) return text;
  }
  return "";
}

}  // namespace

HostFacts ReadHostFacts() {
  HostFacts facts;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) facts.hostname = name;
  facts.default_ipv4 = AddressOf(DefaultInterfaceIPv4(), AF_INET);
  facts.default_ipv6 = AddressOf(DefaultInterfaceIPv6(), AF_INET6);
  return facts;
}

}  // namespace keelson::app
