// konnectivity_test_server SOCKET: serves on a Unix socket until its standard input ends; then prints how many dials it
// saw.
#include <cstdio>

#include "http/testing/konnectivity_server.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  keelson::http::testing::KonnectivityServer server({.unix_path = argv[1]});
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  std::printf("%d dials\n", server.dials());
  return 0;
}
