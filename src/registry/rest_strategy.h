// How the Store treats one kind (upstream's RESTCreateStrategy, RESTUpdateStrategy and TableConvertor): an interface
// with state. The base class runs the functions of a Strategy row, which suffices for built-in kinds; kinds that come
// at run time derive from it and own what they need (compiled schemas, column paths). Thread safety: const members from
// any thread.
#pragma once

#include <cstdint>

#include "registry/strategy.h"

namespace keelson::registry {

// The endpoint of the kind that an update came through.
struct Endpoint {
  enum class Part : std::uint8_t { kMain, kStatus, kOther };
  Part part = Part::kMain;
  const UpdateRules* rules = nullptr;  // of kOther
};

class RESTStrategy {
 public:
  explicit RESTStrategy(const Strategy& row) : row_(row) {}  // `row` must outlive this
  virtual ~RESTStrategy() = default;
  RESTStrategy(const RESTStrategy&) = delete;
  RESTStrategy& operator=(const RESTStrategy&) = delete;

  // The data of the kind: name rule, AllowCreateOnUpdate and the like.
  const Strategy& row() const { return row_; }
  const UpdateRules& RulesOf(const Endpoint& endpoint) const;

  // Of the hub version, after the table's own defaults.
  virtual bool has_defaults() const { return row_.defaults != nullptr; }
  virtual void Default(base::Arena& arena, Value object) const;
  virtual void PrepareForCreate(const Call& call, Value object) const;
  virtual void PrepareForUpdate(const Call& call, const Endpoint& endpoint, Value object, Value old) const;
  // On create: metadata by the row's name rule (unless the row validates it itself), then the kind's own rules.
  virtual void Validate(const Call& call, bool namespaced, Value object, FieldErrors& errors) const;
  virtual void ValidateUpdate(const Call& call, const Endpoint& endpoint, Value object, Value old,
                              FieldErrors& errors) const;
  virtual void Warnings(const Call& call, const Endpoint& endpoint, Value object, Value old) const;  // old null: create
  virtual void Canonicalize(const Call& call, Value object, Value old) const;
  // A kind of which a living object is never deleted at once: MarkDeletion writes into it what holds it back (a
  // finalizer, a condition); its deletionTimestamp is set already.
  virtual bool marks_deletion() const { return false; }
  virtual void MarkDeletion(const Call& call, Value object) const;
  // False: the default columns Name and Created At.
  virtual bool TableRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) const;
  // The conditions of a Table row, or null.
  virtual Value RowConditions(base::Arena& arena, Value object) const;

 private:
  const Strategy& row_;
};

}  // namespace keelson::registry
