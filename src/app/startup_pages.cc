#include "app/startup_pages.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

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

}  // namespace keelson::app
