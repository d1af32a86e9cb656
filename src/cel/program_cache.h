// Compiled expressions by environment and text, so that the same rule of many objects is compiled once. Bounded: the
// least recently used go first.
// Thread safety: any thread; the lock is held for the look-up, never while an expression is compiled.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/hash.h"
#include "cel/ast.h"
#include "cel/environment.h"
#include "cel/program.h"

namespace keelson::cel {

// An expression compiled and planned, or the reason why not.
struct Compilation {
  AstPtr ast;          // null where the expression does not compile
  ProgramPtr program;  // null where it does not compile or cannot be planned
  std::string error;   // "compilation failed: …" or "program instantiation failed: …"; "" where it can be evaluated

  std::size_t bytes() const;  // of memory
};
using CompilationPtr = std::shared_ptr<const Compilation>;

CompilationPtr CompileProgram(const EnvironmentPtr& env, std::string_view expression);
// The same; programs compiled in a permanent environment are kept in one ProgramCache of the process and shared by all
// users of the expression: match conditions that many webhooks repeat, policies without variables, selectors of the
// claims of one template. Environments of one policy with variables or of one schema node are not permanent: the policy
// or schema keeps its programs itself.
CompilationPtr CompileShared(const EnvironmentPtr& env, std::string_view expression);

class ProgramCache {
 public:
  static constexpr std::size_t kEntriesMax = 4096;
  static constexpr std::size_t kBytesMax = 16 * 1024 * 1024;     // of all entries
  static constexpr std::size_t kExpressionBytesMax = 16 * 1024;  // longer expressions are not kept

  explicit ProgramCache(std::size_t entries_max = kEntriesMax, std::size_t bytes_max = kBytesMax)
      : entries_max_(entries_max), bytes_max_(bytes_max) {}
  CompilationPtr Get(const EnvironmentPtr& env, std::string_view expression);
  std::size_t size() const;
  std::size_t bytes() const;

 private:
  struct Entry {
    EnvironmentPtr env;
    std::string expression;
    CompilationPtr compilation;
    std::size_t bytes = 0;
  };
  struct Key {
    const Environment* env;
    std::string_view expression;  // of the entry
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return base::SeededHash(key.expression) ^ std::hash<const void*>()(key.env);
    }
  };

  void DropLast();  // REQUIRES: mutex_, an entry

  const std::size_t entries_max_;
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> index_;
};

}  // namespace keelson::cel
