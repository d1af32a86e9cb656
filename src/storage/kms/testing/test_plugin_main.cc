// usage: kms_test_plugin SOCKET KEY_ID. Serves until standard input ends; each line there is a new key id.
#include <cstdio>
#include <iostream>
#include <string>

#include "storage/kms/testing/test_plugin.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: kms_test_plugin SOCKET KEY_ID\n", stderr);
    return 2;
  }
  keelson::storage::kms::TestPlugin plugin(argv[1], argv[2]);
  std::puts("serving");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) plugin.SetKeyID(line);
  return 0;
}
