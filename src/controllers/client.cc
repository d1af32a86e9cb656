#include "controllers/client.h"

#include <utility>
#include <vector>

#include "async/event.h"
#include "base/arena.h"
#include "base/clock.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::controllers {
namespace {

class WholeBody final : public http::BodyReader {
 public:
  explicit WholeBody(std::string text) : text_(std::move(text)) {}
  Awaitable<Outcome<http::SharedBytes, http::BodyError>> Read() override {
    co_return http::SharedBytes::FromString(std::exchange(text_, {}));
  }

 private:
  std::string text_;
};

constexpr std::size_t kPullBytes = 64 * 1024;

// All that a source makes; nothing when it gave up.
Awaitable<std::optional<std::string>> ReadSource(http::BodySource& source) {
  auto wake = std::make_shared<async::Event>();
  source.Start([wake] { wake->Set(); });
  std::string text;
  for (;;) {
    wake->Reset();
    std::vector<http::SharedBytes> slices;
    const auto state = source.Pull(kPullBytes, slices);
    for (const auto& slice : slices) text += slice.view();
    if (state == http::BodySource::State::kDone) co_return text;
    if (state == http::BodySource::State::kAbort) co_return std::nullopt;
    if (state == http::BodySource::State::kPending) co_await wake->Wait();
  }
}

meta::StatusReason ReasonOf(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(meta::StatusReason::kServiceUnavailable); ++i) {
    const auto reason = static_cast<meta::StatusReason>(i);
    if (meta::ToString(reason) == text) return reason;
  }
  return meta::StatusReason::kUnknown;
}

meta::Status StatusOf(int code, const std::string& body) {
  meta::Status::Fields fields{.code = code, .message = body};
  base::Arena arena;
  const auto parsed = object::ParseJSON(arena, body);
  if (!parsed || !parsed->is_map()) return meta::Status(std::move(fields));
  fields.reason = ReasonOf((*parsed)["reason"].as_string());
  fields.message = (*parsed)["message"].as_string();
  const Value details = (*parsed)["details"];
  if (details.is_map()) {
    meta::StatusDetails told{.name = std::string(details["name"].as_string())};
    told.retry_after_seconds = static_cast<std::int32_t>(details["retryAfterSeconds"].as_int());
    for (const Value cause : details["causes"].items()) {
      told.causes.push_back({std::string(cause["reason"].as_string()), std::string(cause["message"].as_string()),
                             std::string(cause["field"].as_string())});
    }
    fields.details = std::move(told);
  }
  return meta::Status(std::move(fields));
}

}  // namespace

std::string APIPath(std::string_view api_version, std::string_view name_space, std::string_view rest) {
  std::string path = api_version.find('/') == std::string_view::npos ? "/api/" : "/apis/";
  path += api_version;
  if (!name_space.empty()) path += "/namespaces/" + std::string(name_space);
  path += '/';
  return path += rest;
}

Awaitable<meta::Result<std::string>> Client::Do(Request request) const {
  http::Request http;
  http.method = std::move(request.method);
  http.target = std::move(request.target);
  if (!http::ParseTarget(http.target, &http.path, &http.raw_query))
    co_return meta::NewInternalError("invalid request target " + http.target);
  http.host = "127.0.0.1";
  http.headers.Add("User-Agent", user_agent_);
  http.headers.Add("Accept", request.accept);
  if (!request.body.empty()) {
    http.headers.Add("Content-Type", request.content_type);
    http.headers.Add("Content-Length", std::to_string(request.body.size()));
  }
  http.remote_address = "127.0.0.1:0";
  http.body = std::make_unique<WholeBody>(std::move(request.body));
  http.received = base::Clock::Real().Monotonic();

  auto response = co_await handler_(std::move(http));
  std::optional<std::string> body;
  if (auto* source = std::get_if<std::unique_ptr<http::BodySource>>(&response.body)) {
    body = co_await ReadSource(**source);
  } else {
    body = std::string(std::get<http::SharedBytes>(response.body).view());
  }
  for (auto& ended : response.on_end) ended(body ? body->size() : 0, body.has_value());
  if (!body) co_return meta::NewInternalError("the answer was cut short");
  if (response.status < 200 || response.status > 299) co_return StatusOf(response.status, *body);
  co_return *std::move(body);
}

}  // namespace keelson::controllers
