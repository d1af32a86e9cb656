// The parts of the console that belong to this process: one-time links, the audit tail, care of the store.
#pragma once

#include "admission/admission.h"
#include "app/backup/control_socket.h"
#include "app/completed_options.h"
#include "app/data_dir.h"
#include "app/stores.h"
#include "console/console.h"

namespace keelson::app {

// Without --console all parts are null. `folder` is that of the embedded store, else null. All must outlive the parts.
console::ConsoleParts MakeConsoleParts(const CompletedOptions& completed, const DataDir* folder, Stores& stores);

// The names of all namespaces, from the watch cache. `reader` must outlive it.
console::NamespaceNames NamespacesOf(admission::ObjectReader& reader);

// Empty when no links are given out. `completed` must outlive it.
NewConsoleLink ConsoleLinks(const CompletedOptions& completed, const console::ConsoleParts& parts);

}  // namespace keelson::app
