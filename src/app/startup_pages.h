// Memory that only the start, or work that is over, needed.
#pragma once

namespace keelson::app {

// Gives back the pages of code and constants of the program and its libraries that are mapped now: most belong to what
// ran once. They stay in the system's page cache, and what is still used comes back from there in microseconds. Also
// gives back what the allocator keeps free. From any thread, at any time.
void ReleaseStartupPages();

// Gives back the free end of the calling thread's malloc arena: malloc_trim() does that for the main arena only, and a
// thread that has worked on large objects keeps megabytes there.
void ReleaseThreadHeap();

}  // namespace keelson::app
