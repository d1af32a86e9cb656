// The kinds of storage that pods and persistent volumes can name. Both are lists of "at most one of these": one table
// each, a row per source with what it requires and, where that does not suffice, a function.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "registry/core/pod_options.h"
#include "registry/fields.h"

namespace keelson::registry::core {

struct SourceContext {
  PodOptions options;
  std::string_view name;      // of the volume, or of the persistent volume
  std::string_view pod_name;  // "" for templates and persistent volumes
  bool persistent = false;
  bool has_node_affinity = false;  // of the persistent volume
};

using SourceCheck = void (*)(const SourceContext& context, Value source, const FieldPath& path, FieldErrors& errors);

struct SourceRow {
  std::string_view key;
  std::initializer_list<std::string_view> required;  // texts or lists that must not be empty
  SourceCheck check = nullptr;
  std::string_view path_name = {};      // how errors spell the key, where it is not the key
  std::string_view repeated_name = {};  // ... when it is one source too many
  bool counts_alone = true;             // false: never reported as one too many
};

// Checks the sources that `holder` has, in the table's order; returns how many there were.
int ValidateSources(std::span<const SourceRow> table, const SourceContext& context, Value holder, const FieldPath& path,
                    FieldErrors& errors);

// Rows that several files need.
void CheckHostPath(const SourceContext& context, Value source, const FieldPath& path, FieldErrors& errors);
void CheckKeyToPath(Value item, const FieldPath& path, FieldErrors& errors);
void CheckCSIDriverName(std::string_view name, const FieldPath& path, FieldErrors& errors);

std::span<const SourceRow> PodVolumeSources();
std::span<const SourceRow> PersistentVolumeSources();

}  // namespace keelson::registry::core
