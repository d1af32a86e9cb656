#include "registry/testing/corpus.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/strings.h"
#include "codec/json.h"
#include "registry/unified_diff.h"
#include "schema/schema.h"
#include "validation/primitives.h"

namespace keelson::registry::testing {
namespace {

namespace fs = std::filesystem;

fs::path Root() {
  if (const char* root = std::getenv("KEELSON_CORPUS")) return root;
  return "test/recordings/corpus";
}

// The value for a placeholder; "" for those that are never compared and stay as they are.
std::string ValueFor(std::string_view stand_in) {
  const std::size_t digits = std::min(stand_in.find_first_of("0123456789"), stand_in.size());
  const std::string_view kind = stand_in.substr(0, digits);
  const std::string number(stand_in.substr(digits));
  if (kind == "port") return "3000" + number;
  if (kind == "ip") return "10.0.0.1" + number;
  if (kind == "created" || kind == "t" || kind == "time") return std::string(kPlayedAt);
  if (kind == "rv" || kind == "lrv") return "1";
  if (kind == "uid") return std::string(kPlayedUID);
  if (kind == "gen") return "abcde";
  if (kind == "ns" || kind == "pfx") return std::string(kind);
  return {};
}

// Replaces placeholders by values of the right shape, the same on both sides of a comparison.
std::string Substitute(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = std::min(text.find("${", at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) return out.append(text.substr(open));
    const std::string_view stand_in = text.substr(open + 2, close - open - 2);
    const std::string value = ValueFor(stand_in);
    at = close + 1;
    // A port alone in its quotes is a number.
    if (stand_in.starts_with("port") && out.ends_with('"') && text.substr(at).starts_with('"')) {
      out.pop_back();
      ++at;
    }
    out += value.empty() ? text.substr(open, close + 1 - open) : std::string_view(value);
  }
  return out;
}

std::vector<std::string> Expected(Value response) {
  std::vector<std::string> causes;
  if (response["status"].as_int() != 422) return causes;
  for (const Value cause : response["body"]["details"]["causes"].items()) {
    causes.push_back(std::string(cause["field"].as_string()) + ": " + std::string(cause["message"].as_string()));
  }
  return causes;
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text.empty() ? "    (none)\n" : text;
}

// RFC 7396, as the server applies merge patches.
Value Merge(base::Arena& arena, Value target, Value patch) {
  if (!patch.is_map()) return patch;
  Value merged = target.is_map() ? target : Value::Map(arena);
  for (const object::Member& member : patch.members()) {
    if (member.value.is_null()) {
      merged.Erase(member.key);
    } else {
      merged.Set(arena, member.key, Merge(arena, merged[member.key], member.value));
    }
  }
  return merged;
}

class Runner {
 public:
  Runner(const CorpusOptions& options, CorpusResult& result)
      : options_(options), result_(result), player_(options.before_validation) {}

  void Run(const std::string& name, Value steps) {
    if (std::ranges::find(options_.skip, name) != options_.skip.end()) {
      ++result_.skipped;
      return;
    }
    int number = 0;
    for (const Value step : steps.items())
      Step(name + " step " + std::to_string(++number), step["request"], step["response"]);
  }

 private:
  void Step(const std::string& name, Value request, Value response) {
    const std::string_view method = request["method"].as_string(), path = request["path"].as_string();
    const std::int64_t code = response["status"].as_int();
    const Target target = ParsePath(path);
    if (target.resource == nullptr) return;
    const Value body = response["body"];
    if (method == "GET" && body["kind"].as_string() == "Table") return CheckTable(name, target, body);
    // Scale is another kind, and a binding is not a stored object.
    const bool stored = target.subresource != "scale" && target.resource->kind != "Binding";
    if (stored && ((method == "POST" && target.subresource.empty()) || method == "PUT" || method == "PATCH")) {
      const Value object = RequestedObject(method, request, target);
      const auto known = known_.find(target.name);
      const bool found = method == "POST" || known != known_.end();
      if (found && (code == 200 || code == 201 || (code == 422 && !IsAboutOptions(body))))
        Check(name + " " + std::string(method), target, response,
              method == "POST" ? player_.Create(target, object) : player_.Update(target, object, known->second));
    }
    // The recorded object is the state for later steps.
    if (code < 300 && body["kind"].as_string() == target.resource->kind &&
        path.find("dryRun") == std::string_view::npos) {
      if (const Value object = Decode(body, target); !object.is_null()) {
        known_[std::string(object["metadata"]["name"].as_string())] = player_.ToHub(target, object);
      }
    }
  }

  static bool IsAboutOptions(Value status) {
    for (const Value cause : status["details"]["causes"].items()) {
      const std::string_view field = cause["field"].as_string();
      if (field == "dryRun" || field == "fieldManager" || field == "fieldValidation" || field == "force") return true;
    }
    return false;
  }

  Value RequestedObject(std::string_view method, Value request, const Target& target) {
    if (method != "PATCH") return Decode(request["body"], target);
    if (request["headers"]["Content-Type"].as_string() != "application/merge-patch+json" ||
        !known_.contains(target.name))
      return {};
    std::string text;
    codec::EncodeJSON(player_.FromHub(target, known_[target.name]), *target.resource->type, text);
    auto plain = codec::DecodeJSON(player_.arena(), player_.arena().Copy(text));
    if (!plain.ok()) return {};
    return Decode(Merge(player_.arena(), plain->value, request["body"]), target);
  }

  Value Decode(Value body, const Target& target) {
    if (body.is_null()) return {};
    std::string text;
    codec::EncodeJSON(body, text);
    return player_.Decode(target, text);
  }

  void Report(const std::string& name, const std::string& expected, const std::string& got) {
    if (expected == got) {
      ++result_.passed;
    } else {
      ++result_.failed;
      result_.failures.push_back(name + "\n  expected\n" + expected + "  got\n" + got);
    }
  }

  void Check(const std::string& name, const Target& target, Value response, const Player::Outcome& outcome) {
    if (!outcome.ran) return;
    Report(name, Lines(Expected(response)), Lines(outcome.errors));
    if (!outcome.errors.empty() || response["status"].as_int() == 422) return;
    CompareWarnings(name + " warnings", response, outcome.warnings);
    if (const Value answer = Decode(response["body"], target); !answer.is_null())
      CompareObjects(name + " object", *target.resource, answer, player_.FromHub(target, outcome.object));
  }

  void CompareWarnings(const std::string& name, Value response, const std::vector<std::string>& warnings) {
    std::vector<std::string> expected, got;
    for (const Value header : response["headers"]["Warning"].items()) {
      const std::string_view text = header.as_string();
      // Decoders and the deprecation of whole APIs warn elsewhere.
      if (text.find("unknown field") != std::string_view::npos ||
          text.find("is deprecated in v") != std::string_view::npos)
        continue;
      expected.emplace_back(text);
    }
    for (const std::string& warning : warnings) got.push_back("299 - " + base::GoQuote(warning));
    Report(name, Lines(expected), Lines(got));
  }

  void CompareObjects(const std::string& name, const schema::Resource& resource, Value expected, Value got) {
    const auto text = [&](Value object) {
      Value copy = object.Clone(player_.arena());
      Value metadata = copy["metadata"];
      for (const std::string_view key : {"managedFields", "resourceVersion", "uid", "creationTimestamp", "name"})
        metadata.Erase(key);
      options_.compare_without(player_.arena(), copy);
      std::string json, indented;
      codec::EncodeJSON(copy, *resource.type, json);
      codec::IndentJSON(json, indented);
      return indented;
    };
    const std::string difference = UnifiedDiff(text(expected), text(got));
    Report(name, "", difference);
  }

  // Cells that change with time are recorded as placeholders and not compared.
  void CheckTable(const std::string& name, const Target& target, Value table) {
    if (!target.subresource.empty()) return;
    for (const Value row : table["rows"].items()) {
      const auto known = known_.find(row["object"]["metadata"]["name"].as_string());
      if (known == known_.end()) continue;
      const Value cells = player_.Row(target, known->second);
      if (cells.is_null()) return;
      std::vector<std::string> expected, got;
      for (std::size_t i = 0; i < std::max(row["cells"].size(), cells.size()); ++i) {
        const std::string wanted = validation::RenderValue(row["cells"][i]);
        expected.push_back(wanted);
        got.push_back(wanted.find("${") == std::string::npos ? validation::RenderValue(cells[i]) : wanted);
      }
      Report(name + " row", Lines(expected), Lines(got));
    }
  }

  const CorpusOptions& options_;
  CorpusResult& result_;
  Player player_;
  std::map<std::string, Value, std::less<>> known_;  // objects as the recording has them now, in the hub's version
};

}  // namespace

std::vector<std::string> CorpusFiles(std::string_view below) {
  const fs::path top = Root() / below;
  std::vector<std::string> files;
  if (fs::is_regular_file(top)) files.push_back(top);
  if (!fs::is_directory(top)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(top)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

CorpusResult RunCorpus(const std::string& file, const CorpusOptions& options) {
  CorpusResult result;
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  base::Arena arena;
  auto decoded = codec::DecodeJSON(arena, Substitute(text.str()));
  if (!decoded.ok()) {
    result.failed = 1;
    result.failures.push_back(file + ": " + decoded.error().message);
    return result;
  }
  const std::string name = fs::path(file).stem();
  for (const Value one : decoded->value["cases"].items()) {
    Runner(options, result).Run(name + "/" + std::string(one["name"].as_string()), one["steps"]);
  }
  return result;
}

}  // namespace keelson::registry::testing
