// Process hardening at start: keeps secrets out of core dumps and away from debuggers.
#pragma once

namespace keelson::app {

// Files and folders made from now on are for their owner alone (umask 077). Before anything is written.
void KeepFilesPrivate();

// A crash leaves no image of the memory, which holds keys and tokens, and no other process of the same user may attach.
// --allow-core-dumps leaves both as they were.
void ForbidCoreDumps();

}  // namespace keelson::app
