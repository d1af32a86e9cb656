// .kapi tables: any text is parsed and resolved or refused with a message.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "model.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const int file = ::memfd_create("kapi", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) return 0;
  kapi::Model model;
  kapi::Parser parser;
  if (parser.ParseFile("/proc/self/fd/" + std::to_string(file), "api/fuzz.kapi", model)) kapi::Resolve(model);
  ::close(file);
  return 0;
}
