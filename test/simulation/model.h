// The model: answers that a correct server may give. The history of the store is learned from a watch of the whole
// key-value store ("truth"), which must follow from the clients' requests; every answer to a client is compared with it
// once it is known up to the answer's revision.
// The rules:
// - a change was requested by exactly one write, happens once, and builds on the state before it (a write carries the
//   number of the write that it has seen);
// - an acknowledged write is in history at its returned revision, later than all revisions returned before it was sent;
//   one that was refused is not there;
// - objects disappear by a requested deletion, or by a lease that has expired;
// - no revision returned to a client is lost by a restart.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulation/world.h"

namespace keelson::simulation {

using WriteID = std::uint64_t;  // 0: none

struct Version {
  std::uint64_t revision = 0;
  bool deleted = false;
  WriteID write = 0;
  WriteID seen = 0;  // the write before it, as its writer saw it
  std::string app;
  Time at{0};  // when the model heard of it
};

// The selection of a list or watch.
struct Selection {
  std::string prefix;  // "/configmaps/", "/configmaps/a/"
  std::string app;     // "": any
  bool Matches(const std::string& key, const Version& version) const {
    return !version.deleted && key.starts_with(prefix) && (app.empty() || version.app == app);
  }
};

struct Seen {  // an object in an answer
  std::string key;
  std::uint64_t revision = 0;
  WriteID write = 0;
};

class Model {
 public:
  enum class Outcome : std::uint8_t { kPending, kDone, kRefused, kUnknown };
  enum class Kind : std::uint8_t { kCreate, kUpdate, kDelete };

  explicit Model(World& world) : world_(world) {}

  void Fail(std::string text);
  bool failed() const { return !failures_.empty(); }
  const std::vector<std::string>& failures() const { return failures_; }

  // Clients.
  WriteID Begin(Kind kind, std::string key);
  void Done(WriteID write, std::uint64_t revision);
  void Refused(WriteID write);
  void Unknown(WriteID write);                  // it may happen, or have happened
  std::uint64_t told() const { return told_; }  // the newest revision returned to a client
  void Tell(std::uint64_t revision) { told_ = std::max(told_, revision); }
  void CheckGet(const std::string& key, std::uint64_t not_before, std::optional<Seen> seen, bool any_age);
  void CheckList(const Selection& selection, std::uint64_t revision, std::vector<Seen> items);
  enum class Type : std::uint8_t { kAdded, kModified, kDeleted };
  // Position of a watch. Objects of an expired lease are deleted at one revision, one event each.
  struct Position {
    std::uint64_t revision = 0;                  // everything before was given
    std::optional<std::set<std::string>> given;  // of that revision these; none: all
  };
  // A watch at a position got this next, or a bookmark: nothing up to `until`.
  void CheckEvent(const Selection& selection, const Position& position, Type type, const Seen& seen);
  void CheckQuiet(const Selection& selection, const Position& position, std::uint64_t until, const char* why);
  // The revision of the last change that the selection shows.
  std::uint64_t LastChange(const Selection& selection) const;
  std::size_t ChangesAfter(const std::string& prefix, std::uint64_t revision) const;

  // The truth.
  void Change(const std::string& key, Version version);
  void Known(std::uint64_t revision);  // everything up to here was given
  std::uint64_t known() const { return known_; }
  void Restarted();  // leases begin anew
  // The whole store at a revision (without the numbers of writes).
  void CheckStore(std::uint64_t revision, std::vector<Seen> all);
  std::size_t waiting() const { return deferred_.size(); }
  std::string FirstWaiting() const;
  // Objects with a time to live that should have gone.
  void CheckExpired(Time grace);
  Time ttl{0};  // of keys below ttl_prefix
  std::string ttl_prefix;

 private:
  struct Write {
    Kind kind;
    std::string key;
    Outcome outcome = Outcome::kPending;
    Time begun{0};
    std::uint64_t told = 0;      // when it began
    std::uint64_t revision = 0;  // where history has it
  };
  void When(std::uint64_t revision, std::string what, std::function<void()> check);
  const Version* At(const std::string& key, std::uint64_t revision) const;
  const Version* Exactly(const std::string& key, std::uint64_t revision) const;
  void CheckAbsent(const std::string& key, std::uint64_t not_before);
  void CheckPut(const std::string& key, const Version& version, const Version* before);
  void CheckDeletion(const std::string& key, const Version& version, const Version* before);
  // The changes in (after, until] that the selection shows.
  std::vector<std::pair<Type, Seen>> Changes(const Selection& selection, std::uint64_t after,
                                             std::uint64_t until) const;
  std::vector<std::pair<Type, Seen>> Changes(const Selection& selection, const Position& position,
                                             std::uint64_t until) const;

  World& world_;
  std::map<std::string, std::vector<Version>> keys_;
  std::map<std::uint64_t, std::set<std::string>> log_;  // by revision
  std::map<WriteID, Write> writes_;
  std::map<std::string, std::set<WriteID>> deletions_;  // requested, not refused
  WriteID last_write_ = 0;
  std::uint64_t told_ = 1;
  std::uint64_t known_ = 1;
  Time restarted_{0};
  struct Deferred {
    std::string what;
    std::function<void()> check;
  };
  std::multimap<std::uint64_t, Deferred> deferred_;
  // "Not found" names no revision: checked once history is known past the moment of the answer.
  std::deque<std::pair<Time, std::function<void()>>> later_;
  std::vector<std::string> failures_;
};

std::string ToText(const std::vector<Seen>& items);

}  // namespace keelson::simulation
