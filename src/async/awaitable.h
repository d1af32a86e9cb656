// The coroutine type of the code base. A handler is an Awaitable and never blocks; what blocks runs on a BlockingPool.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace keelson {
namespace asio = boost::asio;

template <class T>
using Awaitable = asio::awaitable<T>;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);  // errors as values, also from Asio
}  // namespace keelson
