#include "request/request_info.h"

#include <gtest/gtest.h>

namespace keelson::request {
namespace {

TEST(RequestInfo, Resolves) {
  struct Case {
    const char* method;
    const char* path;
    const char* query;
    bool resource;
    const char* verb;
    const char* group;
    const char* name_space;
    const char* kind;
    const char* subresource;
    const char* name;
  };
  constexpr Case kCases[] = {
      {"GET", "/api/v1/namespaces/default/pods/p", "", true, "get", "", "default", "pods", "", "p"},
      {"GET", "/api/v1/pods", "", true, "list", "", "", "pods", "", ""},
      {"GET", "/api/v1/pods", "watch=1", true, "watch", "", "", "pods", "", ""},
      {"GET", "/api/v1/pods", "watch", true, "watch", "", "", "pods", "", ""},
      {"GET", "/api/v1/pods", "watch=False", true, "list", "", "", "pods", "", ""},
      {"GET", "/api/v1/pods", "fieldSelector=metadata.name%3Dx", true, "list", "", "", "pods", "", "x"},
      {"GET", "/api/v1/watch/namespaces/a/pods/p", "", true, "watch", "", "a", "pods", "", "p"},
      {"DELETE", "/apis/apps/v1/namespaces/a/deployments", "", true, "deletecollection", "apps", "a", "deployments", "",
       ""},
      {"PUT", "/apis/apps/v1/namespaces/a/deployments/d/scale", "", true, "update", "apps", "a", "deployments", "scale",
       "d"},
      {"GET", "/api/v1/namespaces/x", "", true, "get", "", "x", "namespaces", "", "x"},
      {"PUT", "/api/v1/namespaces/x/status", "", true, "update", "", "x", "namespaces", "status", "x"},
      {"GET", "/apis/apps/v1", "", false, "get", "", "", "", "", ""},
      {"GET", "/healthz", "", false, "get", "", "", "", "", ""},
      {"POST", "/version", "", false, "post", "", "", "", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/p/log", "", true, "get", "", "a", "pods", "log", "p"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.method) + " " + c.path + "?" + c.query);
    const auto info = NewRequestInfo(c.method, c.path, base::Query(c.query));
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->is_resource_request, c.resource);
    EXPECT_EQ(info->verb, c.verb);
    EXPECT_EQ(info->api_group, c.group);
    EXPECT_EQ(info->name_space, c.name_space);
    EXPECT_EQ(info->resource, c.kind);
    EXPECT_EQ(info->subresource, c.subresource);
    EXPECT_EQ(info->name, c.name);
  }
}

TEST(RequestInfo, PrefixesBeforeTheResource) {
  struct Case {
    const char* path;
    bool namespaced;
    bool prefixed;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {"/api/v1/pods", false, false, {"pods"}},
      {"/api/v1/namespaces/n/pods/p/log/x/", true, false, {"pods", "p", "log", "x"}},
      {"/api/v1/namespaces/n", false, false, {"namespaces", "n"}},
      {"/api/v1/namespaces/n/finalize", false, false, {"namespaces", "n", "finalize"}},
      {"/api/v1/namespaces//pods", true, false, {"pods"}},
      {"/api/v1/watch/namespaces/n/pods", true, true, {"pods"}},
      {"/api/v1/proxy/nodes/n", false, true, {"nodes", "n"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    const auto info = NewRequestInfo("GET", c.path, base::Query(""));
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->namespaced, c.namespaced);
    EXPECT_EQ(info->prefixed, c.prefixed);
    EXPECT_EQ(info->part_count, c.parts.size());
    EXPECT_EQ(info->resource, c.parts[0]);
    EXPECT_EQ(info->name, c.parts.size() > 1 ? c.parts[1] : "");
    EXPECT_EQ(info->named, c.parts.size() > 1);
    EXPECT_EQ(info->rest, c.parts.size() > 3 ? c.parts[3] : "");
  }
}

TEST(RequestInfo, NameOfAFieldSelectorIsNotThePathName) {
  for (const char* path : {"/api/v1/namespaces/n/pods", "/api/v1/namespaces/n/pods//status"}) {
    const auto info = NewRequestInfo("GET", path, base::Query("fieldSelector=metadata.name%3Dy"));
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->verb, "list");
    EXPECT_EQ(info->name, "y");
    EXPECT_FALSE(info->named);
  }
}

TEST(RequestInfo, WatchPrefixNeedsMore) { EXPECT_FALSE(NewRequestInfo("GET", "/api/v1/watch", base::Query("")).ok()); }

TEST(RequestInfo, LongRunning) {
  EXPECT_TRUE(NewRequestInfo("GET", "/api/v1/pods", base::Query("watch=1"))->IsLongRunning());
  EXPECT_TRUE(NewRequestInfo("GET", "/api/v1/namespaces/a/pods/p/log", base::Query(""))->IsLongRunning());
  EXPECT_FALSE(NewRequestInfo("GET", "/api/v1/pods", base::Query(""))->IsLongRunning());
  EXPECT_TRUE(NewRequestInfo("GET", "/debug/pprof/profile", base::Query(""))->IsLongRunning());
  EXPECT_TRUE(NewRequestInfo("GET", "/console/api/audit", base::Query(""))->IsLongRunning());
  EXPECT_FALSE(NewRequestInfo("GET", "/console/main.js", base::Query(""))->IsLongRunning());
}

}  // namespace
}  // namespace keelson::request
