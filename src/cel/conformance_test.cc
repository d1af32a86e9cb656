// The conformance suite of the language: KEELSON_SUITES/cel/*.textproto (default ../shared/testdata). Prints "N of M"
// per file with the tests left out by reason; skips where the folder is absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/strings.h"
#include "cel/compiler.h"
#include "cel/environment.h"
#include "cel/golden_values_test.h"
#include "cel/program.h"
#include "cel/testing/object_type.h"

namespace keelson::cel {
namespace {

// A protobuf message in text form.
struct Field;
struct Text {
  std::string scalar;  // of a scalar field; strings unescaped
  std::vector<Field> fields;

  const Text* Find(std::string_view name) const;
  const Text& At(std::string_view name) const;  // empty where there is none
  std::vector<const Text*> All(std::string_view name) const;
};
struct Field {
  std::string name;
  Text value;
};

const Text* Text::Find(std::string_view name) const {
  for (const Field& field : fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

const Text& Text::At(std::string_view name) const {
  static const Text kNone;
  const Text* found = Find(name);
  return found == nullptr ? kNone : *found;
}

std::vector<const Text*> Text::All(std::string_view name) const {
  std::vector<const Text*> out;
  for (const Field& field : fields) {
    if (field.name == name) out.push_back(&field.value);
  }
  return out;
}

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  Text Message(char end) {
    Text message;
    for (Skip(); at_ < text_.size() && text_[at_] != end; Skip()) {
      std::string name = Name();
      Skip();
      if (Peek() == ':') ++at_, Skip();
      if (Peek() == '[') {
        ++at_;
        for (Skip(); Peek() != ']'; Skip()) {
          message.fields.push_back({name, Value()});
          Skip();
          if (Peek() == ',') ++at_;
        }
        ++at_;
      } else {
        message.fields.push_back({name, Value()});
      }
      Skip();
      if (Peek() == ',' || Peek() == ';') ++at_;
    }
    ++at_;
    return message;
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::string Name() {
    const std::size_t begin = at_;
    if (Peek() == '[') {
      at_ = text_.find(']', at_) + 1;
    } else {
      while (std::isalnum(static_cast<unsigned char>(Peek())) || Peek() == '_' || Peek() == '.') ++at_;
      if (at_ == begin) ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }
  Text Value() {
    Text value;
    if (Peek() == '{') {
      ++at_;
      return Message('}');
    }
    if (Peek() == '"' || Peek() == '\'') {
      for (; Peek() == '"' || Peek() == '\''; Skip()) value.scalar += String();
      return value;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) &&
           std::string_view("{}[],;#").find(text_[at_]) == std::string_view::npos)
      ++at_;
    value.scalar = text_.substr(begin, at_ - begin);
    return value;
  }
  std::string String() {
    const char quote = text_[at_++];
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        out += text_[at_++];
        continue;
      }
      ++at_;
      Escape(out);
    }
    ++at_;
    return out;
  }
  void Escape(std::string& out) {
    const char c = text_[at_++];
    constexpr std::string_view kLetters = "abfnrtv", kBytes = "\a\b\f\n\r\t\v";
    if (const std::size_t at = kLetters.find(c); at != std::string_view::npos) {
      out += kBytes[at];
    } else if (c >= '0' && c <= '7') {
      int value = c - '0';
      for (int i = 0; i < 2 && Peek() >= '0' && Peek() <= '7'; ++i) value = value * 8 + (text_[at_++] - '0');
      out += static_cast<char>(value);
    } else if (c == 'x') {
      out += static_cast<char>(Hex(2));
    } else if (c == 'u') {
      base::AppendUTF8(out, Hex(4));
    } else if (c == 'U') {
      base::AppendUTF8(out, Hex(8));
    } else {
      out += c;
    }
  }
  char32_t Hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits && std::isxdigit(static_cast<unsigned char>(Peek())); ++i)
      value = value * 16 + static_cast<char32_t>(std::stoi(std::string(1, text_[at_++]), nullptr, 16));
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

const Type* TypeOf(base::Arena& arena, const Text& type) {
  if (type.fields.empty()) return &kDynType;
  const auto& [kind, content] = type.fields[0];
  if (kind == "primitive" || kind == "wrapper") {
    const std::map<std::string, const Type*> primitives = {
        {"BOOL", kind == "wrapper" ? &kBoolWrapperType : &kBoolType},
        {"INT64", kind == "wrapper" ? &kIntWrapperType : &kIntType},
        {"UINT64", kind == "wrapper" ? &kUintWrapperType : &kUintType},
        {"DOUBLE", kind == "wrapper" ? &kDoubleWrapperType : &kDoubleType},
        {"STRING", kind == "wrapper" ? &kStringWrapperType : &kStringType},
        {"BYTES", kind == "wrapper" ? &kBytesWrapperType : &kBytesType}};
    return primitives.at(content.scalar);
  }
  if (kind == "well_known") {
    if (content.scalar == "TIMESTAMP") return &kTimestampType;
    return content.scalar == "DURATION" ? &kDurationType : &kAnyType;
  }
  if (kind == "list_type") return NewListType(arena, TypeOf(arena, content.At("elem_type")));
  if (kind == "map_type")
    return NewMapType(arena, TypeOf(arena, content.At("key_type")), TypeOf(arena, content.At("value_type")));
  if (kind == "abstract_type" && content.At("name").scalar == "optional_type")
    return NewOptionalType(arena, TypeOf(arena, content.At("parameter_types")));
  if (kind == "null") return &kNullType;
  if (kind == "message_type") return NewObjectType(arena, arena.Copy(content.scalar));
  return &kDynType;
}

// Nothing for a message that CEL values do not have here.
std::optional<Val> ValueOf(base::Arena& arena, const Text& value) {
  if (value.fields.empty()) return Val();
  const auto& [kind, content] = value.fields[0];
  if (kind == "null_value") return Val();
  if (kind == "bool_value") return Val::Bool(content.scalar == "true");
  if (kind == "int64_value") return Val::Int(std::strtoll(content.scalar.c_str(), nullptr, 0));
  if (kind == "uint64_value") return Val::Uint(std::strtoull(content.scalar.c_str(), nullptr, 0));
  if (kind == "double_value") return Val::Double(std::strtod(content.scalar.c_str(), nullptr));
  if (kind == "string_value") return Val::String(arena.Copy(content.scalar));
  if (kind == "bytes_value") return Val::Bytes(arena.Copy(content.scalar));
  if (kind == "type_value") return Val::TypeName(arena.Copy(content.scalar));
  if (kind == "list_value") {
    List* list = NewList(arena, 0);
    for (const Text* item : content.All("values")) {
      const auto read = ValueOf(arena, *item);
      if (!read) return std::nullopt;
      Append(arena, *list, *read);
    }
    return Val::Of(list);
  }
  if (kind == "map_value") {
    Map* map = NewMap(arena, 0);
    for (const Text* entry : content.All("entries")) {
      const auto key = ValueOf(arena, entry->At("key")), item = ValueOf(arena, entry->At("value"));
      if (!key || !item) return std::nullopt;
      map->Set(arena, *key, *item);
    }
    return Val::Of(map);
  }
  if (kind != "object_value" || content.fields.empty()) return std::nullopt;
  const auto& [type, fields] = content.fields[0];
  if (type == "[type.googleapis.com/google.protobuf.Duration]")
    return Val::Duration(std::strtoll(fields.At("seconds").scalar.c_str(), nullptr, 10) * 1'000'000'000 +
                         std::strtoll(fields.At("nanos").scalar.c_str(), nullptr, 10));
  if (type == "[type.googleapis.com/google.protobuf.Timestamp]")
    return Val::Timestamp(std::strtoll(fields.At("seconds").scalar.c_str(), nullptr, 10),
                          std::atoi(fields.At("nanos").scalar.c_str()));
  return std::nullopt;
}

EnvironmentPtr BaseOfSuite() {
  static const EnvironmentPtr kBase = Environment::New(
      {.libraries = {Library::kOptionals, Library::kStrings, Library::kStringsV3, Library::kLists, Library::kSets,
                     Library::kMath, Library::kEncoders, Library::kBindings, Library::kTwoVarComprehensions,
                     Library::kExtLists, Library::kIP, Library::kCIDR, Library::kBlock},
       .literal_validators = false});
  return kBase;
}

// Why a test is not for this implementation; "" for the others.
std::string LeftOut(const Text& test, std::string_view section) {
  const std::string& expression = test.At("expr").scalar;
  if (test.At("disable_check").scalar == "true") return "unchecked expressions";
  if (test.At("disable_macros").scalar == "true") return "macros off";
  if (test.Find("unknown") != nullptr || test.Find("any_unknowns") != nullptr) return "unknowns";
  if (!test.At("container").scalar.empty() && test.At("container").scalar.find("proto") == std::string::npos)
    return "containers";
  if (expression.find("proto2") != std::string::npos || expression.find("proto3") != std::string::npos ||
      expression.find("TestAllTypes") != std::string::npos || expression.find("NullValue") != std::string::npos ||
      test.At("container").scalar.find("proto") != std::string::npos)
    return "protobuf messages and enums";
  if (expression.find("google.protobuf") != std::string::npos) return "protobuf messages and enums";
  for (const Text* declaration : test.All("type_env")) {
    if (declaration->Find("function") != nullptr) return "declared functions";
    if (declaration->At("ident").At("type").Find("message_type") != nullptr) return "protobuf messages and enums";
  }
  if (section.find("format") != std::string_view::npos) return "format of version 4";
  if (expression.find("cel.block") != std::string::npos || expression.find("cel.iterVar") != std::string::npos)
    return "cel.block";
  if (section == "quoted_map_fields") return "backticks, off in Kubernetes";
  const std::string& name = test.At("name").scalar;
  // Literals are folded when the program is made: the plan fails before || and && can absorb it.
  if (name == "map_bad_key_type_or_true" || name == "map_bad_key_type_and_false") return "folded constants";
  if (name.starts_with("map_value_repeat_key")) return "the reference accepts repeated keys";
  if (name == "ipv4_equals_ipv6" || name == "ipv4_not_equals_ipv6") return "mapped addresses, refused by Kubernetes";
  if (name == "map_null_entry_no_such_key" || name == "map_present_key_invalid_field")
    return "errors on bad presence tests, off in Kubernetes";
  if (name == "comprehension_shadowing_selector") return "newer than the reference";
  // mostGeneral() of cel-go answers null for an optional type and null; its own conformance run skips the test.
  if (name == "null_assignable_to_abstract_parameter_candidate") return "the reference deduces null_type";
  if (name == "indexof_out_of_range" || name == "lastindexof_out_of_range") return "strings of version 2 answer -1";
  return "";
}

class Suite {
 public:
  void Run(const std::filesystem::path& path) {
    std::ifstream in(path);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const Text file = TextReader(text).Message('\0');
    int passed = 0, total = 0;
    std::map<std::string, int> left_out;
    for (const Text* section : file.All("section")) {
      for (const Text* test : section->All("test")) {
        const std::string reason = LeftOut(*test, section->At("name").scalar);
        if (!reason.empty()) {
          ++left_out[reason];
          continue;
        }
        base::Arena arena;
        const std::string problem = Check(arena, *test);
        if (problem == "left out") {
          ++left_out["protobuf messages and enums"];
          continue;
        }
        ++total;
        if (problem.empty()) {
          ++passed;
        } else if (shown_++ < 40) {
          std::cout << path.filename().string() << " " << section->At("name").scalar << "/" << test->At("name").scalar
                    << ": " << test->At("expr").scalar << "\n  " << problem << "\n";
        }
      }
    }
    std::cout << path.filename().string() << ": " << passed << " of " << total;
    for (const auto& [reason, count] : left_out) std::cout << ", " << count << " left out (" << reason << ")";
    std::cout << "\n";
    passed_ += passed;
    total_ += total;
  }
  int passed() const { return passed_; }
  int total() const { return total_; }

 private:
  static std::string Check(base::Arena& arena, const Text& test) {
    EnvironmentOptions options;
    ValueActivation activation;
    for (const Text* declaration : test.All("type_env"))
      options.variables.push_back({declaration->At("name").scalar, TypeOf(arena, declaration->At("ident").At("type"))});
    for (const Text* binding : test.All("bindings")) {
      const auto value = ValueOf(arena, binding->At("value").At("value"));
      if (!value) return "left out";
      activation.Set(arena.Copy(binding->At("key").scalar), *value);
    }
    const bool wants_error = test.Find("eval_error") != nullptr;
    const Text* typed = test.Find("typed_result");
    const EnvironmentPtr env = BaseOfSuite()->Extend(std::move(options));
    const auto compiled = Compile(env, test.At("expr").scalar);
    if (!compiled.ok()) return wants_error ? "" : "does not compile: " + compiled.error();
    if (typed != nullptr && typed->Find("deduced_type") != nullptr) {
      const std::string want = ToString(*TypeOf(arena, typed->At("deduced_type")));
      const std::string got = ToString((*compiled)->result_type());
      if (want != got) return "type: want " + want + " got " + got;
      if (test.At("check_only").scalar == "true") return "";
    }
    const auto program = Program::New(env, **compiled);
    if (!program.ok()) return wants_error ? "" : "cannot be planned: " + program.error();
    const GoldenTimeZones zones;
    const EvalResult result = (*program)->Evaluate(arena, activation, {.cost_limit = UINT64_MAX, .time_zones = &zones});
    if (wants_error) return result.ok() ? "want an error, got " + GoldenText(result.value) : "";
    Val want = Val::Bool(true);
    const Text* value = typed != nullptr ? typed->Find("result") : test.Find("value");
    if (value != nullptr) {
      const auto read = ValueOf(arena, *value);
      if (!read) return "left out";
      want = *read;
    }
    if (GoldenText(want) == GoldenText(result.value)) return "";
    return "want " + GoldenText(want) + " got " + GoldenText(result.value);
  }

  int passed_ = 0, total_ = 0, shown_ = 0;
};

TEST(Conformance, Suite) {
  const char* suites = std::getenv("KEELSON_SUITES");
  const std::filesystem::path folder = std::string(suites == nullptr ? "../shared/testdata" : suites) + "/cel";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".textproto") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  Suite suite;
  for (const auto& file : files) suite.Run(file);
  std::cout << "conformance: " << suite.passed() << " of " << suite.total() << "\n";
  EXPECT_GE(suite.passed(), suite.total() * 0.995);
}

}  // namespace
}  // namespace keelson::cel
