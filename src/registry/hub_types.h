// JSON of the hub (internal) Go types. Upstream prints some rejected values, and the diff of rejected updates,
// as encoding/json writes its internal structs: Go's field names in Go's order, nothing left out. A table has those
// names:
//
//   PodOS Name:string
//   Lifecycle PostStart:*LifecycleHandler PreStop:*LifecycleHandler StopSignal:*string
//   ~LabelSelector matchLabels:{}string matchExpressions:[]~LabelSelectorRequirement
//
// One type begins a line that does not start with a space; lines that do continue it. A field is
// GoName[=jsonName]:type; without a jsonName it is the Go name with a small first letter. `^name` reads the member from
// the parent object (hostNetwork lives in the pod's spec). Types: string bool int quantity time intorstring raw, *T,
// []T, {}T, or a type of the table. `+Type` embeds the fields of a type of an earlier line.
// `~` marks metav1 types, which have JSON tags: names as written, empty values left out; field "-" inlines its members.
// Immutable; const members from any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "object/field_path.h"
#include "object/value.h"
#include "validation/errors.h"

namespace keelson::registry {

class HubTypes {
 public:
  explicit HubTypes(std::string_view table);  // the text must outlive it

  std::string JSON(Value value, std::string_view type) const;           // compact
  std::string Indented(Value value, std::string_view type) const;       // as json.MarshalIndent(_, "", " ")
  std::string Diff(Value old, Value now, std::string_view type) const;  // unified diff of the indented forms

 private:
  struct Field {
    std::string_view name;
    std::string_view json;
    std::string_view type;
  };
  using Fields = std::vector<Field>;
  class Writer;
  std::map<std::string_view, Fields, std::less<>> types_;
};

// Errors that show a value in its hub form.
validation::FieldError InvalidHub(const FieldPath& path, const HubTypes& types, Value value, std::string_view type,
                                  std::string_view detail);

}  // namespace keelson::registry
