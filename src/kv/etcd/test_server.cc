#include "kv/etcd/test_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <thread>

namespace keelson::kv::etcd {
namespace {

constexpr int kStartTries = 5;
constexpr auto kStartPatience = std::chrono::seconds(60);

bool Knows(const std::string& binary, const std::string& flag) {
  std::FILE* help = ::popen((binary + " --help 2>&1").c_str(), "r");
  if (help == nullptr) return false;
  std::string text;
  char part[4096];
  for (std::size_t size = 0; (size = std::fread(part, 1, sizeof(part), help)) > 0;) text.append(part, size);
  ::pclose(help);
  return text.find(flag) != std::string::npos;
}

int BoundSocket(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
  ::close(fd);
  return -1;
}

// Ports that were free a moment ago: etcd needs its own and its peers' before it starts. Below those that the
// kernel gives to outgoing connections, so that none of the many that tests make takes one in between.
std::vector<int> FreePorts(int count) {
  std::vector<int> ports;
  std::vector<int> sockets;
  std::mt19937 random(std::random_device{}());
  while (ports.size() < static_cast<std::size_t>(count)) {
    const int port = std::uniform_int_distribution<int>(12'000, 32'000)(random);
    const int fd = BoundSocket(port);
    if (fd < 0) continue;
    ports.push_back(port);
    sockets.push_back(fd);
  }
  for (const int fd : sockets) ::close(fd);
  return ports;
}

std::string Loopback(int port, bool tls = false) {
  return (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port);
}

}  // namespace

std::string TestServer::FindBinary() {
  if (const char* given = ::getenv("KEELSON_ETCD")) return given;
  std::string cache;
  if (const char* xdg = ::getenv("XDG_CACHE_HOME")) {
    cache = xdg;
  } else if (const char* home = ::getenv("HOME")) {
    cache = std::string(home) + "/.cache";
  }
  if (!cache.empty() && ::access((cache + "/keelson/bin/etcd").c_str(), X_OK) == 0) return cache + "/keelson/bin/etcd";
  std::string path = ::getenv("PATH") != nullptr ? ::getenv("PATH") : "";
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string candidate = path.substr(at, end - at) + "/etcd";
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return "";
}

std::string TestServer::FindTool(const std::string& name) {
  const std::string binary = FindBinary();
  if (binary.empty()) return "";
  const std::string tool = std::filesystem::path(binary).parent_path() / name;
  return ::access(tool.c_str(), X_OK) == 0 ? tool : "";
}

std::unique_ptr<TestServer> TestServer::Start(int members, const TestCertificates* certificates) {
  for (int tries = 0; tries < kStartTries; ++tries) {
    std::unique_ptr<TestServer> server(new TestServer());
    server->binary_ = FindBinary();
    if (server->binary_.empty()) return nullptr;
    if (server->TryStart(members, certificates)) return server;
  }
  return nullptr;
}

bool TestServer::TryStart(int members, const TestCertificates* certificates) {
  std::string pattern = (std::filesystem::temp_directory_path() / "keelson-etcd-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return false;
  dir_ = pattern;
  const std::vector<int> ports = FreePorts(2 * members);
  const bool unsynced = Knows(binary_, "--unsafe-no-fsync");  // Debian's 3.4 does not.
  std::string cluster;
  for (int i = 0; i < members; ++i) {
    cluster += (i > 0 ? "," : "") + std::string("m") + std::to_string(i) + "=" +
               Loopback(ports[static_cast<std::size_t>(2 * i + 1)]);
  }
  for (int i = 0; i < members; ++i) {
    ports_.push_back(ports[static_cast<std::size_t>(2 * i)]);
    const std::string client = Loopback(ports_.back(), certificates != nullptr);
    const std::string peer = Loopback(ports[static_cast<std::size_t>(2 * i + 1)]);
    const std::string name = "m" + std::to_string(i);
    endpoints_.push_back(client);
    arguments_.push_back({binary_, "--name=" + name, "--data-dir=" + dir_ + "/" + name,
                          "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
                          "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
                          "--initial-cluster=" + cluster, "--log-level=error"});
    if (unsynced) arguments_.back().push_back("--unsafe-no-fsync");
    if (certificates != nullptr) {
      arguments_.back().push_back("--cert-file=" + certificates->cert_file("server"));
      arguments_.back().push_back("--key-file=" + certificates->key_file("server"));
      arguments_.back().push_back("--trusted-ca-file=" + certificates->ca_file());
      arguments_.back().push_back("--client-cert-auth");
    }
    pids_.push_back(-1);
    Spawn(static_cast<std::size_t>(i));
  }
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  for (std::size_t i = 0; i < pids_.size();) {
    if (Answers(i)) {
      ++i;
    } else if (::waitpid(pids_[i], nullptr, WNOHANG) == pids_[i]) {
      pids_[i] = -1;  // It ended: one of its ports was taken, say.
      return false;
    } else if (std::chrono::steady_clock::now() > deadline) {
      return false;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return true;
}

bool TestServer::Answers(std::size_t member) const {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(ports_[member]));
  const bool open = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return open;
}

void TestServer::Spawn(std::size_t member) {
  std::vector<char*> arguments;
  for (std::string& argument : arguments_[member]) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const std::string log = dir_ + "/m" + std::to_string(member) + ".log";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  pids_[member] = pid;
}

void TestServer::Kill(std::size_t member) {
  if (pids_[member] <= 0) return;
  ::kill(pids_[member], SIGKILL);
  ::waitpid(pids_[member], nullptr, 0);
  pids_[member] = -1;
}

void TestServer::Restart(std::size_t member) {
  Kill(member);
  Spawn(member);
}

TestServer::~TestServer() {
  for (std::size_t i = 0; i < pids_.size(); ++i) Kill(i);
  std::error_code error;
  if (!dir_.empty()) std::filesystem::remove_all(dir_, error);
}

}  // namespace keelson::kv::etcd
