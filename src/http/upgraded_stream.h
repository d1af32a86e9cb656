// The raw stream of a connection that has left HTTP. For server_connection.cc only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "http/server_connection.h"

namespace keelson::http {

// Thread safety: Close() from any thread, the rest on the connection's thread. One Read and one Write at a time.
class UpgradedStream final : public Stream {
 public:
  UpgradedStream(std::shared_ptr<ServerConnection> connection, std::string leftover);
  ~UpgradedStream() override;

  Awaitable<Outcome<SharedBytes, BodyError>> Read() override;
  Awaitable<Outcome<void, BodyError>> Write(SharedBytes bytes) override;
  void Close() override;

  // By the connection.
  void OnReadable();
  void OnWritable();
  void OnGone();

 private:
  std::shared_ptr<ServerConnection> connection_;
  std::string leftover_;
  bool gone_ = false;
  std::function<void()> reader_;
  std::function<void()> writer_;
};

}  // namespace keelson::http
