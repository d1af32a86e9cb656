#include "endpoints/answering.h"

#include <memory>

namespace keelson::endpoints {
namespace {

using AnswerFunc = std::function<http::Response(Exchange& exchange)>;

Awaitable<http::Response> Answer(std::shared_ptr<const AnswerFunc> answer, ExchangePtr exchange) {
  co_return (*answer)(*exchange);
}

}  // namespace

Handler Answering(AnswerFunc answer) {
  auto shared = std::make_shared<const AnswerFunc>(std::move(answer));
  return [shared](ExchangePtr exchange) { return Answer(shared, std::move(exchange)); };
}

}  // namespace keelson::endpoints
