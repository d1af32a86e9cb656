// Assignability and unification of types with free variables, as cel-go's checker does them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cel/type.h"

namespace keelson::cel {

class Unifier {
 public:
  explicit Unifier(base::Arena& arena) : arena_(arena) { bindings_.push_back(nullptr); }

  // A free type variable, "_var0" and up.
  const Type* NewVariable();
  // `type` of a declaration with its parameters 1..n replaced by fresh[0..n-1].
  const Type* Instantiate(const Type* type, std::span<const Type* const> fresh);

  // Binds variables where that makes the types agree; binds nothing where they do not.
  bool IsAssignable(const Type* a, const Type* b);
  bool IsAssignableList(std::span<const Type* const> a, std::span<const Type* const> b);

  enum class Free : std::uint8_t { kKeep, kDyn };
  // `type` with bound variables replaced; unbound ones stay or become dyn.
  const Type* Substitute(const Type* type, Free free);

  static const Type* MostGeneral(const Type* a, const Type* b);

 private:
  struct Undo {
    std::uint32_t var;
    const Type* old;
  };
  struct Substitution {
    bool valid = false;
    bool bound = false;
  };
  const Type* Find(const Type* type) const { return type->kind == Kind::kTypeParam ? bindings_[type->var] : nullptr; }
  void Bind(const Type* variable, const Type* to);
  void Rollback(std::size_t mark);
  bool Assignable(const Type* a, const Type* b);
  bool AssignableParams(std::span<const Type* const> a, std::span<const Type* const> b);
  Substitution TrySubstitute(const Type* type, const Type* variable);
  bool NotReferencedIn(const Type* variable, const Type* within) const;
  const Type* Rebuild(const Type* type, std::span<const Type* const> params);

  base::Arena& arena_;
  std::vector<const Type*> bindings_;  // by variable number
  std::vector<Undo> undo_;
};

}  // namespace keelson::cel
