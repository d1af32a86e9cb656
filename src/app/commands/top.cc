#include "app/commands/top.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iterator>
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

// Without --kubeconfig: $KUBECONFIG, which may name several files, or the default data folder's.
Outcome<webhook::RESTConfig, std::string> LoadConfig(const std::string& kubeconfig) {
  if (!kubeconfig.empty()) return webhook::LoadKubeconfig(kubeconfig);
  const char* const given = std::getenv("KUBECONFIG");
  if (given == nullptr || *given == 0) return webhook::LoadKubeconfig(DataDir::Default() + "/admin.kubeconfig");
  KS_TRY(const webhook::Kubeconfig config, webhook::LoadKubeconfigFiles(given));
  return webhook::RESTConfigFrom(config);
}

class Reader {
 public:
  static Outcome<std::unique_ptr<Reader>, Error> New(const std::string& kubeconfig) {
    auto config = LoadConfig(kubeconfig);
    if (!config.ok()) return Error(config.error(), "name a kubeconfig of the server with --kubeconfig");
    std::unique_ptr<Reader> reader(new Reader);
    config->user_agent = "keelson top";
    auto client = webhook::RESTClient::New(std::make_shared<http::Transport>(reader->io_), *std::move(config));
    if (!client.ok()) return Error(client.error());
    reader->client_ = *std::move(client);
    return reader;
  }

  // Begins a call; answered() becomes readable with its answer, which Finish() returns (and waits for).
  void Start() {
    auto calling = Call(client_, answered());
    answer_ = asio::co_spawn(io_.executor(0), std::move(calling), asio::use_future);
  }
  int answered() const { return answered_.fd; }
  Outcome<MetricsText, Error> Finish() {
    const auto answer = answer_.get();
    eventfd_t count = 0;
    eventfd_read(answered(), &count);
    if (!answer.ok()) return Error(answer.error().message, "is the server running, and may this user get /metrics?");
    return MetricsText::Parse(answer->body.view());
  }

 private:
  using Answer = Outcome<webhook::Response, webhook::Error>;
  struct EventFD {
    EventFD() = default;
    ~EventFD() { close(fd); }
    EventFD(const EventFD&) = delete;
    EventFD& operator=(const EventFD&) = delete;
    int fd = eventfd(0, EFD_CLOEXEC);
  };
  Reader() = default;

  static Awaitable<Answer> Call(std::shared_ptr<webhook::RESTClient> client, int answered) {
    webhook::Request request;
    request.method = "GET";
    request.path = "/metrics";
    Answer answer = co_await client->Call(std::move(request));
    eventfd_write(answered, 1);
    co_return answer;
  }

  EventFD answered_;
  async::IOPool io_{1};
  std::shared_ptr<webhook::RESTClient> client_;
  std::future<Answer> answer_;
};

double AgeOf(const MetricsText& metrics) {
  const double started = metrics.Sum("process_start_time_seconds");
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return started > 0 ? now - started : 1;
}

// Signals that end a program, held back from all threads that are started later, so that the terminal is restored first.
class EndingSignals {
 public:
  EndingSignals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set_, number);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    fd_ = signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~EndingSignals() { close(fd_); }
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  int fd() const { return fd_; }
  // Ends the process by the signal that came, as if it had not been held back; returns when none came.
  void Obey() const {
    signalfd_siginfo info;
    if (read(fd_, &info, sizeof(info)) != sizeof(info)) return;
    raise(static_cast<int>(info.ssi_signo));
    pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
  }

 private:
  sigset_t set_ = {};
  int fd_ = -1;
};

// The alternate screen without a cursor; keys come one by one and unseen. As before once this is destroyed.
class Screen {
 public:
  Screen() {
    keys_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
    if (keys_) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    std::fputs("\x1b[?1049h\x1b[?25l\x1b[HWaiting for the server's answer\n", stdout);
    std::fflush(stdout);
  }
  ~Screen() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
    if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Until `ready` is readable (-1: nothing) or the time is over; true when the user leaves before, by key or signal.
  bool WaitForQuit(const EndingSignals& signals, int ready, std::chrono::milliseconds time) const {
    constexpr char kInterrupt = 3;
    const auto end = Clock::now() + time;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) return false;
      pollfd waited[] = {{ready, POLLIN, 0}, {signals.fd(), POLLIN, 0}, {keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
      if (poll(waited, std::size(waited), static_cast<int>(left.count())) <= 0) continue;
      if (waited[1].revents != 0) return true;
      if (waited[2].revents != 0) {
        char key = 0;
        if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == kInterrupt) return true;
      }
      if (waited[0].revents != 0) return false;
    }
  }

 private:
  bool keys_ = false;
  termios before_{};
};

// 24 rows of 80 columns where the terminal does not know (serial lines, some containers).
winsize ScreenSize() {
  winsize size{};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  if (size.ws_row == 0) size.ws_row = 24;
  if (size.ws_col == 0) size.ws_col = 80;
  return size;
}

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

void ShowUntilQuit(Reader& reader, std::chrono::milliseconds interval, const EndingSignals& signals) {
  constexpr std::chrono::hours kUntilAnswered{24};  // the client has a timeout of its own
  const Screen screen;
  std::optional<MetricsText> before;
  auto read_at = Clock::now();
  do {
    reader.Start();
    if (screen.WaitForQuit(signals, reader.answered(), kUntilAnswered)) return;
    auto now = reader.Finish();
    const auto at = Clock::now();
    const winsize size = ScreenSize();
    if (!now.ok()) {
      std::printf("\x1b[H\x1b[J%s\n", now.error().message().c_str());
    } else {
      const std::size_t rows = size.ws_row > 30 ? (size.ws_row - 22) / 3 : 3;
      const double seconds = before ? std::chrono::duration<double>(at - read_at).count() : AgeOf(*now);
      const std::string page =
          TopView(*now, before ? &*before : nullptr, seconds, {.rows = rows, .columns = size.ws_col});
      std::printf("\x1b[H%s\x1b[J", Fit(page, size).c_str());
      before = *std::move(now);
      read_at = at;
    }
    std::fflush(stdout);
  } while (!screen.WaitForQuit(signals, -1, interval));
}

int Live(const std::string& kubeconfig, std::chrono::milliseconds interval) {
  const EndingSignals signals;
  const auto reader = Reader::New(kubeconfig);
  if (!reader.ok()) return Fail(reader.error());
  ShowUntilQuit(**reader, interval, signals);
  signals.Obey();
  return 0;
}

int Once(const std::string& kubeconfig) {
  const auto reader = Reader::New(kubeconfig);
  if (!reader.ok()) return Fail(reader.error());
  (*reader)->Start();
  const auto metrics = (*reader)->Finish();
  if (!metrics.ok()) return Fail(metrics.error());
  std::fputs(TopView(*metrics, nullptr, AgeOf(*metrics), {.rows = kRowsOnce}).c_str(), stdout);
  return 0;
}

}  // namespace

int RunTop(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  const std::string kubeconfig = TakeFlag(arguments, "kubeconfig");
  const std::string interval_text = TakeFlag(arguments, "interval");
  const bool once = TakeSwitch(arguments, "once") || isatty(STDOUT_FILENO) == 0;
  const auto interval = base::ParseInt64(interval_text.empty() ? "2" : interval_text);
  if (!arguments.empty()) return Fail("cannot use " + base::GoQuote(arguments[0]) + "\n" + kTopUsage);
  if (!interval || *interval < 1 || *interval > 3600) return Fail("--interval must be from 1 to 3600 seconds");
  return once ? Once(kubeconfig) : Live(kubeconfig, std::chrono::seconds(*interval));
}

}  // namespace keelson::app
