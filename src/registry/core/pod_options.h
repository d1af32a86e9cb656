// Options of pod validation (upstream's PodValidationOptions): the request's kind, feature gates, and features that the
// old object already uses.
#pragma once

#include "registry/strategy.h"
#include "validation/net.h"

namespace keelson::registry::core {

struct PodOptions {
  bool is_pod = false;  // a pod, not a template
  bool allow_privileged = false;
  validation::AddressRules address_rules = validation::AddressRules::kStrict;
  // Rules that came later than objects which break them: off when the old object breaks them.
  bool allow_invalid_pod_deletion_cost = false;
  bool allow_invalid_label_value_in_selector = false;
  bool allow_invalid_label_value_in_required_node_affinity = false;
  bool allow_invalid_spread_selector = false;
  bool allow_repeated_match_label_keys = false;
  bool allow_indivisible_huge_pages = false;
  bool allow_non_local_token_path = false;
  bool allow_host_sysctls = false;
  bool allow_host_network_with_user_namespace = false;
  bool allow_volume_devices_with_user_namespace = false;
  bool allow_restart_container_in_init = false;
  bool allow_comparison_tolerations = false;
  bool allow_selinux_mount_option = false;
};

// `old_spec` and `old_metadata` are null on create.
PodOptions PodOptionsFor(const Call& call, bool is_pod, Value old_spec, Value old_metadata);

}  // namespace keelson::registry::core
