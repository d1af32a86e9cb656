// One thread and one io_context per core. A connection is given to one of them and stays there, so its state needs no
// lock.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>

namespace keelson::async {

class IOPool {
 public:
  explicit IOPool(std::size_t threads);
  ~IOPool();  // Stop() and join; coroutines that still wait are destroyed, on the thread of the caller

  std::size_t size() const;
  boost::asio::any_io_executor executor(std::size_t index) const;
  boost::asio::any_io_executor Next();  // round robin; from any thread
  void Stop();                          // abandons what is not done

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::async
