// metadata.managedFields: who set what.
#include "endpoints/handlers.h"

namespace keelson::endpoints {

meta::Result<void> TrackUpdate(Exchange&, const Scope&, Value, Value, std::string_view) { return {}; }

}  // namespace keelson::endpoints
