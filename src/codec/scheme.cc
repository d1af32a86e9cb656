#include "codec/scheme.h"

namespace keelson::codec {

const schema::Struct* RegisteredType(std::string_view group, std::string_view version, std::string_view kind) {
  return schema::FindKind(group, version, kind);
}

}  // namespace keelson::codec
