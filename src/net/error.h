// Why something on the network did not work, as one readable line.
#pragma once

#include <string>

#include "base/outcome.h"

namespace keelson::net {

struct Error {
  std::string message;
};

template <class T>
using Result = Outcome<T, Error>;

}  // namespace keelson::net
