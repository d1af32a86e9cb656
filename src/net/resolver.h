// Host names to addresses, with c-ares: a look-up ends at its caller's deadline and never delays another one. Reads
// /etc/hosts and /etc/resolv.conf as the C library does, and again when resolv.conf changes.
// Thread safety: all members from any thread. It has one thread, started on first use.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "net/error.h"

namespace keelson::net {

class Resolver {
 public:
  static constexpr std::size_t kLookupsMax = 1024;  // under way at once; more are refused

  struct Options {
    std::string servers;  // host:port,...; empty: those of /etc/resolv.conf
  };
  Resolver() : Resolver(Options()) {}
  explicit Resolver(Options options);
  ~Resolver();
  static Resolver& Global();

  // Addresses best first (RFC 6724). The error is Go's text behind "lookup NAME": " on 10.0.0.2:53: no such host",
  // ": i/o timeout".
  Awaitable<Result<std::vector<boost::asio::ip::address>>> Resolve(std::string host,
                                                                   std::chrono::steady_clock::time_point deadline);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::net
