// Every active namespace has a config map kube-root-ca.crt with the authority of the server's certificate (upstream's
// root CA cert publisher).
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewRootCAPublisher(ControllerContext context);

}  // namespace keelson::controllers
