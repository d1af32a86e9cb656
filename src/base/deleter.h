// Handles of C libraries: std::unique_ptr<X509, Deleter<X509_free>>.
#pragma once

namespace keelson::base {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};

}  // namespace keelson::base
