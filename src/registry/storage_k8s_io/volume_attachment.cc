#include <string>
#include <string_view>

#include "registry/core/hub.h"
#include "registry/core/volume_sources.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/semantic.h"
#include "registry/storage_k8s_io/strategies.h"
#include "schema/types.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

constexpr std::int64_t kMetadataBytesMax = 256 * 1024;
constexpr std::size_t kErrorMessageBytesMax = 1024;
constexpr std::string_view kInline = " in the context of inline volumes";

// A PersistentVolumeSpec inside an attachment: CSI is required, and another source beside it is one too many; its own
// fields are checked all the same.
void ValidateInlineVolumeSpec(const Value& spec, const FieldPath& path, FieldErrors& errors) {
  const auto forbid = [&](std::string_view field) {
    errors.push_back(Forbidden(path.Child(field), "may not be specified" + std::string(kInline)));
  };
  if (!spec["claimRef"].is_null()) forbid("claimRef");
  if (!spec["capacity"].empty()) forbid("capacity");
  const Value csi = spec["csi"];
  if (csi.is_null()) errors.push_back(Required(path.Child("csi"), "has to be specified" + std::string(kInline)));

  const FieldPath modes_path = path.Child("accessModes");
  if (spec["accessModes"].empty()) errors.push_back(Required(modes_path));
  bool once_pod = false;
  bool others = false;
  for (const Value& mode : spec["accessModes"].items()) {
    const std::string_view text = mode.as_string();
    if (!OneOf(text, {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"})) {
      NotSupportedValue(modes_path, text, {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"},
                        errors);
    } else {
      (text == "ReadWriteOncePod" ? once_pod : others) = true;
    }
  }
  if (once_pod && others)
    errors.push_back(Forbidden(modes_path, "may not use ReadWriteOncePod with other access modes"));
  if (const std::string_view policy = spec["persistentVolumeReclaimPolicy"].as_string();
      !policy.empty() && policy != "Retain") {
    errors.push_back(
        Forbidden(path.Child("persistentVolumeReclaimPolicy"), "may only be Retain" + std::string(kInline)));
  }
  if (!spec["nodeAffinity"].is_null()) forbid("nodeAffinity");

  const core::SourceContext context{.persistent = true};
  if (core::ValidateSources(core::PersistentVolumeSources(), context, spec, path, errors) == 0)
    errors.push_back(Required(path, "must specify a volume type"));
  if (!spec["storageClassName"].as_string().empty()) forbid("storageClassName");
  if (const Value mode = spec["volumeMode"]; !mode.is_null() && mode.as_string() != "Filesystem") {
    errors.push_back(
        Forbidden(path.Child("volumeMode"), "may not specify volumeMode other than Filesystem" + std::string(kInline)));
  }
}

void ValidateVolumeError(const Value& error, const FieldPath& path, FieldErrors& errors) {
  if (error.is_null()) return;
  // The limit in the text is that of the metadata: upstream's slip, and API by now.
  if (error["message"].as_string().size() > kErrorMessageBytesMax)
    errors.push_back(validation::TooLong(path.Child("message"), kMetadataBytesMax));
  if (const Value code = error["errorCode"]; !code.is_null() && code.as_int() < 0) {
    errors.push_back(Invalid(path.Child("errorCode"), code, "must be between 0 and 2147483647, inclusive"));
  }
}

void ValidateBody(const Value& object, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"];
  ValidateCSIDriverName(spec["attacher"].as_string(), path.Child("attacher"), errors);
  const FieldPath source_path = path.Child("source");
  const Value volume = spec["source"]["persistentVolumeName"];
  const Value inlined = spec["source"]["inlineVolumeSpec"];
  constexpr std::string_view kExactlyOne = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (inlined.is_null() && volume.is_null()) {
    errors.push_back(Required(source_path, kExactlyOne));
  } else if (!inlined.is_null() && !volume.is_null()) {
    errors.push_back(Forbidden(source_path, kExactlyOne));
  } else if (!volume.is_null()) {
    if (volume.as_string().empty()) {
      errors.push_back(
          Required(source_path.Child("persistentVolumeName"), "must specify non empty persistentVolumeName"));
    }
  } else {
    ValidateInlineVolumeSpec(inlined, source_path.Child("inlineVolumeSpec"), errors);
  }
  const std::string_view node = spec["nodeName"].as_string();
  AddInvalid(path.Child("nodeName"), node, validation::NameIsDNSSubdomain(node, false), errors);

  const FieldPath status_path("status");
  const Value status = object["status"];
  std::int64_t bytes = 0;
  for (const auto& member : status["attachmentMetadata"].members()) {
    bytes += static_cast<std::int64_t>(member.key.size() + member.value.as_string().size());
  }
  if (bytes > kMetadataBytesMax)
    errors.push_back(validation::TooLong(status_path.Child("attachmentMetadata"), kMetadataBytesMax));
  ValidateVolumeError(status["attachError"], status_path.Child("attachError"), errors);
  ValidateVolumeError(status["detachError"], status_path.Child("detachError"), errors);

  if (!volume.is_null()) {
    AddInvalid(FieldPath("spec.source.persistentVolumeName"), volume.as_string(),
               validation::NameIsDNSSubdomain(volume.as_string(), false), errors);
  }
}

void ValidateVolumeAttachment(const Call&, Value object, Value, FieldErrors& errors) { ValidateBody(object, errors); }

void ValidateVolumeAttachmentUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors);
  ValidateBody(object, errors);
  if (!registry::SemanticEqual(object["spec"], old["spec"], schema::types::storage_v1::kVolumeAttachmentSpec)) {
    errors.push_back(InvalidHub(FieldPath("spec"), core::CoreHubTypes(), object["spec"], "VolumeAttachmentSpec",
                                "field is immutable"));
  }
}

void PrepareStatus(const Call& call, Value object, Value old) { ResetMetaForStatus(call.arena, object, old); }

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  cells.Append(arena, NameCell(object));
  cells.Append(arena, spec["attacher"].as_string());
  cells.Append(arena, spec["source"]["persistentVolumeName"].as_string());
  cells.Append(arena, spec["nodeName"].as_string());
  cells.Append(arena, object["status"]["attached"].as_bool());
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

}  // namespace

constexpr Strategy kVolumeAttachmentStrategy = {
    .group = "storage.k8s.io",
    .kind = "VolumeAttachment",
    .allow_unconditional_update = false,
    .return_deleted_object = true,
    .has_status = true,
    .validate = ValidateVolumeAttachment,
    .update = {.validate_update = ValidateVolumeAttachmentUpdate, .reset_fields = kMainReset},
    .status = {.prepare_for_update = PrepareStatus,
               .validate_update = ValidateVolumeAttachmentUpdate,
               .reset_fields = kStatusReset},
    .table_row = Row,
};

}  // namespace keelson::registry
