// registry/informer.h under this folder's name.
#pragma once

#include "registry/informer.h"

namespace keelson::controlplane {

using registry::Informer;
using registry::SharedInformers;

}  // namespace keelson::controlplane
