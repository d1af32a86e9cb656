// Updates of metadata.managedFields in the write handlers.
#include "base/clock.h"
#include "endpoints/handlers.h"
#include "endpoints/version_converter.h"
#include "patch/conversions.h"
#include "patch/field_manager.h"
#include "registry/store.h"

namespace keelson::endpoints {

std::string_view NowText(base::Arena& arena) { return arena.Copy(registry::FormatTime(base::Clock::Real().Now())); }

namespace {

// Calls the scope's conversion webhook for the versions that a field manager needs.
Awaitable<void> ResolveWanted(Exchange& exchange, const Scope& scope, patch::Conversions& conversions) {
  while (!conversions.wanted().empty()) {
    const patch::Conversions::Wanted wanted = conversions.wanted().front();
    auto converted =
        co_await scope.version_converter->Convert(exchange.context.arena, wanted.object, wanted.api_version);
    if (converted.ok()) {
      conversions.Resolve(*converted);
    } else {
      conversions.Resolve(std::string(converted.error().message()));
    }
  }
}

}  // namespace

Awaitable<void> TrackUpdate(Exchange& exchange, const Scope& scope, Value live, Value object, std::string manager) {
  if (!scope.field_manager) co_return;
  base::Arena& arena = exchange.context.arena;
  const std::string_view name = arena.Copy(manager);
  const std::string_view now = NowText(arena);
  // Fields of a converted version are those that the hub keeps: annotations that hold fields of another version
  // come and go with the conversion.
  const bool converted = scope.conversion != nullptr && !scope.own_kind;
  Value seen = object;
  if (converted) {
    const Value managed = object.Get("metadata", "managedFields");
    seen = scope.codec->FromHub(arena, scope, scope.codec->ToHub(arena, scope, object.Clone(arena)));
    if (!managed.is_null()) seen.EnsureMap(arena, "metadata").Set(arena, "managedFields", managed);
  }
  patch::Conversions conversions;
  do {
    co_await ResolveWanted(exchange, scope, conversions);
    scope.field_manager->Update(arena, live, seen, name, now, &conversions);
  } while (!conversions.wanted().empty());
  if (!converted) co_return;
  const Value managed = seen.Get("metadata", "managedFields");
  Value metadata = object.EnsureMap(arena, "metadata");
  if (managed.is_null()) {
    metadata.Erase("managedFields");
  } else {
    metadata.Set(arena, "managedFields", managed);
  }
}

Task<AppliedConfiguration> ApplyConfiguration(Exchange& exchange, const Scope& scope, Value live, Value config,
                                              const meta::WriteOptions& options) {
  base::Arena& arena = exchange.context.arena;
  const std::string_view now = NowText(arena);
  patch::Conversions conversions;
  for (;;) {
    bool unchanged = false;
    auto applied = scope.field_manager->Apply(arena, live, config, options.field_manager, options.force.value_or(false),
                                              now, &unchanged, &conversions);
    if (conversions.wanted().empty()) {
      if (!applied.ok()) co_return applied.error();
      co_return AppliedConfiguration{*applied, unchanged};
    }
    co_await ResolveWanted(exchange, scope, conversions);
  }
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
