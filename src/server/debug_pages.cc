#include "server/debug_pages.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "async/deadlines.h"
#include "async/event.h"
#include "base/strings.h"
#include "endpoints/page.h"
#include "telemetry/cpu_profile.h"
#include "telemetry/log.h"

namespace keelson::server {
namespace {

using endpoints::ErrorPage;
using endpoints::ExchangePtr;
using endpoints::Page;

constexpr std::string_view kRoot = "/debug/pprof/";
constexpr int kProfileSeconds = 30;
constexpr int kProfileSecondsMax = 300;
constexpr std::size_t kFlagBytesMax = 1024;

constexpr std::string_view kIndex = R"(<html>
<head>
<title>/debug/pprof/</title>
</head>
<body>
/debug/pprof/
<ul>
<li><a href="profile?seconds=30">profile</a>: CPU profile in the format of pprof. The parameter seconds says for how long.
Resolve it with the binary: pprof keelson profile</li>
<li><a href="threads">threads</a>: the threads of the process, their state and the CPU time they used</li>
<li><a href="malloc">malloc</a>: the allocator's account of the heap, as XML (malloc_info)</li>
<li><a href="symbol">symbol</a>: tells pprof that addresses are resolved with the binary</li>
</ul>
</body>
</html>
)";

Page NewPage(std::string_view media_type, std::string_view body, int status = 200) {
  Page page{.status = status, .media_type = std::string(media_type), .body = base::SharedBytes(body)};
  page.headers.Add("X-Content-Type-Options", "nosniff");
  return page;
}

Page UnknownProfile() {
  Page page = ErrorPage(404, "Unknown profile");
  page.headers.Add("X-Go-Pprof", "1");
  return page;
}

// One line a thread: its number, name, state and CPU seconds.
std::string Threads() {
  std::string out = "TID      STATE  CPU SECONDS  NAME\n";
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return out;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/stat");
    std::string stat((std::istreambuf_iterator<char>(file)), {});
    const auto open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;  // it has just ended
    const auto fields = base::Split(std::string_view(stat).substr(close + 2), ' ');
    if (fields.size() < 13) continue;
    const double used =
        (std::atof(std::string(fields[11]).c_str()) + std::atof(std::string(fields[12]).c_str())) / ticks;
    char line[128];
    std::snprintf(line, sizeof(line), "%-8s %-6.*s %11.2f  %s\n", entry->d_name, static_cast<int>(fields[0].size()),
                  fields[0].data(), used, stat.substr(open + 1, close - open - 1).c_str());
    out += line;
  }
  closedir(tasks);
  return out;
}

std::string MallocInfo() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return {};
  malloc_info(0, stream);
  std::fclose(stream);
  std::string out(text, size);
  std::free(text);
  return out;
}

Awaitable<meta::Result<Page>> CPUProfile(ExchangePtr exchange) {
  int seconds = 0;
  const std::string_view asked = exchange->query.Get("seconds");
  std::from_chars(asked.data(), asked.data() + asked.size(), seconds);
  if (seconds <= 0) seconds = kProfileSeconds;
  if (seconds > kProfileSecondsMax) {
    co_return ErrorPage(400, "profile duration exceeds the limit of " + std::to_string(kProfileSecondsMax) + " s");
  }
  auto profile = telemetry::CPUProfile::Start();
  if (!profile) {
    co_return ErrorPage(500, "Could not enable CPU profiling: cpu profiling already in use");
  }
  auto over = std::make_shared<async::Event>();
  if (exchange->http.on_close) exchange->http.on_close([over] { over->Set(); });
  const auto at = base::Clock::Real().Monotonic() + std::chrono::seconds(seconds);
  const auto entry = async::Deadlines::Global().Add(at, [over] { over->Set(); });
  co_await over->Wait();
  Page page{.media_type = "application/octet-stream",
            .body = base::SharedBytes::FromString(profile->Finish()),
            .gzip = Page::Gzip::kFile};  // as pprof wants it
  page.headers.Add("Content-Disposition", "attachment; filename=\"profile\"");
  page.headers.Add("X-Content-Type-Options", "nosniff");
  co_return page;
}

Awaitable<meta::Result<Page>> SetVerbosity(ExchangePtr exchange) {
  const auto answer = [](int code, const std::string& text) { return NewPage("text/plain", text + "\n", code); };
  if (exchange->http.method != "PUT") co_return answer(406, "unsupported http method");
  auto body = co_await exchange->http.body->ReadAll(kFlagBytesMax);
  if (!body.ok()) co_return answer(400, "error reading request body");
  const std::string text(body->view());
  std::int32_t level = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (error != std::errc() || end != text.data() + text.size()) {
    const char* why = error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax";
    co_return answer(400, "error setting flag: failed set klog.logging.verbosity " + text +
                              ": strconv.ParseInt: parsing " + base::GoQuote(text) + ": " + why);
  }
  log::SetVerbosity(level);
  co_return answer(200, "successfully set klog.logging.verbosity to " + text);
}

Awaitable<meta::Result<Page>> Profile(ExchangePtr exchange) {
  const std::string_view name = std::string_view(exchange->http.path).substr(kRoot.size());
  if (name.empty()) co_return NewPage("text/html; charset=utf-8", kIndex);
  if (name == "profile") co_return co_await CPUProfile(exchange);
  if (name == "symbol") co_return NewPage("text/plain; charset=utf-8", "num_symbols: 0\n");
  if (name == "threads") co_return NewPage("text/plain; charset=utf-8", Threads());
  if (name == "malloc") co_return NewPage("text/xml; charset=utf-8", MallocInfo());
  co_return UnknownProfile();
}

}  // namespace

void InstallDebugPages(PathMux& mux) {
  mux.Unlisted("/debug/pprof", endpoints::ServePage([](const endpoints::Exchange&) -> meta::Result<Page> {
                 Page page{.status = 302,
                           .media_type = "text/html; charset=utf-8",
                           .body = base::SharedBytes::Static("<a href=\"/debug/pprof/\">Found</a>.\n\n")};
                 page.headers.Add("Location", kRoot);
                 return page;
               }));
  mux.UnlistedPrefix(std::string(kRoot), endpoints::ServePageTask(Profile));
  mux.Unlisted("/debug/flags/v", endpoints::ServePageTask(SetVerbosity));
}

}  // namespace keelson::server
