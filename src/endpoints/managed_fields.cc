// metadata.managedFields: who set what.
#include "base/clock.h"
#include "endpoints/handlers.h"
#include "patch/field_manager.h"
#include "registry/store.h"

namespace keelson::endpoints {

std::string_view NowText(base::Arena& arena) { return arena.Copy(registry::FormatTime(base::Clock::Real().Now())); }

void TrackUpdate(Exchange& exchange, const Scope& scope, Value live, Value object, std::string_view manager) {
  if (!scope.field_manager) return;
  base::Arena& arena = exchange.context.arena;
  scope.field_manager->Update(arena, live, object, arena.Copy(manager), NowText(arena));
}

void KeepManagedFieldsAfterAdmission(Exchange& exchange, const Scope& scope, Value object, Value before) {
  if (!scope.field_manager || !scope.admission) return;
  const Value after = object.Get("metadata", "managedFields");
  if (after.identity() == before.identity()) return;  // No plugin put another list there; none changes one in place.
  const std::string error = patch::ValidateManagedFields(after);
  if (error.empty()) return;
  exchange.context.warnings.Add(
      ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
      "admission controller; "
      "please fix your requests: " +
      error);
  object["metadata"].Set(exchange.context.arena, "managedFields", before);
}

}  // namespace keelson::endpoints
