// Go's type name of a field, for the text of unmarshal errors: the declared type if there is one (v1.RestartPolicy),
// else the plain type (string). Pure data, used on the way to an error only.
#pragma once

#include <string>

#include "schema/schema.h"

namespace keelson::codec {

// Go's type `depth` lists or maps below the field; `at` is its schema type. `type` is the struct
// that was being read; the field may belong to a struct that it embeds.
std::string GoTypeOf(const schema::Struct& type, const schema::Field& field, const schema::Type& at, int depth);

}  // namespace keelson::codec
