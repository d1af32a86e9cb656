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
  ~IOPool();  // Join()

  std::size_t size() const;
  boost::asio::any_io_executor executor(std::size_t index) const;
  boost::asio::any_io_executor Next();  // round robin; from any thread
  void Stop();                          // abandons what is not done
  // Stop(), then joins the threads and destroys the coroutines that still wait, on the thread of the caller. The executors
  // accept work until the pool is destroyed; it never runs. For threads that resume coroutines here and end later.
  void Join();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::async
