// URLs as Go's net/url parses and writes them.
#pragma once

#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::base {

struct URL {
  std::string scheme;  // lower case
  bool has_user = false;
  std::string user;  // decoded
  bool has_password = false;
  std::string password;
  std::string host;  // host[:port] as written, an IPv6 address in brackets
  std::string path;  // decoded
  std::string raw_query;
  std::string fragment;

  std::string Hostname() const;       // without port and brackets
  std::string Port() const;           // "" when there is none
  std::string EscapedPath() const;    // of the decoded path
  std::string RequestTarget() const;  // escaped path ("/" when empty) and query
  std::string ToString() const;       // URL.String(), the password in clear
};

// Go's url.Parse; the error is its text with the prefix `parse "...": `.
Outcome<URL, std::string> ParseURL(std::string_view text);

}  // namespace keelson::base
