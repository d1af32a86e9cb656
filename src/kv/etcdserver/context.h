// State shared by the gRPC services. Internal to kv/etcdserver.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdint>

#include "async/blocking_pool.h"
#include "async/gate.h"
#include "async/io_pool.h"
#include "kv/etcdpb/convert.h"
#include "kv/etcdserver/server.h"
#include "kv/mvcc/store.h"

namespace keelson::kv::etcdserver {

namespace pb = ::etcdserverpb;

// One member with a fixed identity.
constexpr std::uint64_t kClusterID = 0x6b65656c736f6e01;
constexpr std::uint64_t kMemberID = 0x6b65656c736f6e02;
constexpr std::uint64_t kRaftTerm = 2;
constexpr std::size_t kRequestBytesMax = std::size_t{2} * 1024 * 1024;  // etcd's: 1.5 MiB and room for gRPC

struct Context {
  Context(Store& store_in, Options options_in)
      : store(store_in),
        embedded(dynamic_cast<mvcc::EmbeddedStore*>(&store_in)),
        options(std::move(options_in)),
        pool(options.io ? options.io : std::make_shared<async::IOPool>(kIOThreads)),
        io(*pool),
        blocking("etcd-api", 1) {}
  Store& store;
  mvcc::EmbeddedStore* const embedded;  // the same, when it is in this process
  Options options;
  async::Gate gate;  // of coroutines under way
  const std::shared_ptr<async::IOPool> pool;
  async::IOPool& io;
  async::BlockingPool blocking;  // for defragmentation
};

inline void SetHeader(pb::ResponseHeader* header, Revision revision) {
  header->set_cluster_id(kClusterID);
  header->set_member_id(kMemberID);
  header->set_raft_term(kRaftTerm);
  header->set_revision(revision);
}

template <class Coroutine>
void Spawn(const asio::any_io_executor& executor, Coroutine coroutine) {
  asio::co_spawn(executor, std::move(coroutine), asio::detached);
}

}  // namespace keelson::kv::etcdserver
