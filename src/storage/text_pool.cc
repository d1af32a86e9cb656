#include "storage/text_pool.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/hash.h"
#include "storage/compress.h"

namespace keelson::storage {
namespace {

bool HasContent(const TextPool::Text& text, std::string_view plain) {
  if (text.form == TextPool::Form::kPlain) return text.bytes.view() == plain;
  if (text.size != plain.size()) return false;
  const std::unique_ptr<char[]> content(new char[plain.size()]);
  return text.Write(content.get()) && std::string_view(content.get(), plain.size()) == plain;
}

}  // namespace

bool TextPool::Text::Write(char* out) const {
  if (form == Form::kCompressed) return Decompress(bytes.view(), out, size);
  std::memcpy(out, bytes.data(), size);
  return true;
}

TextPool& TextPool::Global() {
  static TextPool& pool = *new TextPool;  // never destroyed: objects may be, later, when the process ends
  return pool;
}

TextPool::TextPtr TextPool::Find(ID id) const {
  const std::lock_guard lock(mutex_);
  const auto found = texts_.find(id);
  return found == texts_.end() ? nullptr : found->second.held.lock();
}

TextPool::TextPtr TextPool::Make(ID id, std::string_view plain, Form form) {
  if (plain.size() > UINT32_MAX) return nullptr;
  std::string packed;
  if (form == Form::kCompressed && !AppendCompressed(packed, plain)) return nullptr;
  const auto size = static_cast<std::uint32_t>(plain.size());
  base::SharedBytes bytes(form == Form::kCompressed ? packed : plain);
  return {new Text{.id = id, .size = size, .form = form, .bytes = std::move(bytes)}, [this](const Text* text) {
            Forget(text);
            delete text;
          }};
}

TextPool::TextPtr TextPool::Intern(std::string_view plain, Form form) {
  const ID id = std::max<ID>(1, base::SeededHash(plain));
  TextPtr made;
  for (;;) {
    if (TextPtr known = Find(id)) return HasContent(*known, plain) ? known : nullptr;
    if (!made) made = Make(id, plain, form);
    if (!made) return nullptr;
    const std::lock_guard lock(mutex_);
    Entry& entry = texts_[id];
    if (!entry.held.expired()) continue;  // Another thread was faster: everybody has to hold the one that Find() gives.
    entry = {made.get(), made};
    return made;
  }
}

void TextPool::Forget(const Text* text) {
  const std::lock_guard lock(mutex_);
  const auto found = texts_.find(text->id);
  if (found != texts_.end() && found->second.text == text) texts_.erase(found);
}

std::size_t TextPool::size() const {
  const std::lock_guard lock(mutex_);
  return texts_.size();
}

}  // namespace keelson::storage
