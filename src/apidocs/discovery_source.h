// API groups that come and go while the server runs (custom resources), for the documents that list all groups. A
// source publishes an immutable list of fragments; documents are put together from the fragments of all sources, one
// fragment is made again when its group changes. Thread safety: from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::apidocs {

// One group in the documents.
struct DiscoveryFragment {
  std::string group;
  std::string api_group;   // JSON of its APIGroup, without kind and apiVersion: an item of /apis
  std::string aggregated;  // JSON of its APIGroupDiscovery: an item of the aggregated form
  struct Version {
    std::string version;
    std::string etag;  // of its OpenAPI v3 document: changes with what it is made of, quoted
  };
  std::vector<Version> versions;  // best first
};
using DiscoveryFragmentPtr = std::shared_ptr<const DiscoveryFragment>;

struct DiscoveryFragments {
  std::uint64_t generation = 0;              // another number: something changed
  std::vector<DiscoveryFragmentPtr> groups;  // by name
};

class DiscoverySource {
 public:
  virtual ~DiscoverySource() = default;
  virtual std::shared_ptr<const DiscoveryFragments> Discovery() const = 0;
  // The OpenAPI v3 document of a group version as JSON; "" when there is none.
  virtual std::string OpenAPIv3(std::string group, std::string version) const = 0;
  // Appends members of `paths` and of `definitions` of the OpenAPI v2 document, each with a comma before it.
  virtual void AppendOpenAPIv2(std::string& paths, std::string& definitions) const = 0;
  // The same, knowing the document `base` that they are appended to.
  virtual void AppendOpenAPIv2To(std::string_view /*base*/, std::string& paths, std::string& definitions) const {
    AppendOpenAPIv2(paths, definitions);
  }
  // OpenAPI v3 documents that others serve: key and server relative URL, for the root document.
  virtual std::vector<std::pair<std::string, std::string>> OpenAPIv3URLs() const { return {}; }
};

// Orders and merges the groups of all sources (the aggregator, by APIServices). Thread safety: from any thread.
class DiscoveryMerger {
 public:
  struct Merged {
    std::string groups;      // items of /apis
    std::string aggregated;  // items of the aggregated form
  };
  virtual ~DiscoveryMerger() = default;
  virtual std::uint64_t Generation() const = 0;  // another number: something changed
  virtual Merged Merge(const std::vector<DiscoveryFragmentPtr>& built_in,
                       const std::vector<DiscoveryFragmentPtr>& custom) const = 0;
};

}  // namespace keelson::apidocs
