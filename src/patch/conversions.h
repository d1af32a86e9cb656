// Conversions of an object to other versions that a FieldManager needs and cannot do itself, since a webhook answers
// them. The FieldManager stays a pure function: it names what it is missing, the caller awaits that and calls again
// with the same arguments. Each round has at least one new answer, and a call needs a few per version at most.
// Thread safety: none; one per request.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "object/value.h"

namespace keelson::patch {

class Conversions {
 public:
  using Answer = Outcome<Value, std::string>;
  struct Wanted {
    Value object;  // lives in the caller's arena
    std::string api_version;
  };

  // The answer; nullptr while there is none, and then it is wanted.
  const Answer* Find(const Value& object, std::string_view api_version);
  const std::vector<Wanted>& wanted() const { return wanted_; }
  // Answers the first of wanted(). REQUIRES: there is one; a converted object lives as long as this.
  void Resolve(Answer answer);

 private:
  static std::string KeyOf(const Value& object, std::string_view api_version);

  std::map<std::string, Answer, std::less<>> answers_;  // by version and text of the object
  std::vector<Wanted> wanted_;
};

}  // namespace keelson::patch
