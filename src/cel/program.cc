#include "cel/program.h"

#include "cel/plan.h"

namespace keelson::cel {

Program::Program(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Program::~Program() = default;

std::span<const std::string_view> Program::variables() const { return plan_->variables; }

std::size_t Program::bytes() const {
  return sizeof(Program) + sizeof(Plan) + plan_->arena.reserved_bytes() +
         plan_->variables.capacity() * sizeof(std::string_view);
}

void ValueActivation::Set(std::string_view name, const Val& value) { values_.emplace_back(name, value); }

bool ValueActivation::Find(Arena&, std::string_view name, Val* out) {
  for (const auto& [known, value] : values_) {
    if (known != name) continue;
    *out = value;
    return true;
  }
  return false;
}

}  // namespace keelson::cel
