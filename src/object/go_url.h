// URLs as Go's net/url parses and writes them (Go 1.26), with its error texts. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::object {

struct GoURL {
  std::string scheme;  // lower case
  std::string opaque;
  bool has_user = false;
  std::string user;  // as Userinfo.String() writes it
  std::string host;  // host or host:port, unescaped
  std::string path;  // unescaped
  std::string raw_path;
  bool omit_host = false;
  bool force_query = false;
  std::string raw_query;
  std::string fragment;
  std::string raw_fragment;

  std::string Hostname() const;
  std::string Port() const;
  std::string EscapedPath() const;
  std::string ToString() const;
};

// url.Parse and url.ParseRequestURI. Errors begin with `parse "<text>": `.
Outcome<GoURL, std::string> ParseURL(std::string_view text);
Outcome<GoURL, std::string> ParseRequestURI(std::string_view text);

}  // namespace keelson::object
