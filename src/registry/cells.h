// Cells of kubectl get: ages, joined lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/clock.h"
#include "object/value.h"

namespace keelson::registry {

// The age of a time member; "<unknown>" for none.
std::string Age(const base::Clock& clock, Value time);

// Cells of one row. The text is copied into the arena.
class Row {
 public:
  Row(base::Arena& arena, Value cells) : arena_(arena), cells_(cells) {}
  Row& Add(std::string_view text) {
    cells_.Append(arena_, Value::String(arena_, text));
    return *this;
  }
  Row& Add(std::int64_t number) {
    cells_.Append(arena_, Value(number));
    return *this;
  }
  Row& Name(Value object) { return Add(object["metadata"]["name"].as_string()); }
  Row& Age(const base::Clock& clock, Value object) {
    return Add(registry::Age(clock, object["metadata"]["creationTimestamp"]));
  }

 private:
  base::Arena& arena_;
  Value cells_;
};

// "a,b" of the names and of the images of a pod spec's containers.
std::string ContainerNames(Value pod_spec);
std::string ContainerImages(Value pod_spec);

}  // namespace keelson::registry
