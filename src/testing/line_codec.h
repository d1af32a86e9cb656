// A codec for tests of storage and cacher: an object is a few lines of text, so that a failure can be read.
//
//   line/v1            line/v0 is an older version of the same, which Normalize() brings up to date
//   name=web
//   namespace=default
//   uid=u1
//   resourceVersion=7  only when set
//   label:app=web
//   field:spec.nodeName=n1
//   data=anything
//
// As a Value: metadata{name, namespace, uid, labels{}}, fields{}, data. Texts hold no line feeds.
#pragma once

#include <string>
#include <string_view>

#include "storage/resource_codec.h"

namespace keelson::testing {

class LineCodec final : public storage::ResourceCodec {
 public:
  explicit LineCodec(meta::GroupResource resource = {"", "pods"}) : resource_(std::move(resource)) {}
  const meta::GroupResource& resource() const override { return resource_; }
  Outcome<base::SharedBytes, std::string> Encode(base::Arena& arena, Value object) const override;
  Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const override;
  Outcome<base::SharedBytes, std::string> Normalize(std::string_view stored) const override;
  Outcome<base::SharedBytes, std::string> WithResourceVersion(std::string_view stored,
                                                              std::uint64_t resource_version) const override;
  Outcome<storage::Attributes, std::string> GetAttrs(const base::SharedBytes& stored) const override;
  std::string UID(std::string_view stored) const override;

 private:
  meta::GroupResource resource_;
};

}  // namespace keelson::testing
