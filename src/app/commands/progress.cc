#include "app/commands/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace keelson::app {
namespace {

constexpr std::chrono::milliseconds kRedraw{100}, kFirstLine{2'000}, kLineEvery{5'000};
constexpr std::size_t kBarWidth = 20;
constexpr double kRateAfter = 0.5;  // seconds; before, a rate means nothing

std::string Amount(ProgressUnit unit, std::uint64_t amount) {
  return unit == ProgressUnit::kBytes ? HumanBytes(amount) : std::to_string(amount);
}

std::string Left(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s left", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min left", seconds / 60);
  return fmt::format("{:.1f} h left", seconds / 3600);
}

}  // namespace

std::string HumanBytes(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes);
  for (const char* const unit : {"kB", "MB", "GB"}) {
    amount /= 1000;
    if (amount < 999.95) return fmt::format("{:.1f} {}", amount, unit);
  }
  return fmt::format("{:.1f} TB", amount / 1000);
}

std::string ProgressText(const std::string& title, ProgressUnit unit, std::uint64_t done, std::uint64_t total,
                         std::chrono::duration<double> took) {
  std::string text = title + "  ";
  if (total > 0) {
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(kBarWidth));
    const std::string bar = std::string(filled, '=') + (filled < kBarWidth ? ">" : "");
    text +=
        fmt::format("[{:<{}}] {:3.0f}%  {} of {}", bar, kBarWidth, part * 100, Amount(unit, done), Amount(unit, total));
  } else {
    text += Amount(unit, done);
  }
  if (took.count() < kRateAfter || done == 0) return text;
  const double rate = static_cast<double>(done) / took.count();
  text += ", " + Amount(unit, static_cast<std::uint64_t>(rate)) + "/s";
  if (total > done) text += ", " + Left(static_cast<double>(total - done) / rate);
  return text;
}

Progress::Progress(std::string title, ProgressUnit unit, std::FILE* out)
    : title_(std::move(title)),
      unit_(unit),
      out_(out),
      terminal_(isatty(fileno(out)) != 0),
      next_(begin_ + (terminal_ ? kRedraw : kFirstLine)) {}

Progress::~Progress() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
}

void Progress::Set(std::uint64_t done, std::uint64_t total) {
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? kRedraw : kLineEvery);
  const std::string text = ProgressText(title_, unit_, done, total, now - begin_);
  std::fputs(terminal_ ? ("\r\x1b[K" + text).c_str() : (text + "\n").c_str(), out_);
  std::fflush(out_);
  drawn_ = terminal_;
}

}  // namespace keelson::app
