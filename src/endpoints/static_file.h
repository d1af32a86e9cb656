// Files that are part of the binary, served to browsers.
#pragma once

#include <string_view>

#include "endpoints/exchange.h"

namespace keelson::endpoints {

struct StaticFile {
  std::string_view bytes;  // live as long as the process
  std::string_view type;   // "text/css; charset=utf-8"
};

// Answers GET with the file and with headers that let a page load nothing from elsewhere, run no script of elsewhere
// and not be framed. The connection stays open also without authentication. Caching is off, so that a page always
// belongs to the running binary.
Handler NewStaticFile(StaticFile file);

}  // namespace keelson::endpoints
