#include "cel/program_cache.h"

#include "cel/compiler.h"

namespace keelson::cel {

CompilationPtr CompileProgram(const EnvironmentPtr& env, std::string_view expression) {
  auto compilation = std::make_shared<Compilation>();
  auto ast = Compile(env, expression);
  if (!ast.ok()) {
    compilation->error = "compilation failed: " + ast.error();
    return compilation;
  }
  compilation->ast = *std::move(ast);
  auto program = Program::New(env, *compilation->ast);
  if (program.ok()) {
    compilation->program = *std::move(program);
  } else {
    compilation->error = "program instantiation failed: " + program.error();
  }
  return compilation;
}

CompilationPtr CompileShared(const EnvironmentPtr& env, std::string_view expression) {
  static ProgramCache cache;  // Results depend on the key alone.
  return env->permanent() ? cache.Get(env, expression) : CompileProgram(env, expression);
}

std::size_t Compilation::bytes() const {
  return sizeof(Compilation) + error.capacity() + (ast ? ast->bytes() : 0) + (program ? program->bytes() : 0);
}

CompilationPtr ProgramCache::Get(const EnvironmentPtr& env, std::string_view expression) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find({env.get(), expression});
    if (found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->compilation;
    }
  }
  CompilationPtr compilation = CompileProgram(env, expression);
  if (expression.size() > kExpressionBytesMax || entries_max_ == 0) return compilation;
  const std::lock_guard lock(mutex_);
  if (index_.contains({env.get(), expression})) return compilation;  // Another thread was faster.
  const std::size_t bytes = sizeof(Entry) + expression.size() + compilation->bytes();
  if (bytes > bytes_max_) return compilation;
  while (!entries_.empty() && (entries_.size() >= entries_max_ || bytes_ + bytes > bytes_max_)) DropLast();
  entries_.push_front({env, std::string(expression), compilation, bytes});
  index_.emplace(Key{env.get(), entries_.front().expression}, entries_.begin());
  bytes_ += bytes;
  return compilation;
}

void ProgramCache::DropLast() {
  const Entry& last = entries_.back();
  bytes_ -= last.bytes;
  index_.erase({last.env.get(), last.expression});
  entries_.pop_back();
}

std::size_t ProgramCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t ProgramCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace keelson::cel
