// One watch of an etcd: a stream of its own, resumed at another endpoint where it broke. At most one response is held;
// the next is read when that was taken. Internal to kv/etcd.
#pragma once

#include <memory>

#include "kv/etcd/client.h"
#include "kv/kv.h"

namespace keelson::kv::etcd {

std::unique_ptr<Watcher> MakeWatcher(std::shared_ptr<Client> client, WatchRequest request);

}  // namespace keelson::kv::etcd
