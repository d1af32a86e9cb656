#include "auth/token_review/authenticator.h"

#include "base/arena.h"
#include "base/strings.h"
#include "object/json_text.h"
#include "webhook/retry.h"
#include "webhook/review_answer.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kGroup = "authentication.k8s.io";

std::vector<std::string> Texts(const Value& list) {
  std::vector<std::string> texts;
  for (const Value item : list.items()) texts.emplace_back(item.as_string());
  return texts;
}

constexpr std::chrono::seconds kDeadline{30};  // for all tries together, as upstream's cache gives them

Awaitable<Outcome<webhook::Response, webhook::Error>> Post(std::shared_ptr<webhook::RESTClient> client,
                                                           std::string body,
                                                           std::chrono::steady_clock::time_point deadline) {
  webhook::Request request;
  request.deadline = deadline;
  request.response_bytes_max = webhook::kReviewAnswerBytesMax;
  request.body = base::SharedBytes::FromString(std::move(body));
  co_return co_await client->Call(std::move(request));
}

}  // namespace

std::string TokenReviewRequest(std::string_view version, std::string_view token,
                               const std::vector<std::string>& audiences) {
  std::string out = "{\"kind\":\"TokenReview\",\"apiVersion\":";
  object::AppendJSONString(out, std::string(kGroup) + "/" + std::string(version));
  out += ",\"metadata\":{},\"spec\":{";
  const auto member = [&](std::string_view name) { out += "\"" + std::string(name) + "\":"; };
  if (!token.empty()) {
    member("token");
    object::AppendJSONString(out, token);
  }
  if (!audiences.empty()) {
    if (!token.empty()) out += ',';
    member("audiences");
    for (std::size_t i = 0; i < audiences.size(); ++i) {
      out += i == 0 ? '[' : ',';
      object::AppendJSONString(out, audiences[i]);
    }
    out += ']';
  }
  return out + "},\"status\":{\"user\":{}}}";
}

AuthenticationResult ReadTokenReview(std::string_view version, const webhook::Response& response,
                                     const std::vector<std::string>& audiences,
                                     const std::vector<std::string>& api_audiences) {
  base::Arena arena;
  const auto document = webhook::DecodeReviewAnswer(arena, response, {kGroup, version, "TokenReview"});
  if (!document.ok()) return AuthenticationResult::Failed(document.error());
  const Value status = (*document)["status"];
  AuthenticationResult result;
  if (!audiences.empty()) {
    std::vector<std::string> named = Texts(status["audiences"]);
    if (named.empty()) named = api_audiences;
    result.audiences = IntersectAudiences(audiences, named);
    if (result.audiences.empty()) return AuthenticationResult();
  }
  if (!status["authenticated"].as_bool()) {
    const std::string_view error = status["error"].as_string();
    return error.empty() ? AuthenticationResult() : AuthenticationResult::Failed(std::string(error));
  }
  const Value who = status["user"];
  request::User user{.name = std::string(who["username"].as_string()),
                     .uid = std::string(who["uid"].as_string()),
                     .groups = Texts(who["groups"])};
  for (const auto& member : who["extra"].members()) user.extra.emplace_back(member.key, Texts(member.value));
  result.user = std::move(user);
  return result;
}

Awaitable<AuthenticationResult> TokenReviewAuthenticator::AuthenticateToken(std::string token,
                                                                            std::vector<std::string> audiences) {
  const std::string body = TokenReviewRequest(version_, token, audiences);
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  const auto call = [client = client_, body, deadline] { return Post(client, body, deadline); };
  auto answer = co_await webhook::WithExponentialBackoff({.deadline = deadline}, call);
  if (!answer.ok()) {
    // Upstream's cache gives up at the same moment as the call, and its error is the context's.
    const bool late = answer.error().kind == webhook::Error::Kind::kTimeout;
    co_return AuthenticationResult::Failed(late ? "context deadline exceeded" : answer.error().message);
  }
  co_return ReadTokenReview(version_, *answer, audiences, api_audiences_);
}

}  // namespace keelson::auth
