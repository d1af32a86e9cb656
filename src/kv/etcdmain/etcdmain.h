// `keelson etcd`: a store served through etcd's API, started and stopped as etcd is.
#pragma once

#include <string>
#include <vector>

#include "base/outcome.h"

namespace keelson::kv::etcdmain {

// The flags that mean something here, from etcd's command line. Flags of etcd that mean nothing to one member with its
// own store are accepted; what etcd has not is an error.
struct Flags {
  std::string name = "default";
  std::string data_dir = "default.etcd";
  std::vector<std::string> listen_client_urls = {"http://localhost:2379"};
  std::vector<std::string> advertise_client_urls;
  std::vector<std::string> peer_urls = {"http://localhost:2380"};
  std::int64_t quota_bytes = 0;       // 0: 2 GiB, as etcd
  std::size_t request_bytes_max = 0;  // 0: as etcd
  std::size_t txn_ops_max = 0;
  bool sync = true;
  std::string cert_file, key_file, trusted_ca_file;
  bool version = false;
  // Our own: not etcd's.
  bool exit_with_parent = false;
  std::string snapshot_from;  // a store that is not there yet begins with the contents of this snapshot
};

Outcome<Flags, std::string> ParseFlags(const std::vector<std::string>& arguments);

extern const char* const kUsage;

// Runs until a signal. Returns the exit code. `arguments` without the program's name.
int Main(const std::vector<std::string>& arguments);

}  // namespace keelson::kv::etcdmain
