#include "codec/json_frame.h"

#include "codec/go_types.h"
#include "codec/scalars.h"

namespace keelson::codec {
namespace {

// The embedded structs between `type` and the field; false where it is not there.
bool AppendEmbedded(const schema::Struct& type, const schema::Field* wanted, std::string& out) {
  for (const schema::Field& field : type.fields) {
    if (&field == wanted) return true;
    if (!field.inlined) continue;
    const std::size_t size = out.size();
    out += field.type->structure->name;
    out += '.';
    if (AppendEmbedded(*field.type->structure, wanted, out)) return true;
    out.resize(size);
  }
  return false;
}

// Field names only, with those of embedded structs between, as Go's error context has them.
void AppendFieldPath(const JSONFrame* frame, std::string& out) {
  if (frame == nullptr) return;
  AppendFieldPath(frame->parent, out);
  if (frame->structure == nullptr || frame->field == nullptr) return;
  if (!out.empty()) out += '.';
  AppendEmbedded(*frame->structure, frame->field, out);
  out += frame->field->name;
}

void AppendPath(const JSONFrame* frame, std::string& out) {
  if (frame == nullptr) return;
  AppendPath(frame->parent, out);
  if (frame->index >= 0) {
    out += '[' + std::to_string(frame->index) + ']';
    return;
  }
  if (!out.empty()) out += '.';
  out += frame->structure != nullptr ? frame->field->name : frame->key;
}

}  // namespace

std::string GoTypeAt(const JSONFrame* frame, const schema::Type& type) {
  int depth = 0;
  for (; frame != nullptr && frame->structure == nullptr; frame = frame->parent) ++depth;
  if (frame == nullptr || frame->field == nullptr) return GoTypeName(type);
  return GoTypeOf(*frame->structure, *frame->field, type, depth);
}

std::string GoPlace(const JSONFrame* frame) {
  const JSONFrame* innermost = frame;
  while (innermost != nullptr && innermost->structure == nullptr) innermost = innermost->parent;
  if (innermost == nullptr) return "value";
  std::string path;
  AppendFieldPath(frame, path);
  return "struct field " + std::string(innermost->structure->name) + "." + path;
}

std::string PathOf(const JSONFrame* frame) {
  std::string path;
  AppendPath(frame, path);
  return path;
}

}  // namespace keelson::codec
