// A konnectivity server and agent in one, over gRPC's own library: dials requested targets and carries bytes. Tests
// only. Thread safety: all members from any thread. Ownership: the destructor ends every tunnel and waits.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "net/testing/certificates.h"

namespace keelson::http::testing {

class KonnectivityServer {
 public:
  enum class Answer : std::uint8_t {
    kDial,         // connects, or returns the error
    kNothing,      // never answers a dial
    kCloseDial,    // DIAL_CLS
    kEndStream,    // ends the stream with a gRPC error
    kStrangeDial,  // answers a dial that was not made
  };
  struct Options {
    std::string unix_path;  // else 127.0.0.1 and a free port, in TLS
    net::testing::KeyPair certificate;
    std::string client_ca_pem;
    Answer answer = Answer::kDial;
    std::map<std::string, std::string> addresses = {};  // dialled instead of the requested ones
  };
  explicit KonnectivityServer(Options options);
  ~KonnectivityServer();

  int port() const { return port_; }
  int dials() const { return dials_.load(); }
  int open() const { return open_.load(); }                // streams
  int dial_closes() const { return dial_closes_.load(); }  // DIAL_CLS received
  int close_requests() const { return close_requests_.load(); }

 private:
  class Service;
  std::unique_ptr<Service> service_;
  int port_ = 0;
  std::atomic<int> dials_{0};
  std::atomic<int> open_{0};
  std::atomic<int> dial_closes_{0};
  std::atomic<int> close_requests_{0};
  struct Running;
  std::unique_ptr<Running> running_;
};

}  // namespace keelson::http::testing
