#include "auth/token_review/authenticator.h"

#include "base/arena.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "object/json_text.h"
#include "webhook/retry.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kGroup = "authentication.k8s.io/";

std::string_view KindOf(const Value& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  return value.is_list() ? "array" : "number";
}

std::vector<std::string> Texts(const Value& list) {
  std::vector<std::string> texts;
  for (const Value item : list.items()) texts.emplace_back(item.as_string());
  return texts;
}

// "" when the answer is a review of this version; else client-go's text.
std::string KindProblem(const Value& document, std::string_view version, std::string_view body) {
  if (document.is_null()) return "Object 'Kind' is missing in '" + std::string(body) + "'";
  if (!document.is_map()) {
    return "couldn't get version/kind; json parse error: json: cannot unmarshal " + std::string(KindOf(document)) +
           " into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
           "\"json:\\\"kind,omitempty\\\"\" }";
  }
  const std::string_view kind = document["kind"].as_string(), api_version = document["apiVersion"].as_string();
  if (kind.empty()) return "Object 'Kind' is missing in '" + std::string(body) + "'";
  if (kind == "TokenReview" && api_version == std::string(kGroup) + std::string(version)) return {};
  const auto slash = api_version.rfind('/');
  const std::string_view short_version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
  return "converting (" + std::string(short_version) + "." + std::string(kind) + ") to (" + std::string(version) +
         ".TokenReview): unknown conversion";
}

constexpr std::chrono::seconds kDeadline{30};  // for all tries together, as upstream's cache gives them

Awaitable<Outcome<webhook::Response, webhook::Error>> Post(std::shared_ptr<webhook::RESTClient> client,
                                                           std::string body,
                                                           std::chrono::steady_clock::time_point deadline) {
  webhook::Request request;
  request.deadline = deadline;
  request.body = base::SharedBytes::FromString(std::move(body));
  co_return co_await client->Call(std::move(request));
}

}  // namespace

std::string TokenReviewRequest(std::string_view version, std::string_view token,
                               const std::vector<std::string>& audiences) {
  std::string out = "{\"kind\":\"TokenReview\",\"apiVersion\":";
  object::AppendJSONString(out, std::string(kGroup) + std::string(version));
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

AuthenticationResult ReadTokenReview(std::string_view version, std::string_view body,
                                     const std::vector<std::string>& audiences,
                                     const std::vector<std::string>& api_audiences) {
  base::Arena arena;
  auto decoded = codec::DecodeYAML(arena, body);
  if (!decoded.ok())
    return AuthenticationResult::Failed("couldn't get version/kind; json parse error: " + decoded.error().message);
  const Value document = decoded->value;
  if (std::string problem = KindProblem(document, version, body); !problem.empty())
    return AuthenticationResult::Failed(std::move(problem));
  const Value status = document["status"];
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
  if (!answer.ok()) co_return AuthenticationResult::Failed(answer.error().message);
  co_return ReadTokenReview(version_, answer->body.view(), audiences, api_audiences_);
}

}  // namespace keelson::auth
