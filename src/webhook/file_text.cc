#include "webhook/file_text.h"

#include <sys/stat.h>

#include "base/read_file.h"

namespace keelson::webhook {
namespace {

std::string Identity(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {};
  return std::to_string(info.st_ino) + "/" + std::to_string(info.st_size) + "/" + std::to_string(info.st_mtim.tv_sec) +
         "." + std::to_string(info.st_mtim.tv_nsec);
}

}  // namespace

Outcome<std::string, std::string> FileText::Get() {
  using Text = Outcome<std::string, std::string>;
  std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (read_ && now < next_look_) return Text(std::in_place, text_);
  next_look_ = now + kLookInterval;
  const std::string identity = Identity(path_);
  if (read_ && identity == identity_) return Text(std::in_place, text_);
  auto text = base::ReadFile(path_);
  if (!text.ok()) return read_ ? Text(std::in_place, text_) : text;
  read_ = true;
  text_ = *std::move(text);
  identity_ = identity;
  return Text(std::in_place, text_);
}

}  // namespace keelson::webhook
