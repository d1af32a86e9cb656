#include "http/upgraded_stream.h"

#include <array>
#include <boost/asio/post.hpp>

#include "http/park.h"

namespace keelson::http {
namespace {
constexpr std::size_t kReadBytes = 16 * 1024;
}

UpgradedStream::UpgradedStream(std::shared_ptr<ServerConnection> connection, std::string leftover)
    : connection_(std::move(connection)), leftover_(std::move(leftover)) {
  connection_->upgraded_ = this;
}

UpgradedStream::~UpgradedStream() {
  connection_->upgraded_ = nullptr;
  if (connection_->state_ == ServerConnection::State::kUpgraded) connection_->Finish();
}

Awaitable<Outcome<SharedBytes, BodyError>> UpgradedStream::Read() {
  if (!leftover_.empty()) co_return SharedBytes::FromString(std::exchange(leftover_, std::string()));
  for (;;) {
    if (gone_) co_return BodyError::kClientGone;
    std::array<char, kReadBytes> buffer;
    std::size_t got = 0;
    const auto status = connection_->transport_->Read(buffer.data(), buffer.size(), &got);
    if (status == net::IOStatus::kOk) co_return SharedBytes(std::string_view(buffer.data(), got));
    if (status == net::IOStatus::kClosed) co_return SharedBytes();
    if (status == net::IOStatus::kError) {
      connection_->Close();
      co_return BodyError::kClientGone;
    }
    connection_->WaitReadable();
    co_await Park(reader_);
  }
}

Awaitable<Outcome<void, BodyError>> UpgradedStream::Write(SharedBytes bytes) {
  if (gone_) co_return BodyError::kClientGone;
  const std::string_view piece = bytes.view();
  if (connection_->transport_->Write({&piece, 1}) == net::IOStatus::kError) {
    connection_->Close();
    co_return BodyError::kClientGone;
  }
  while (!gone_ && connection_->transport_->unsent() != 0) {
    connection_->WaitWritable();
    co_await Park(writer_);
  }
  if (gone_) co_return BodyError::kClientGone;
  co_return Outcome<void, BodyError>();
}

void UpgradedStream::Close() {
  asio::post(connection_->shard_->executor, [connection = connection_] { connection->Close(); });
}

void UpgradedStream::OnReadable() { Wake(reader_); }

void UpgradedStream::OnWritable() { Wake(writer_); }

void UpgradedStream::OnGone() {
  gone_ = true;
  OnReadable();
  OnWritable();
}

}  // namespace keelson::http
