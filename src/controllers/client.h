// Requests to this server from within: the handler chain runs as for a client's, without a socket. Authorization,
// admission, fairness and audit see the user that the handler was made for.
// Thread safety: the caller's executor; several requests may be under way at the same time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "async/awaitable.h"
#include "http/message.h"
#include "meta/status.h"

namespace keelson::controllers {

inline constexpr std::string_view kJSON = "application/json";
inline constexpr std::string_view kMergePatch = "application/merge-patch+json";
inline constexpr std::string_view kStrategicMergePatch = "application/strategic-merge-patch+json";
inline constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
// Metadata only, of one object and of a list.
inline constexpr std::string_view kPartialMetadata =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
inline constexpr std::string_view kPartialMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

class Client {
 public:
  // `handler` answers as the user it was made for; the part of `user_agent` before the slash is the field manager.
  Client(http::Handler handler, std::string user_agent)
      : handler_(std::move(handler)), user_agent_(std::move(user_agent)) {}

  struct Request {
    std::string method;
    std::string target;  // path and query, escaped
    std::string body;
    std::string_view content_type = kJSON;
    std::string_view accept = kJSON;
  };
  // The body of a success; otherwise the Status that was answered.
  Awaitable<meta::Result<std::string>> Do(Request request) const;

 private:
  http::Handler handler_;
  std::string user_agent_;
};
using ClientPtr = std::shared_ptr<const Client>;

// /api/v1/... or /apis/GROUP/VERSION/..., with namespaces/NAME where there is one. `rest` begins with the resource.
std::string APIPath(std::string_view api_version, std::string_view name_space, std::string_view rest);

}  // namespace keelson::controllers
