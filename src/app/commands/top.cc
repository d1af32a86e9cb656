#include "app/commands/top.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "app/commands/output.h"
#include "app/commands/top_view.h"
#include "app/data_dir.h"
#include "app/files.h"
#include "async/io_pool.h"
#include "base/strings.h"
#include "webhook/kubeconfig.h"

namespace keelson::app {

const char* const kTopUsage =
    "usage: keelson top [--kubeconfig FILE] [--once] [--interval SECONDS]\n"
    "Requests by verb and resource, the slowest ones, memory and watches by resource, queues of flow control: live "
    "until\n"
    "q or Ctrl-C; once, since the start of the server, with --once or where the output is no terminal.\n"
    "FILE is by default $KUBECONFIG, else admin.kubeconfig of the default data folder; its user must be allowed to "
    "get\n"
    "/metrics.";

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kRowsOnce = 20;

class Reader {
 public:
  static Outcome<std::unique_ptr<Reader>, Error> New(const std::string& kubeconfig) {
    auto config = webhook::LoadKubeconfig(kubeconfig);
    if (!config.ok()) return Error(config.error(), "name a kubeconfig of the server with --kubeconfig");
    std::unique_ptr<Reader> reader(new Reader);
    config->user_agent = "keelson top";
    auto client = webhook::RESTClient::New(std::make_shared<http::Transport>(reader->io_), *std::move(config));
    if (!client.ok()) return Error(client.error());
    reader->client_ = *std::move(client);
    return reader;
  }
  Outcome<MetricsText, Error> Read() {
    webhook::Request request;
    request.method = "GET";
    request.path = "/metrics";
    auto calling = client_->Call(std::move(request));
    const auto answer = asio::co_spawn(io_.executor(0), std::move(calling), asio::use_future).get();
    if (!answer.ok()) return Error(answer.error().message, "is the server running, and may this user get /metrics?");
    return MetricsText::Parse(answer->body.view());
  }

 private:
  Reader() = default;
  async::IOPool io_{1};
  std::shared_ptr<webhook::RESTClient> client_;
};

double AgeOf(const MetricsText& metrics) {
  const double started = metrics.Sum("process_start_time_seconds");
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return started > 0 ? now - started : 1;
}

// Keys come one by one and unseen until this is destroyed.
class RawTerminal {
 public:
  RawTerminal() {
    on_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!on_) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~RawTerminal() {
    if (on_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  // True when the user wants to leave within the time.
  bool WaitForQuit(std::chrono::milliseconds time) const {
    constexpr char kInterrupt = 3;
    const auto end = Clock::now() + time;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) return false;
      pollfd input{on_ ? STDIN_FILENO : -1, POLLIN, 0};
      if (poll(&input, 1, static_cast<int>(left.count())) <= 0) continue;
      char key = 0;
      if (read(STDIN_FILENO, &key, 1) != 1) return true;
      if (key == 'q' || key == 'Q' || key == kInterrupt) return true;
    }
  }

 private:
  bool on_ = false;
  termios before_{};
};

// As many rows of each of the three tables as the screen holds, and lines no longer than it is wide.
std::string Fit(const std::string& text, const winsize& screen) {
  std::string fitted;
  std::size_t lines = 0;
  for (const auto line : base::Split(text, '\n')) {
    if (++lines >= screen.ws_row) break;
    fitted += std::string(line.substr(0, screen.ws_col)) + "\x1b[K\n";
  }
  return fitted;
}

int Live(Reader& reader, std::chrono::milliseconds interval) {
  const RawTerminal terminal;
  std::optional<MetricsText> before;
  auto read_at = Clock::now();
  std::fputs("\x1b[?1049h\x1b[?25l", stdout);  // alternate screen, cursor hidden
  for (bool leave = false; !leave;) {
    auto now = reader.Read();
    const auto at = Clock::now();
    winsize screen{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen);
    if (!now.ok()) {
      std::printf("\x1b[H\x1b[J%s\n", now.error().message().c_str());
    } else {
      const std::size_t rows = screen.ws_row > 30 ? (screen.ws_row - 22) / 3 : 3;
      const double seconds = before ? std::chrono::duration<double>(at - read_at).count() : AgeOf(*now);
      const std::string page = TopView(*now, before ? &*before : nullptr, seconds, {.rows = rows});
      std::printf("\x1b[H%s\x1b[J", Fit(page, screen).c_str());
      before = *std::move(now);
      read_at = at;
    }
    std::fflush(stdout);
    leave = terminal.WaitForQuit(interval);
  }
  std::fputs("\x1b[?25h\x1b[?1049l", stdout);
  return 0;
}

std::string DefaultKubeconfig() {
  const char* const given = std::getenv("KUBECONFIG");
  return given != nullptr && *given != 0 ? given : DataDir::Default() + "/admin.kubeconfig";
}

}  // namespace

int RunTop(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  std::string kubeconfig = TakeFlag(arguments, "kubeconfig");
  const std::string interval_text = TakeFlag(arguments, "interval");
  const bool once = TakeSwitch(arguments, "once") || isatty(STDOUT_FILENO) == 0;
  const auto interval = base::ParseInt64(interval_text.empty() ? "2" : interval_text);
  if (!arguments.empty()) return Fail("cannot use " + base::GoQuote(arguments[0]) + "\n" + kTopUsage);
  if (!interval || *interval < 1 || *interval > 3600) return Fail("--interval must be from 1 to 3600 seconds");
  if (kubeconfig.empty()) kubeconfig = DefaultKubeconfig();
  const auto reader = Reader::New(kubeconfig);
  if (!reader.ok()) return Fail(reader.error());
  if (!once) return Live(**reader, std::chrono::seconds(*interval));
  const auto metrics = (*reader)->Read();
  if (!metrics.ok()) return Fail(metrics.error());
  std::fputs(TopView(*metrics, nullptr, AgeOf(*metrics), {.rows = kRowsOnce}).c_str(), stdout);
  return 0;
}

}  // namespace keelson::app
