// A plugin that is one function or two. Internal to admission.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>

#include "admission/admission.h"

namespace keelson::admission {

class SimplePlugin final : public Plugin {
 public:
  using AdmitFunc = std::function<Task<void>(request::Context& context, Attributes& attributes)>;
  using ValidateFunc = std::function<Task<void>(request::Context& context, const Attributes& attributes)>;

  SimplePlugin(std::string_view name, std::initializer_list<Operation> operations, AdmitFunc admit,
               ValidateFunc validate)
      : name_(name), operations_(operations), admit_(std::move(admit)), validate_(std::move(validate)) {}

  std::string_view name() const override { return name_; }
  bool Handles(Operation operation) const override { return operations_.contains(operation); }
  Task<void> Admit(request::Context& context, Attributes& attributes) override {
    if (!admit_) co_return meta::Result<void>();
    co_return co_await admit_(context, attributes);
  }
  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (!validate_) co_return meta::Result<void>();
    co_return co_await validate_(context, attributes);
  }

 private:
  std::string_view name_;
  std::set<Operation> operations_;
  AdmitFunc admit_;
  ValidateFunc validate_;
};

}  // namespace keelson::admission
