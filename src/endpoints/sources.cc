#include "endpoints/sources.h"

#include <isa-l/igzip_lib.h>

#include <boost/asio/co_spawn.hpp>
#include <mutex>

#include "async/deadlines.h"
#include "http/event_source.h"
#include "telemetry/log.h"

namespace keelson::endpoints {
namespace {

class ListSource final : public http::BodySource {
 public:
  ListSource(std::shared_ptr<const ObjectEncoder> encoder, ObjectEncoder::ListFrame frame, storage::ObjectList list)
      : encoder_(std::move(encoder)), list_(std::move(list)), frame_(std::move(frame)) {}

  void Start(std::function<void()>) override {}

  State Pull(std::size_t budget, std::vector<SharedBytes>& out) override {
    std::size_t made = 0;
    if (!begun_) {
      begun_ = true;
      made += frame_.head.size();
      out.push_back(frame_.head);
    }
    while (next_ < list_.items.size()) {
      if (made >= budget) return State::kMore;
      auto item = encoder_->Item(list_.items[next_], next_ == 0, out);
      if (!item.ok()) {
        // The answer has begun: it can only be cut off, so that the client does not take a part for the whole.
        log::Error("Could not encode an object of a list", "key", list_.items[next_]->key(), "err", item.error());
        return State::kAbort;
      }
      list_.items[next_] = {};
      ++next_;
      made += *item;
    }
    out.push_back(frame_.tail);
    return State::kDone;
  }

 private:
  std::shared_ptr<const ObjectEncoder> encoder_;
  storage::ObjectList list_;
  ObjectEncoder::ListFrame frame_;
  std::size_t next_ = 0;
  bool begun_ = false;
};

class WatchSource final : public http::EventSource {
 public:
  WatchSource(std::shared_ptr<const ObjectEncoder> encoder, std::unique_ptr<storage::WatchStream> stream,
              base::Clock::SteadyTime deadline, std::unique_ptr<WatchGroup::Member> member,
              std::optional<RequestMetrics::WatchMeter> meter, std::function<void()> on_initial_events_end)
      : encoder_(std::move(encoder)),
        stream_(std::move(stream)),
        deadline_(deadline),
        member_(std::move(member)),
        meter_(meter),
        on_initial_events_end_(std::move(on_initial_events_end)) {}

  void Start(std::function<void()> wake) override {
    timer_ = async::Deadlines::Global().Add(deadline_, wake);
    if (member_) member_->OnEnding(wake);
    stream_->Start(std::move(wake));
  }

  State Pull(std::size_t budget, std::vector<SharedBytes>& out) override {
    if (ended_ || (member_ && member_->ending())) return State::kDone;
    std::size_t made = 0;
    while (made < budget) {
      if (base::Clock::Real().Monotonic() >= deadline_) return State::kDone;
      storage::WatchEvent event;
      switch (stream_->Next(event)) {
        case storage::WatchStream::Poll::kPending:
          return State::kPending;
        case storage::WatchStream::Poll::kEnd:
          return State::kDone;
        case storage::WatchStream::Poll::kEvent:
          break;
      }
      const std::size_t before = out.size();
      if (auto framed = encoder_->Event(event, first_, out); !framed.ok()) {
        log::Error("Could not encode a watch event", "err", framed.error());
        return State::kAbort;
      }
      first_ = false;
      if (event.initial_events_end && on_initial_events_end_) std::exchange(on_initial_events_end_, nullptr)();
      std::size_t bytes = 0;
      for (std::size_t i = before; i < out.size(); ++i) bytes += out[i].size();
      if (meter_) meter_->Sent(bytes);
      made += bytes;
      if (event.type == storage::WatchEvent::Type::kError) {
        ended_ = true;
        return State::kDone;
      }
    }
    return State::kMore;
  }

 private:
  std::shared_ptr<const ObjectEncoder> encoder_;
  std::unique_ptr<storage::WatchStream> stream_;
  base::Clock::SteadyTime deadline_;
  async::Deadlines::Entry timer_;
  std::unique_ptr<WatchGroup::Member> member_;
  std::optional<RequestMetrics::WatchMeter> meter_;
  std::function<void()> on_initial_events_end_;
  bool first_ = true;
  bool ended_ = false;
};

class BytesSource final : public http::BodySource {
 public:
  explicit BytesSource(SharedBytes bytes) : bytes_(std::move(bytes)) {}
  void Start(std::function<void()>) override {}
  State Pull(std::size_t budget, std::vector<SharedBytes>& out) override {
    const std::size_t count = std::min(std::max<std::size_t>(budget, 1), bytes_.size() - at_);
    out.push_back(bytes_.Slice(at_, count));
    at_ += count;
    return at_ == bytes_.size() ? State::kDone : State::kMore;
  }

 private:
  SharedBytes bytes_;
  std::size_t at_ = 0;
};

class GzipSource final : public http::BodySource {
 public:
  explicit GzipSource(std::unique_ptr<http::BodySource> inner) : inner_(std::move(inner)) {
    isal_deflate_init(&stream_);
    stream_.level = 1;
    level_buffer_.resize(ISAL_DEF_LVL1_DEFAULT);
    stream_.level_buf = reinterpret_cast<std::uint8_t*>(level_buffer_.data());
    stream_.level_buf_size = static_cast<std::uint32_t>(level_buffer_.size());
    stream_.gzip_flag = IGZIP_GZIP;
  }

  void Start(std::function<void()> wake) override { inner_->Start(std::move(wake)); }

  State Pull(std::size_t budget, std::vector<SharedBytes>& out) override {
    std::size_t made = 0;
    while (made < budget) {
      pulled_.clear();
      const State state = inner_->Pull(kInputBytes, pulled_);
      if (state == State::kAbort) return state;
      for (std::size_t i = 0; i < pulled_.size(); ++i) {
        const bool last = state == State::kDone && i + 1 == pulled_.size();
        made += Compress(pulled_[i].view(), last, out);
      }
      if (state == State::kDone) {
        if (pulled_.empty()) made += Compress({}, true, out);
        return State::kDone;
      }
      if (state == State::kPending) return state;
    }
    return State::kMore;
  }

 private:
  static constexpr std::size_t kInputBytes = 256 * 1024;
  static constexpr std::size_t kOutputBytes = 64 * 1024;

  std::size_t Compress(std::string_view input, bool last, std::vector<SharedBytes>& out) {
    stream_.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<std::uint32_t>(input.size());
    stream_.end_of_stream = last ? 1 : 0;
    stream_.flush = NO_FLUSH;
    std::size_t made = 0;
    do {
      char* buffer = nullptr;
      SharedBytes piece = SharedBytes::Uninitialized(kOutputBytes, &buffer);
      stream_.next_out = reinterpret_cast<std::uint8_t*>(buffer);
      stream_.avail_out = kOutputBytes;
      isal_deflate(&stream_);
      const std::size_t count = kOutputBytes - stream_.avail_out;
      if (count > 0) out.push_back(piece.Slice(0, count));
      made += count;
    } while (stream_.avail_out == 0 || (last && stream_.internal_state.state != ZSTATE_END));
    return made;
  }

  std::unique_ptr<http::BodySource> inner_;
  isal_zstream stream_;
  std::string level_buffer_;
  std::vector<SharedBytes> pulled_;
};

}  // namespace

std::unique_ptr<http::BodySource> NewListSource(std::shared_ptr<const ObjectEncoder> encoder,
                                                ObjectEncoder::ListFrame frame, storage::ObjectList list) {
  return std::make_unique<ListSource>(std::move(encoder), std::move(frame), std::move(list));
}

std::unique_ptr<http::BodySource> NewWatchSource(std::shared_ptr<const ObjectEncoder> encoder,
                                                 std::unique_ptr<storage::WatchStream> stream,
                                                 base::Clock::SteadyTime deadline,
                                                 std::unique_ptr<WatchGroup::Member> member,
                                                 std::optional<RequestMetrics::WatchMeter> meter,
                                                 std::function<void()> on_initial_events_end) {
  return std::make_unique<WatchSource>(std::move(encoder), std::move(stream), deadline, std::move(member), meter,
                                       std::move(on_initial_events_end));
}

std::unique_ptr<http::BodySource> NewGzipSource(std::unique_ptr<http::BodySource> inner) {
  return std::make_unique<GzipSource>(std::move(inner));
}

std::unique_ptr<http::BodySource> NewBytesSource(SharedBytes bytes) {
  return std::make_unique<BytesSource>(std::move(bytes));
}

}  // namespace keelson::endpoints
