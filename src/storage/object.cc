#include "storage/object.h"

#include <mutex>
#include <thread>

#include "base/check.h"
#include "storage/encoded_forms.h"

namespace keelson::storage {

constexpr std::uint8_t kChances = 4;  // of a form that was used again

// The forms of one object and its place in the circle that the budget's hand walks.
struct Object::Forms {
  std::atomic<bool> lock{false};
  std::atomic<std::uint8_t> chances{0};  // how often the hand may still pass before it is dropped
  SharedBytes bytes[kFormsMax];          // guarded by `lock`
  std::size_t size = 0;                  // guarded by `lock`; what the budget counts
  Forms* previous = nullptr;             // guarded by the budget's mutex
  Forms* next = nullptr;

  // Held for a few instructions; the longest is freeing a buffer, which is done outside.
  void Lock() {
    for (int spins = 0; lock.exchange(true, std::memory_order_acquire); ++spins) {
      if (spins > 64) std::this_thread::yield();
    }
  }
  void Unlock() { lock.store(false, std::memory_order_release); }
};

std::string_view Attributes::Field(std::string_view field) const {
  for (const auto& [key, value] : fields) {
    if (key == field) return value;
  }
  return {};
}

Object::Object(std::string key, std::uint64_t resource_version, SharedBytes stored, Attributes attributes,
               EncodedForms* forms, bool stale)
    : key_(std::move(key)),
      resource_version_(resource_version),
      stored_(std::move(stored)),
      attributes_(std::move(attributes)),
      budget_(forms),
      stale_(stale) {
  if (budget_ != nullptr) budget_->stored_bytes_.fetch_add(stored_.size(), std::memory_order_relaxed);
}

Object::~Object() {
  if (budget_ != nullptr) budget_->stored_bytes_.fetch_sub(stored_.size(), std::memory_order_relaxed);
  Forms* forms = forms_.load(std::memory_order_acquire);
  if (forms == nullptr) return;
  if (budget_ != nullptr) budget_->Remove(forms);
  delete forms;
}

SharedBytes Object::GetForm(std::size_t form) const {
  KS_CHECK(form < kFormsMax);
  SharedBytes found;
  if (Forms* forms = forms_.load(std::memory_order_acquire); forms != nullptr) {
    forms->Lock();
    found = forms->bytes[form];
    forms->Unlock();
    if (!found.empty()) forms->chances.store(kChances, std::memory_order_relaxed);
  }
  if (budget_ != nullptr) (found.empty() ? budget_->misses_ : budget_->hits_).fetch_add(1, std::memory_order_relaxed);
  return found;
}

void Object::SetForm(std::size_t form, SharedBytes bytes) const {
  KS_CHECK(form < kFormsMax);
  if (budget_ != nullptr && bytes.size() > budget_->bytes_max()) return;
  Forms* forms = forms_.load(std::memory_order_acquire);
  if (forms == nullptr) {
    auto* made = new Forms;
    if (forms_.compare_exchange_strong(forms, made, std::memory_order_acq_rel)) {
      forms = made;
    } else {
      delete made;
    }
  }
  if (budget_ != nullptr) {
    budget_->Added(forms, form, std::move(bytes));
    return;
  }
  forms->Lock();
  forms->size += bytes.size() - forms->bytes[form].size();
  std::swap(forms->bytes[form], bytes);
  forms->Unlock();
}

std::size_t Object::MemoryBytes() const {
  return sizeof(Object) + key_.capacity() + stored_.size() + attributes_.extra.size() +
         (attributes_.labels.capacity() + attributes_.fields.capacity()) * sizeof(attributes_.labels[0]);
}

EncodedForms::~EncodedForms() { KS_CHECK(hand_ == nullptr); }

void EncodedForms::set_bytes_max(std::size_t bytes_max) {
  std::lock_guard lock(mutex_);
  bounds_max_.store(bytes_max, std::memory_order_relaxed);
  bounds_min_.store(bytes_max, std::memory_order_relaxed);
  EvictLocked();
}

void EncodedForms::Added(Object::Forms* forms, std::size_t form, SharedBytes bytes) {
  std::lock_guard lock(mutex_);
  if (!MakeRoomLocked(bytes.size())) return;
  forms->Lock();
  bytes_ += bytes.size() - forms->bytes[form].size();
  forms->size += bytes.size() - forms->bytes[form].size();
  std::swap(forms->bytes[form], bytes);
  forms->Unlock();
  forms->chances.store(1, std::memory_order_relaxed);
  if (forms->next == nullptr) {  // Enters behind the hand: the last to be looked at.
    if (hand_ == nullptr) {
      forms->previous = forms->next = forms;
      hand_ = forms;
    } else {
      forms->next = hand_;
      forms->previous = hand_->previous;
      hand_->previous->next = forms;
      hand_->previous = forms;
    }
  }
}

// The first form in use ends the search, and the newcomer is not kept: LISTs larger than the budget would otherwise
// evict, just before they reach them, the forms that the next such LIST needs first. The hand moves by one for each
// newcomer, so several LISTs side by side must miss a few times as many forms as there are before one in use goes.
bool EncodedForms::MakeRoomLocked(std::size_t bytes) {
  const std::size_t bytes_max = this->bytes_max();
  while (bytes_.load(std::memory_order_relaxed) + bytes > bytes_max) {
    if (hand_ == nullptr || !LookLocked()) return false;
  }
  return true;
}

void EncodedForms::EvictLocked() {
  while (bytes() > bytes_max() && hand_ != nullptr) LookLocked();
}

bool EncodedForms::LookLocked() {
  Object::Forms* forms = hand_;
  hand_ = forms->next;
  const std::uint8_t chances = forms->chances.load(std::memory_order_relaxed);
  if (chances > 0) {
    forms->chances.store(chances - 1, std::memory_order_relaxed);
    return false;
  }
  SharedBytes old[Object::kFormsMax];
  forms->Lock();
  for (std::size_t i = 0; i < Object::kFormsMax; ++i) {
    if (!forms->bytes[i].empty()) dropped_.fetch_add(1, std::memory_order_relaxed);
    std::swap(old[i], forms->bytes[i]);
  }
  bytes_ -= std::exchange(forms->size, 0);
  forms->Unlock();
  UnlinkLocked(forms);
  return true;
}

void EncodedForms::UnlinkLocked(Object::Forms* forms) {
  if (forms->next == nullptr) return;
  if (forms->next == forms) {
    hand_ = nullptr;
  } else {
    if (hand_ == forms) hand_ = forms->next;
    forms->previous->next = forms->next;
    forms->next->previous = forms->previous;
  }
  forms->next = forms->previous = nullptr;
}

void EncodedForms::Remove(Object::Forms* forms) { Drop(forms); }

std::size_t EncodedForms::Drop(Object::Forms* forms) {
  SharedBytes old[Object::kFormsMax];
  std::lock_guard lock(mutex_);
  forms->Lock();
  for (std::size_t i = 0; i < Object::kFormsMax; ++i) std::swap(old[i], forms->bytes[i]);
  const std::size_t size = std::exchange(forms->size, 0);
  bytes_ -= size;
  forms->Unlock();
  UnlinkLocked(forms);
  return size;
}

}  // namespace keelson::storage
