// certificates.k8s.io: CertificateSigningRequest with its approval.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> CertificatesStrategies();
}
