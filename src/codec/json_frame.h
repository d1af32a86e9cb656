// The JSON decoder's position in the document, for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schema/schema.h"

namespace keelson::codec {

// A chain of the containers that are open, the innermost first.
struct JSONFrame {
  const JSONFrame* parent;
  const schema::Struct* structure = nullptr;  // a struct: `field` is being read
  const schema::Field* field = nullptr;
  std::string_view key;     // a map: its key
  std::int64_t index = -1;  // a list: the index
};

// Go's name of the type at the decoder's position, whose schema type is `type`.
std::string GoTypeAt(const JSONFrame* frame, const schema::Type& type);
// As in Go's unmarshal errors: "struct field Pod.spec.containers.name", or "value" outside of structs.
std::string GoPlace(const JSONFrame* frame);
// spec.containers[0].name; "" at the top.
std::string PathOf(const JSONFrame* frame);

}  // namespace keelson::codec
