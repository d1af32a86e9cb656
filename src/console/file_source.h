// A file as the body of a response.
#pragma once

#include <memory>
#include <string>

#include "async/blocking_pool.h"
#include "base/outcome.h"
#include "http/message.h"

namespace keelson::console {

// Removes the file's name at once: it is gone when it was sent, or when the client went. Reads on the pool.
Outcome<std::unique_ptr<http::BodySource>, std::string> NewFileSource(const std::string& path,
                                                                      std::shared_ptr<async::BlockingPool> pool);

}  // namespace keelson::console
