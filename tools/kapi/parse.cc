#include <algorithm>
#include <cstdio>
#include <fstream>

#include "model.h"

namespace kapi {
namespace {

constexpr std::string_view kScalars[] = {"string",        "bool", "int32",     "int64",    "double",
                                         "bytes",         "time", "microtime", "duration", "quantity",
                                         "int-or-string", "raw",  "fieldsv1",  "json"};

constexpr int kTypeDepthMax = 16;  // [][]map<...>: what the tables need is 3

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 10 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Splits at `separator` outside double quotes, and takes the quotes off.
std::vector<std::string> SplitQuoted(std::string_view text, char separator) {
  std::vector<std::string> pieces(1);
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

}  // namespace

void Report(const Place& place, const std::string& text) {
  std::fprintf(stderr, "%s:%d: %s\n", place.file.c_str(), place.line, text.c_str());
}

void Parser::Error(const std::string& text) {
  failed_ = true;
  Report(place_, text);
}

// Words are separated by white space; quotes stay, for SplitQuoted to take off after the word was cut at its signs.
std::vector<std::string> Parser::Words(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false;
  bool inside = false;
  for (const char c : line) {
    if (!quoted && (c == ' ' || c == '\t' || c == '\r')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == '"') quoted = !quoted;
    words.back() += c;
  }
  if (quoted) Error("a quote is not closed");
  return words;
}

bool Parser::ParseFile(const std::string& path, const std::string& shown, Model& model) {
  std::ifstream in(path);
  place_ = {shown, 0};
  section_ = Section::kNone;
  if (!in) {
    Error("cannot be read");
    return false;
  }
  PackageDef package;
  package.file = shown;
  std::string line;
  while (std::getline(in, line)) {
    ++place_.line;
    ParseLine(line, package);
  }
  if (package.name.empty()) Error("no `package` line");
  model.packages.push_back(std::move(package));
  return !failed_;
}

void Parser::ParseLine(const std::string& line, PackageDef& package) {
  const auto words = Words(line);
  if (words.empty() || words[0][0] == '#') return;
  const bool indented = line[0] == ' ' || line[0] == '\t';
  if (indented) {
    if (section_ == Section::kResource) {
      ParseResourceLine(words, package);
    } else if (section_ == Section::kType) {
      ParseField(words, package);
    } else {
      Error("an indented line belongs to a `type` or a `resource`");
    }
    return;
  }
  if (words[0] == "package" || words[0] == "serves") {
    ParseHeader(words, package);
  } else if (words[0] == "resource") {
    ParseResource(words, package);
  } else if (words[0] == "type") {
    ParseType(words, package);
  } else {
    Error("unknown word `" + words[0] + "`: package, serves, resource or type is expected");
  }
}

void Parser::ParseHeader(const std::vector<std::string>& words, PackageDef& package) {
  if (words[0] == "package") {
    if (words.size() != 4 || words[2] != "proto") return Error("expected `package NAME proto PROTO.PACKAGE`");
    if (!package.name.empty()) return Error("a second `package` line");
    package.name = words[1];
    package.proto = words[3];
    return;
  }
  if (words.size() < 2 || words.size() > 3) return Error("expected `serves GROUP/VERSION [priority=GROUP,VERSION]`");
  if (words.size() == 3 && !ParsePriority(words[2], package)) return Error("expected `priority=GROUP,VERSION`");
  const auto slash = words[1].find('/');
  package.serves = true;
  package.group = slash == std::string::npos ? "" : words[1].substr(0, slash);
  package.version = slash == std::string::npos ? words[1] : words[1].substr(slash + 1);
}

bool Parser::ParsePriority(std::string_view word, PackageDef& package) {
  if (!word.starts_with("priority=")) return false;
  const auto numbers = SplitQuoted(word.substr(9), ',');
  if (numbers.size() != 2 || !IsNumber(numbers[0]) || !IsNumber(numbers[1])) return false;
  if (numbers[0].size() > 6 || numbers[1].size() > 6) return false;
  package.group_priority = std::stoi(numbers[0]);
  package.version_priority = std::stoi(numbers[1]);
  return true;
}

void Parser::ParseResource(const std::vector<std::string>& words, PackageDef& package) {
  section_ = Section::kResource;
  package.resources.emplace_back().place = place_;
  if (words.size() < 4)
    return Error("expected `resource PLURAL KIND namespaced|cluster [singular=] [short=] [categories=]`");
  ResourceDef& resource = package.resources.back();
  resource.plural = words[1];
  resource.kind = words[2];
  if (words[3] != "namespaced" && words[3] != "cluster")
    return Error("`" + words[3] + "` is neither namespaced nor cluster");
  resource.namespaced = words[3] == "namespaced";
  for (std::size_t i = 4; i < words.size(); ++i) {
    const auto sign = words[i].find('=');
    const std::string key = words[i].substr(0, sign);
    if (sign == std::string::npos) return Error("unknown word `" + words[i] + "`");
    const std::string value = words[i].substr(sign + 1);
    if (key == "singular") {
      resource.singular = value;
    } else if (key == "short") {
      resource.short_names = SplitQuoted(value, ',');
    } else if (key == "categories") {
      resource.categories = SplitQuoted(value, ',');
    } else {
      return Error("unknown attribute `" + key + "` of a resource");
    }
  }
}

void Parser::ParseResourceLine(const std::vector<std::string>& words, PackageDef& package) {
  ResourceDef& resource = package.resources.back();
  if (words[0] == "verbs") {
    resource.verbs.assign(words.begin() + 1, words.end());
  } else if (words[0] == "sub") {
    if (words.size() < 4) return Error("expected `sub NAME KIND VERB...`");
    SubresourceDef sub{
        .name = words[1], .kind_group = package.group, .kind_version = package.version, .kind = words[2]};
    if (const auto slash = words[2].find('/'); slash != std::string::npos) {  // group/version.Kind
      const auto dot = words[2].find('.', slash);
      if (dot == std::string::npos) return Error("expected group/version.Kind");
      sub.kind_group = words[2].substr(0, slash);
      sub.kind_version = words[2].substr(slash + 1, dot - slash - 1);
      sub.kind = words[2].substr(dot + 1);
    }
    sub.verbs.assign(words.begin() + 3, words.end());
    resource.subresources.push_back(std::move(sub));
  } else if (words[0] == "columns") {
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto pieces = SplitQuoted(words[i], ':');
      if (pieces.size() < 2) return Error("a column is NAME:TYPE[:name][:wide]");
      ColumnDef column{.name = pieces[0], .type = pieces[1]};
      for (std::size_t p = 2; p < pieces.size(); ++p) {
        if (pieces[p] == "wide") {
          column.priority = 1;
        } else {
          column.format = pieces[p];
        }
      }
      resource.columns.push_back(std::move(column));
    }
  } else if (words[0] == "facts") {
    for (std::size_t i = 1; i < words.size(); ++i) ParseFact(words[i], resource);
  } else {
    Error("unknown word `" + words[0] + "`: verbs, sub, columns or facts is expected");
  }
}

void Parser::ParseFact(const std::string& word, ResourceDef& resource) {
  const auto sign = word.find('=');
  const std::string key = word.substr(0, sign);
  const auto known = std::ranges::find(kFactWords, key, &FactWord::word);
  if (known == std::end(kFactWords)) return Error("unknown fact `" + key + "`");
  if (known->has_value != (sign != std::string::npos))
    return Error("fact `" + key + (known->has_value ? "` needs a value" : "` has no value"));
  const std::string value = sign == std::string::npos ? "" : SplitQuoted(word.substr(sign + 1), '\n')[0];
  if (!resource.facts.emplace(key, value).second) Error("fact `" + key + "` is there twice");
}

void Parser::ParseType(const std::vector<std::string>& words, PackageDef& package) {
  section_ = Section::kType;
  TypeDef& type = package.types.emplace_back();
  type.place = place_;
  if (words.size() < 2) return Error("expected `type NAME`");
  type.name = words[1];
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "map=atomic") {
      type.atomic = true;
    } else if (word.starts_with("union(") && word.ends_with(")") && word.find(':') != std::string::npos) {
      const auto colon = word.find(':');
      type.is_union = true;
      type.discriminator = word.substr(6, colon - 6);
      type.members = SplitQuoted(std::string_view(word).substr(colon + 1, word.size() - colon - 2), ',');
    } else {
      return Error("unknown attribute `" + word + "` of a type");
    }
  }
}

void Parser::ParseField(const std::vector<std::string>& words, PackageDef& package) {
  FieldDef& field = package.types.back().fields.emplace_back();
  field.place = place_;
  // A field without a JSON name begins with its number; a name of digits alone does not occur.
  std::size_t at = IsNumber(words[0]) ? 0 : 1;
  if (words.size() < at + 2) return Error("expected `NAME NUMBER TYPE [ATTRIBUTE...]`");
  if (at == 1) field.name = words[0];
  const std::string& number = words[at];
  if (number != "-" && !IsNumber(number)) return Error("`" + number + "` is no protobuf field number (use - for none)");
  if (number != "-") field.number = static_cast<std::uint32_t>(std::stoul(number));
  if (number != "-" && (field.number == 0 || field.number > 536870911))
    return Error("protobuf field number out of range");
  std::string_view type = words[at + 1];
  if (type.starts_with('*')) {
    field.pointer = true;
    type.remove_prefix(1);
  }
  field.type = ParseTypeRef(type);
  if (field.name == "inline") {
    field.inlined = true;
    field.name.clear();
    if (field.type.shape != TypeRef::Shape::kNamed || field.pointer) return Error("only a struct can be inlined");
  }
  for (std::size_t i = at + 2; i < words.size(); ++i) ParseAttribute(words[i], field);
  if (field.wrapped) field.type.wrapped = true;
}

void Parser::ParseAttribute(const std::string& word, FieldDef& field) {
  const auto sign = word.find('=');
  const std::string key = word.substr(0, sign);
  const std::string value = sign == std::string::npos ? "" : word.substr(sign + 1);
  if (word == "always") {
    field.always = true;
  } else if (word == "required") {
    field.required = true;
  } else if (word == "omitzero") {
    field.omit_zero = true;
  } else if (word == "proto-required") {
    // proto2's `required` writes and reads as our always-written scalars do.
  } else if (word == "wrapped") {
    if (field.type.shape != TypeRef::Shape::kList) return Error("only a list can be wrapped");
    field.wrapped = true;
  } else if (key == "list") {
    const auto open = value.find('(');
    field.list = value.substr(0, open);
    if (open != std::string::npos)
      field.list_keys = SplitQuoted(std::string_view(value).substr(open + 1, value.size() - open - 2), ',');
    if (field.list != "atomic" && field.list != "set" && field.list != "map")
      return Error("unknown list type `" + field.list + "`");
    if ((field.list == "map") == field.list_keys.empty()) return Error("list=map needs keys, other lists have none");
  } else if (key == "map") {
    field.map = value;
    if (value != "atomic" && value != "granular") return Error("unknown map type `" + value + "`");
  } else if (key == "patch") {
    field.patch = value;
    if (value != "merge" && value != "replace" && value != "retainKeys" && value != "merge,retainKeys") {
      return Error("unknown patch strategy `" + value + "`");
    }
  } else if (key == "key") {
    field.key = value;
  } else if (key == "enum") {
    field.enum_values = SplitQuoted(value, '|');
  } else if (key == "default") {
    field.has_default = true;
    field.default_value = SplitQuoted(value, '\n')[0];
  } else {
    Error("unknown attribute `" + word + "`");
  }
}

TypeRef Parser::ParseTypeRef(std::string_view text, int depth) {
  TypeRef type;
  if (depth > kTypeDepthMax) {
    Error("a type is nested too deeply");
    return type;
  }
  if (text.starts_with("[]")) {
    type.shape = TypeRef::Shape::kList;
    type.element.push_back(ParseTypeRef(text.substr(2), depth + 1));
  } else if (text.starts_with("map<") && text.ends_with(">")) {
    type.shape = TypeRef::Shape::kMap;
    type.element.push_back(ParseTypeRef(text.substr(4, text.size() - 5), depth + 1));
    // protobuf has no map of lists: Kubernetes gives the list a message of its own there.
    if (type.element[0].shape == TypeRef::Shape::kList) type.element[0].wrapped = true;
  } else if (std::ranges::find(kScalars, text) != std::end(kScalars)) {
    type.name = text;
  } else if (text.empty() || text.starts_with('*')) {
    Error("`" + std::string(text) + "` is no type");
  } else {
    type.shape = TypeRef::Shape::kNamed;
    const auto dot = text.rfind('.');
    type.package = dot == std::string_view::npos ? "" : text.substr(0, dot);
    type.name = dot == std::string_view::npos ? text : text.substr(dot + 1);
    if (type.name.empty() || type.name[0] < 'A' || type.name[0] > 'Z') Error("`" + std::string(text) + "` is no type");
  }
  return type;
}

}  // namespace kapi
