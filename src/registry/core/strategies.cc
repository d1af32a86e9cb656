#include "registry/core/strategies.h"

#include "registry/core/config.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kStatus[] = {"status"};
constexpr std::string_view kSpec[] = {"spec"};

constexpr SelectableField kNamespaceFields[] = {{"status.phase", "status.phase"}};
constexpr SelectableField kSecretFields[] = {{"type", "type"}};
constexpr Subresource kNamespaceSubresources[] = {
    {"finalize",
     {.prepare_for_update = PrepareNamespaceForFinalize, .validate_update = ValidateNamespaceFinalizeUpdate, .reset_fields = kStatus}}};

constexpr Strategy kStrategies[] = {
    {.group = "",
     .kind = "ConfigMap",
     .validate = ValidateConfigMap,
     .update = {.validate_update = ValidateConfigMapUpdate},
     .table_row = ConfigMapRow},
    {.group = "",
     .kind = "Secret",
     .defaults = DefaultSecret,
     .validate = ValidateSecret,
     .warnings_on_create = WarnSecret,
     .update = {.prepare_for_update = PrepareSecretForUpdate, .validate_update = ValidateSecretUpdate, .warnings_on_update = WarnSecret},
     .selectable_fields = kSecretFields,
     .table_row = SecretRow},
    {.group = "",
     .kind = "ServiceAccount",
     .return_deleted_object = true,
     .prepare_for_create = PrepareServiceAccount,
     .warnings_on_create = WarnServiceAccount,
     .update = {.prepare_for_update = PrepareServiceAccount,
                .validate_update = ValidateServiceAccountUpdate,
                .warnings_on_update = WarnServiceAccount},
     .table_row = ServiceAccountRow},
    {.group = "",
     .kind = "Namespace",
     .name_rule = validation::NameIsDNSLabel,
     .return_deleted_object = true,
     .has_status = true,
     .defaults = DefaultNamespace,
     .prepare_for_create = PrepareNamespaceForCreate,
     .validate = ValidateNamespace,
     .canonicalize = CanonicalizeNamespace,
     .update = {.prepare_for_update = PrepareNamespaceForUpdate, .validate_update = ValidateNamespaceUpdate, .reset_fields = kStatus},
     .status = {.validate_update = ValidateNamespaceStatusUpdate, .reset_fields = kSpec},
     .subresources = kNamespaceSubresources,
     .selectable_fields = kNamespaceFields,
     .selects_namespace = false,
     .table_row = NamespaceRow},
};

}  // namespace

std::span<const Strategy> CoreStrategies() { return kStrategies; }

}  // namespace keelson::registry::core
