// Shared part of the fuzz targets of both protocols: a driver without a socket that answers every request at once.
#pragma once

#include <boost/asio/io_context.hpp>
#include <utility>
#include <vector>

#include "base/check.h"
#include "http/session.h"

namespace keelson::http {

class TwoSlices final : public BodySource {
 public:
  void Start(std::function<void()> wake) override { wake(); }
  State Pull(std::size_t, std::vector<SharedBytes>& out) override {
    out.push_back(SharedBytes::Static("slice"));
    return ++count_ == 2 ? State::kDone : State::kMore;
  }

 private:
  int count_ = 0;
};

class FuzzHost final : public SessionHost {
 public:
  void OnRequest(base::Ref<Exchange> exchange, std::unique_ptr<Request> request) override {
    KS_CHECK(!request->method.empty());
    KS_CHECK(request->path == "*" || request->path.starts_with("/"));
    waiting.emplace_back(std::move(exchange), std::move(request));
  }
  void WantWrite() override {}
  const base::Ref<WakeQueue>& wake_queue() const override { return queue_; }
  base::Clock::SteadyTime Now() const override { return {}; }

  // Feeds `bytes` in pieces of `step`, answering between them, and checks what must always hold.
  void Run(Session& session, std::string_view bytes, std::size_t step) {
    Output out;
    while (!bytes.empty() && !session.finished() && session.wants_input()) {
      session.Receive(bytes.substr(0, step));
      bytes.remove_prefix(std::min(step, bytes.size()));
      Answer(session);
      std::size_t total = 0;
      do {
        out.Clear();
        session.Produce(out, 4096);
        for (const auto piece : out.pieces()) total += piece.size();
        KS_CHECK(total < 64U * 1024 * 1024);
        Answer(session);
      } while (!out.empty());
      context_.poll();
      context_.restart();
    }
    session.Tick({});
    session.ReceiveEnd();
    session.Abort();
    waiting.clear();
  }

 private:
  void Answer(Session& session) {
    auto now = std::exchange(waiting, {});
    for (auto& [exchange, request] : now) {
      Response response;
      if (request->path.size() % 2 == 0) {
        response.body = std::make_unique<TwoSlices>();
      } else {
        response.body = SharedBytes::Static("hello\n");
      }
      session.Respond(*exchange, std::move(response));
    }
  }

  asio::io_context context_;
  base::Ref<WakeQueue> queue_ = base::MakeRef<WakeQueue>(context_.get_executor());
  std::vector<std::pair<base::Ref<Exchange>, std::unique_ptr<Request>>> waiting;
};

}  // namespace keelson::http
