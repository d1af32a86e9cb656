// kapi OUTPUT-DIRECTORY API-ROOT FILE...: turns .kapi tables into constant C++ data. FILEs are relative to API-ROOT.
#include <cstdio>

#include "model.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: kapi OUTPUT-DIRECTORY API-ROOT FILE...\n");
    return 2;
  }
  kapi::Model model;
  bool ok = true;
  for (int i = 3; i < argc; ++i) {
    kapi::Parser parser;
    ok = parser.ParseFile(std::string(argv[2]) + "/" + argv[i], std::string("api/") + argv[i], model) && ok;
  }
  return ok && kapi::Resolve(model) && kapi::Emit(model, argv[1]) ? 0 : 1;
}
