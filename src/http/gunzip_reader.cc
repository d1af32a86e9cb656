#include "http/gunzip_reader.h"

#include <zlib.h>

#include <array>

#include "base/check.h"

namespace keelson::http {
namespace {

class GunzipReader final : public BodyReader {
 public:
  explicit GunzipReader(std::unique_ptr<BodyReader> inner) : inner_(std::move(inner)) {
    KS_CHECK(inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK);
  }
  ~GunzipReader() override { inflateEnd(&stream_); }

  Awaitable<Outcome<SharedBytes, BodyError>> Read() override {
    for (;;) {
      if (ended_) co_return SharedBytes();
      if (stream_.avail_in == 0) {
        auto bytes = co_await inner_->Read();
        if (!bytes.ok()) co_return bytes.error();
        if (bytes->empty()) co_return started_ ? BodyError::kMalformed : BodyError::kClientGone;
        held_ = *std::move(bytes);
        stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(held_.data()));
        stream_.avail_in = static_cast<uInt>(held_.size());
        started_ = true;
      }
      std::array<char, 16384> buffer;
      stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream_.avail_out = buffer.size();
      const int status = inflate(&stream_, Z_SYNC_FLUSH);
      if (status == Z_STREAM_END) {
        ended_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        co_return BodyError::kMalformed;
      }
      const std::size_t made = buffer.size() - stream_.avail_out;
      if (made != 0) co_return SharedBytes(std::string_view(buffer.data(), made));
    }
  }

 private:
  std::unique_ptr<BodyReader> inner_;
  SharedBytes held_;
  z_stream stream_{};
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<BodyReader> NewGunzipReader(std::unique_ptr<BodyReader> inner) {
  return std::make_unique<GunzipReader>(std::move(inner));
}

}  // namespace keelson::http
