// usage: external_jwt_test_signer SOCKET. Serves until standard input ends. Each line there changes what it does and is
// answered with "done": "keys ID[-] ..." (those with a minus are excluded from discovery), "hint SECONDS", "max
// SECONDS", "fail", "hang", "header JSON", "ok" (undoes the last three), "counts" (answered with the numbers of signs
// and fetches).
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "auth/external_jwt/test_signer.h"

using keelson::auth::external_jwt::TestSigner;

namespace {

void Obey(TestSigner::Script& script, std::istringstream& line) {
  std::string word;
  line >> word;
  if (word == "keys") {
    script.keys.clear();
    for (std::string id; line >> id;) {
      const bool excluded = id.ends_with('-');
      if (excluded) id.pop_back();
      script.keys.push_back({.id = id, .excluded = excluded});
    }
  } else if (word == "hint") {
    line >> script.refresh_hint_seconds;
  } else if (word == "max") {
    line >> script.max_token_expiration_seconds;
  } else if (word == "header") {
    std::string json;
    std::getline(line >> std::ws, json);
    script.header = json;
  } else {
    script.failing = word == "fail";
    script.hanging = word == "hang";
    if (word == "ok") script.header.reset();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: external_jwt_test_signer SOCKET\n", stderr);
    return 2;
  }
  TestSigner signer(argv[1]);
  std::puts("serving");
  std::fflush(stdout);
  for (std::string text; std::getline(std::cin, text);) {
    if (text == "counts") {
      std::printf("%llu %llu\n", static_cast<unsigned long long>(signer.signs()),
                  static_cast<unsigned long long>(signer.fetches()));
    } else {
      TestSigner::Script script = signer.script();
      std::istringstream line(text);
      Obey(script, line);
      signer.Set(std::move(script));
      std::puts("done");
    }
    std::fflush(stdout);
  }
  return 0;
}
