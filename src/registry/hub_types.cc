#include "registry/hub_types.h"

#include <algorithm>

#include "base/check.h"
#include "object/json_text.h"
#include "registry/unified_diff.h"

namespace keelson::registry {
namespace {

constexpr int kDepthMax = 64;  // deeper than any hub type nests

bool Consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

HubTypes::HubTypes(std::string_view table) {
  Fields* fields = nullptr;
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    std::string_view line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    bool first = !line.starts_with(' ');
    while (!line.empty()) {
      const std::size_t space = std::min(line.find(' '), line.size());
      const std::string_view word = line.substr(0, space);
      line.remove_prefix(std::min(space + 1, line.size()));
      if (word.empty()) continue;
      if (first) {
        fields = &types_[word];
        first = false;
        continue;
      }
      if (word.starts_with('+')) {
        const auto embedded = types_.find(word.substr(1));
        KS_CHECK(fields != nullptr && embedded != types_.end());
        fields->insert(fields->end(), embedded->second.begin(), embedded->second.end());
        continue;
      }
      const std::size_t colon = word.find(':');
      KS_CHECK(fields != nullptr && colon != std::string_view::npos);
      Field field{word.substr(0, colon), {}, word.substr(colon + 1)};
      if (const std::size_t equals = field.name.find('='); equals != std::string_view::npos) {
        field.json = field.name.substr(equals + 1);
        field.name = field.name.substr(0, equals);
      }
      fields->push_back(field);
    }
  }
}

class HubTypes::Writer {
 public:
  Writer(const HubTypes& types, bool indented) : types_(types), indented_(indented) {}

  void Write(Value value, std::string_view type, Value parent, int depth) {
    KS_CHECK(depth < kDepthMax);
    if (Consume(type, "*")) return value.is_null() ? Plain("null") : Write(value, type, parent, depth);
    if (Consume(type, "[]")) return WriteList(value, type, depth);
    if (Consume(type, "{}")) return WriteMap(value, type, depth);
    if (type == "string" || type == "time" || type == "quantity") {
      if (value.is_string()) return object::AppendJSONString(out_, value.as_string());
      return Plain(type == "string" ? "\"\"" : type == "quantity" ? "\"0\"" : "null");
    }
    if (type == "bool") return Plain(value.as_bool() ? "true" : "false");
    if (type == "int") return Plain(std::to_string(value.as_int()));
    if (type == "intorstring") {
      return value.is_string() ? object::AppendJSONString(out_, value.as_string())
                               : Plain(std::to_string(value.as_int()));
    }
    if (type == "raw") return Plain(value.is_raw() ? object::ToJSON(value) : "null");  // without white space
    const auto fields = types_.types_.find(type);
    KS_CHECK(fields != types_.types_.end());
    WriteStruct(value, type.starts_with('~'), fields->second, parent, depth);
  }

  std::string out_;

 private:
  void Plain(std::string_view text) { out_ += text; }

  void Break(int depth) {
    if (!indented_) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth), ' ');
  }

  void Key(bool& first, std::string_view name, int depth) {
    if (!first) out_ += ',';
    first = false;
    Break(depth + 1);
    object::AppendJSONString(out_, name);
    out_ += indented_ ? ": " : ":";
  }

  void WriteList(Value value, std::string_view type, int depth) {
    if (!value.is_list()) return Plain("null");
    if (value.empty()) return Plain("[]");
    out_ += '[';
    bool first = true;
    for (const Value item : value.items()) {
      if (!first) out_ += ',';
      first = false;
      Break(depth + 1);
      Write(item, type, {}, depth + 1);
    }
    Break(depth);
    out_ += ']';
  }

  void WriteMap(Value value, std::string_view type, int depth) {
    if (!value.is_map()) return Plain("null");
    if (value.empty()) return Plain("{}");
    const auto members = value.members();
    std::vector<object::Member> sorted(members.begin(), members.end());
    std::ranges::sort(sorted, {}, &object::Member::key);
    out_ += '{';
    bool first = true;
    for (const object::Member& member : sorted) {
      Key(first, member.key, depth);
      Write(member.value, type, {}, depth + 1);
    }
    Break(depth);
    out_ += '}';
  }

  void WriteStruct(Value value, bool tagged, const Fields& fields, Value parent, int depth) {
    out_ += '{';
    bool first = true;
    WriteFields(value, tagged, fields, parent, depth, first);
    if (!first) Break(depth);
    out_ += '}';
  }

  void WriteFields(Value value, bool tagged, const Fields& fields, Value parent, int depth, bool& first) {
    for (const Field& field : fields) {
      std::string json(field.json.empty() ? field.name : field.json);
      Value from = value;
      if (json.starts_with('^')) {
        json.erase(0, 1);
        from = parent;
      } else if (field.json.empty() && !tagged) {
        json.front() = static_cast<char>(json.front() | 0x20);
      }
      const Value member = from[json];
      if (field.name == "-") {
        WriteFields(member, true, types_.types_.find(field.type)->second, {}, depth, first);
        continue;
      }
      if (tagged && IsEmpty(member) && !field.type.starts_with('!')) continue;
      std::string_view type = field.type;
      Consume(type, "!");
      Key(first, field.name, depth);
      Write(member, type, value, depth + 1);
    }
  }

  static bool IsEmpty(Value value) {
    switch (value.kind()) {
      case Value::Kind::kNull:
        return true;
      case Value::Kind::kString:
        return value.as_string().empty();
      case Value::Kind::kInt:
        return value.as_int() == 0;
      case Value::Kind::kList:
      case Value::Kind::kMap:
        return value.empty();
      default:
        return false;
    }
  }

  const HubTypes& types_;
  const bool indented_;
};

std::string HubTypes::JSON(Value value, std::string_view type) const {
  Writer writer(*this, false);
  writer.Write(value, type, {}, 0);
  return std::move(writer.out_);
}

std::string HubTypes::Indented(Value value, std::string_view type) const {
  Writer writer(*this, true);
  writer.Write(value, type, {}, 0);
  return std::move(writer.out_);
}

std::string HubTypes::Diff(Value old, Value now, std::string_view type) const {
  return UnifiedDiff(Indented(old, type), Indented(now, type));
}

validation::FieldError InvalidHub(const FieldPath& path, const HubTypes& types, Value value, std::string_view type,
                                  std::string_view detail) {
  return {meta::FieldError::Type::kInvalid, path.ToString(), types.JSON(value, type), std::string(detail)};
}

}  // namespace keelson::registry
