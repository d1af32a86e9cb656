// Go's type name of a field, for the text of unmarshal errors: the declared type if there is one (v1.RestartPolicy),
// else the plain type (string). Pure data, used on the way to an error only.
#pragma once

#include <string>

#include "schema/schema.h"

namespace keelson::codec {

// The type of what stands `depth` lists or maps below the field, which the schema says is `at`. `type` is the struct
// that was being read; the field may belong to a struct that it embeds.
std::string GoTypeOf(const schema::Struct& type, const schema::Field& field, const schema::Type& at, int depth);

}  // namespace keelson::codec
