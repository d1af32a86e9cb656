#include "app/startup_pages.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

namespace keelson::app {
namespace {

// Segments that may not be written were never relocated, so that every page of them is as it is in the file.
int ReleaseObject(dl_phdr_info* info, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (info->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t end = (info->dlpi_addr + segment.p_vaddr + segment.p_filesz) & ~(page - 1);
    if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void ReleaseStartupPages() {
  ::malloc_trim(0);
  ::dl_iterate_phdr(ReleaseObject, nullptr);
}

// The end of an arena cannot be asked for. Blocks that the thread allocates until it has had all free memory lie in it;
// their pages are given back while they are allocated.
void ReleaseThreadHeap() {
  constexpr std::size_t kBlockBytes = std::size_t{96} * 1024;  // below M_MMAP_THRESHOLD: from the arena
  constexpr std::size_t kBlocksMax = 512;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::array<void*, kBlocksMax> blocks{};
  const std::size_t count = std::min(kBlocksMax, ::mallinfo2().fordblks / kBlockBytes + 1);
  for (std::size_t i = 0; i < count; ++i) {
    blocks[i] = std::malloc(kBlockBytes);
    if (blocks[i] == nullptr) break;
    const auto address = reinterpret_cast<std::uintptr_t>(blocks[i]);
    const std::uintptr_t begin = (address + page - 1) & ~(page - 1), end = (address + kBlockBytes) & ~(page - 1);
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  for (void* const block : blocks) std::free(block);
}

}  // namespace keelson::app
