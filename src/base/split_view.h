// The parts of a text between separators, as base::Split() has them, one after the other and without a vector:
//   for (const std::string_view part : base::SplitView(text, ',')) ...
// The text must outlive this.
#pragma once

#include <string_view>

namespace keelson::base {

class SplitView {
 public:
  SplitView(std::string_view text, char separator) : text_(text), separator_(separator) {}

  struct End {};
  class Iterator {
   public:
    Iterator(std::string_view text, char separator) : rest_(text), separator_(separator) { Cut(); }
    std::string_view operator*() const { return part_; }
    Iterator& operator++() {
      if (last_) {
        over_ = true;
      } else {
        Cut();
      }
      return *this;
    }
    bool operator!=(End) const { return !over_; }

   private:
    void Cut() {
      const auto end = rest_.find(separator_);
      part_ = rest_.substr(0, end);
      last_ = end == std::string_view::npos;
      if (!last_) rest_.remove_prefix(end + 1);
    }

    std::string_view rest_, part_;
    char separator_;
    bool last_ = false, over_ = false;
  };
  Iterator begin() const { return {text_, separator_}; }
  End end() const { return {}; }

 private:
  std::string_view text_;
  char separator_;
};

}  // namespace keelson::base
