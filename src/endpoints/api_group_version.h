// The routes of one group version: /api/v1/... or /apis/<group>/<version>/..., and what upstream's matching layer in
// front of the handlers answers when nothing fits (404, 405, 406, 415 with their own texts). Thread safety: Add()
// before serving; Handle() from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "endpoints/exchange.h"
#include "endpoints/scope.h"

namespace keelson::endpoints {

using ScopeHandler = std::function<Awaitable<http::Response>(ScopePtr scope, ExchangePtr exchange)>;

// A resource or subresource: its scope and a handler per HTTP method.
struct Route {
  ScopePtr scope;
  std::map<std::string, ScopeHandler, std::less<>>
      item;  // .../{name}: GET, PUT, PATCH, DELETE, POST for some subresources
  std::map<std::string, ScopeHandler, std::less<>> collection;  // GET (list, watch), POST, DELETE
  bool watchable = false;                                       // served below /watch/ too
  bool connects = false;  // anything may follow the subresource's name in the path
};

class APIGroupVersion {
 public:
  APIGroupVersion(std::string group, std::string version);

  const std::string& group() const { return group_; }
  const std::string& version() const { return version_; }
  const std::string& prefix() const { return prefix_; }  // /api/v1, /apis/apps/v1

  // `subresource` "" is the resource itself.
  void Add(std::string_view plural, std::string_view subresource, Route route);
  const Route* Find(std::string_view plural, std::string_view subresource) const;
  std::vector<const Route*> Resources() const;  // without subresources
  bool empty() const { return routes_.empty(); }

  // Handles a request whose path is below prefix().
  Awaitable<http::Response> Handle(ExchangePtr exchange) const;

 private:
  std::string group_;
  std::string version_;
  std::string prefix_;
  using Subresources = std::map<std::string, Route, std::less<>>;
  std::map<std::string, Subresources, std::less<>> routes_;
};

// The routes for the verbs of a stored resource.
Route StoredResourceRoute(ScopePtr scope, std::span<const std::string_view> verbs);
// GET, PUT and PATCH of a subresource that is part of the same object.
Route StoredSubresourceRoute(ScopePtr scope, std::span<const std::string_view> verbs);

// 404 and 405 of the matching layer.
http::Response NoRoute(const Exchange& exchange);
http::Response NoMethod(const Exchange& exchange);
// 406 when none of the Accept clauses can be had from a fixed document of these types; empty when it is fine.
std::optional<http::Response> CheckAccept(const Exchange& exchange, std::span<const std::string_view> produces);

}  // namespace keelson::endpoints
