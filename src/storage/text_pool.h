// Texts in memory, one copy of each content: versions of one definition differ in their status and metadata, and all
// of them, the current one and those of the watch history, have the same spec. A text lives while somebody holds it.
// Thread safety: all members from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "base/shared_bytes.h"

namespace keelson::storage {

class TextPool {
 public:
  using ID = std::uint64_t;  // never 0
  enum class Form : std::uint8_t { kPlain, kCompressed };
  struct Text {
    ID id = 0;
    std::uint32_t size = 0;  // of the plain text
    Form form = Form::kPlain;
    base::SharedBytes bytes;

    bool Write(char* out) const;  // `size` bytes; false when they are damaged
  };
  using TextPtr = std::shared_ptr<const Text>;

  // Of the whole process: bytes that name a text by its ID pass between objects of different stores.
  static TextPool& Global();

  // The text with this content; a new one in that form. Null where it cannot be held so: it does not compress, or its ID
  // is another text's.
  TextPtr Intern(std::string_view plain, Form form);
  // Null: nobody holds such a text. An ID may come from damaged bytes.
  TextPtr Find(ID id) const;

  std::size_t size() const;

 private:
  TextPtr Make(ID id, std::string_view plain, Form form);
  void Forget(const Text* text);

  mutable std::mutex mutex_;
  // The pointer tells a text that is being destroyed from its successor.
  struct Entry {
    const Text* text = nullptr;
    std::weak_ptr<const Text> held;
  };
  std::unordered_map<ID, Entry> texts_;
};

}  // namespace keelson::storage
