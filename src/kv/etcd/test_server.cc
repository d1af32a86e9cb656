#include "kv/etcd/test_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace keelson::kv::etcd {
namespace {

// Ports that were free a moment ago: etcd must know its own and its peers' before it starts.
std::vector<int> FreePorts(int count) {
  std::vector<int> ports;
  std::vector<int> sockets;
  for (int i = 0; i < count; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) continue;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    ports.push_back(ntohs(address.sin_port));
    sockets.push_back(fd);
  }
  for (const int fd : sockets) ::close(fd);
  return ports;
}

std::string Loopback(int port) { return "http://127.0.0.1:" + std::to_string(port); }

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

std::unique_ptr<TestServer> TestServer::Start(int members) {
  std::unique_ptr<TestServer> server(new TestServer());
  server->binary_ = FindBinary();
  if (server->binary_.empty()) return nullptr;
  std::string pattern = (std::filesystem::temp_directory_path() / "keelson-etcd-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return nullptr;
  server->dir_ = pattern;
  const std::vector<int> ports = FreePorts(2 * members);
  if (ports.size() != static_cast<std::size_t>(2 * members)) return nullptr;
  std::string cluster;
  for (int i = 0; i < members; ++i) {
    cluster += (i > 0 ? "," : "") + std::string("m") + std::to_string(i) + "=" +
               Loopback(ports[static_cast<std::size_t>(2 * i + 1)]);
  }
  for (int i = 0; i < members; ++i) {
    const std::string client = Loopback(ports[static_cast<std::size_t>(2 * i)]);
    const std::string peer = Loopback(ports[static_cast<std::size_t>(2 * i + 1)]);
    const std::string name = "m" + std::to_string(i);
    server->endpoints_.push_back(client);
    server->arguments_.push_back({server->binary_, "--name=" + name, "--data-dir=" + server->dir_ + "/" + name,
                                  "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
                                  "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
                                  "--initial-cluster=" + cluster, "--unsafe-no-fsync", "--log-level=error"});
    server->pids_.push_back(-1);
    server->Spawn(static_cast<std::size_t>(i));
  }
  return server;
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
