// Bodies that a peer sent with Content-Encoding: gzip, decompressed as they are read.
#pragma once

#include <memory>

#include "http/message.h"

namespace keelson::http {

// `inner` decompressed; kMalformed when it is not gzip.
std::unique_ptr<BodyReader> NewGunzipReader(std::unique_ptr<BodyReader> inner);

}  // namespace keelson::http
