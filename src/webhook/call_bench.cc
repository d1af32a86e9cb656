// One JSON review over a warm connection. The server is another process, named by KEELSON_CALL_URL with its authority
// in KEELSON_CALL_CA and the body to send in KEELSON_CALL_BODY: interop/callbench starts one and compares with Go's
// client (make beside ONLY=call).
#include <benchmark/benchmark.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>

#include "base/arena.h"
#include "codec/json.h"
#include "webhook/rest_client.h"

namespace keelson::webhook {
namespace {

constexpr int kBatch = 100;

// The body is written anew for each call, as an authorizer does.
std::string Encode(const std::string& body) {
  base::Arena arena;
  auto decoded = codec::DecodeJSON(arena, body);
  std::string out;
  codec::EncodeJSON(decoded->value, out);
  return out;
}

Awaitable<bool> CallSome(std::shared_ptr<RESTClient> client, std::string body) {
  for (int i = 0; i < kBatch; ++i) {
    Request request;
    request.body = base::SharedBytes::FromString(Encode(body));
    auto answer = co_await client->Call(std::move(request));
    if (!answer.ok()) co_return false;
    base::Arena arena;
    auto review = codec::DecodeJSON(arena, answer->body.view());
    if (!review.ok() || !review->value["status"]["allowed"].as_bool()) co_return false;
  }
  co_return true;
}

void Review(benchmark::State& state, bool http1_only) {
  const char* const url = std::getenv("KEELSON_CALL_URL");
  const char* const ca = std::getenv("KEELSON_CALL_CA");
  const char* const body = std::getenv("KEELSON_CALL_BODY");
  if (url == nullptr || ca == nullptr || body == nullptr) {
    state.SkipWithError("no server: make beside ONLY=call");
    return;
  }
  async::IOPool pool(1);
  auto client =
      RESTClient::New(std::make_shared<http::Transport>(pool), {.host = url, .ca_file = ca, .http1_only = http1_only});
  if (!client.ok()) return state.SkipWithError(client.error().c_str());
  const auto run = [&] {
    auto calls = CallSome(*client, body);
    return asio::co_spawn(pool.Next(), std::move(calls), asio::use_future).get();
  };
  if (!run()) return state.SkipWithError("the call failed");
  while (state.KeepRunningBatch(kBatch)) {
    if (!run()) return state.SkipWithError("the call failed");
  }
}

void BM_ReviewHTTP2(benchmark::State& state) { Review(state, /*http1_only=*/false); }
void BM_ReviewHTTP1(benchmark::State& state) { Review(state, /*http1_only=*/true); }
BENCHMARK(BM_ReviewHTTP2)->MeasureProcessCPUTime();
BENCHMARK(BM_ReviewHTTP1)->MeasureProcessCPUTime();

}  // namespace
}  // namespace keelson::webhook
