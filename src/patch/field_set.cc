#include "patch/field_set.h"

#include <algorithm>
#include <charconv>

#include "base/escape.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::patch {
namespace {

using base::Arena;
using Node = FieldSet::Node;

constexpr int kFieldsDepthMax = 10000;

int Sign(auto a, auto b) { return a < b ? -1 : b < a ? 1 : 0; }

int Rank(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kInt:
    case Value::Kind::kDouble:
      return 0;
    case Value::Kind::kString:
      return 1;
    case Value::Kind::kBool:
      return 2;
    case Value::Kind::kList:
      return 3;
    case Value::Kind::kMap:
    case Value::Kind::kRaw:
      return 4;
    default:
      return 5;
  }
}

int CompareLists(const Value& a, const Value& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const int order = CompareValues(a[i], b[i]); order != 0) return order;
  }
  return Sign(a.size(), b.size());
}

// As lists of fields sorted by name, which a key's maps are.
int CompareMaps(const Value& a, const Value& b) {
  const auto left = a.members();
  const auto right = b.members();
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (const int order = left[i].key.compare(right[i].key); order != 0) return order < 0 ? -1 : 1;
    if (const int order = CompareValues(left[i].value, right[i].value); order != 0) return order;
  }
  return Sign(left.size(), right.size());
}

std::string ValueText(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return base::GoQuote(value.as_string());
    case Value::Kind::kDouble:
      return object::GoDouble(value.as_double());
    case Value::Kind::kNull:
      return "null";
    default:
      return object::ToJSON(value);
  }
}

bool NeedsNoEscape(std::string_view text) {
  unsigned special = 0;
  for (const char c : text) special |= static_cast<unsigned>(c < 0x20 || c == '"' || c == '\\' || c == 0x7f);
  return special == 0;
}

// As jsoniter writes member names: no HTML escapes.
void AppendName(std::string& out, std::string_view prefix, std::string_view text) {
  out += '"';
  out += prefix;
  if (NeedsNoEscape(text)) {
    out += text;
  } else {
    base::AppendJSONEscaped(out, text);
  }
  out += '"';
}

// Reads FieldsV1 without building the JSON tree in between.
class Reader {
 public:
  Reader(Arena& arena, std::string_view text) : builder_(arena), rest_(text) {}

  std::optional<FieldSet> Document() {
    Node root;
    if (!Object(root, 0)) return std::nullopt;
    Skip();
    if (!rest_.empty()) return std::nullopt;
    return root.children;
  }

 private:
  void Skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  bool Take(char c) {
    Skip();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // The members of an object; a node without children is a member itself.
  bool Object(Node& node, int depth) {
    if (depth > kFieldsDepthMax) return false;
    Skip();
    if (rest_.starts_with("null")) {
      rest_.remove_prefix(4);
      node.member = true;
      return true;
    }
    if (!Take('{')) return false;
    if (Take('}')) {
      node.member = true;
      return true;
    }
    const std::size_t begin = builder_.Begin();
    do {
      std::string_view name;
      if (!String(name) || !Take(':')) return false;
      Node child;
      bool known = true;
      if (name == ".") {
        known = false;
        node.member = true;
      } else if (!Element(name, child.element, known)) {
        return false;
      }
      if (!known) {
        if (!SkipValue(depth + 1)) return false;
        continue;
      }
      if (!Object(child, depth + 1)) return false;
      builder_.Add(child);
    } while (Take(','));
    if (!Take('}')) return false;
    node.children = builder_.Finish(begin);
    if (node.children.empty()) node.member = true;
    return true;
  }

  bool Element(std::string_view name, PathElement& element, bool& known) {
    if (name.size() < 2 || name[1] != ':') return false;
    const std::string_view rest = name.substr(2);
    Arena& arena = builder_.arena();
    switch (name[0]) {
      case 'f':
        element = PathElement::Field(rest);
        return true;
      case 'v': {
        const auto value = object::ParseJSON(arena, rest);
        if (value) element = {PathElement::Kind::kValue, *value};
        return value.has_value();
      }
      case 'k': {
        auto value = object::ParseJSON(arena, rest);
        if (!value || !value->is_map()) return false;
        value->SortMembers();
        element = {PathElement::Kind::kKey, *value};
        return true;
      }
      case 'i': {
        const auto index = base::ParseInt64(rest);
        if (index) element = {PathElement::Kind::kIndex, Value(*index)};
        return index.has_value();
      }
      default:
        known = false;
        return true;
    }
  }

  bool String(std::string_view& out) {
    Skip();
    if (!rest_.starts_with('"')) return false;
    std::size_t end = 1;
    bool escaped = false;
    while (end < rest_.size() && rest_[end] != '"') {
      if (static_cast<std::uint8_t>(rest_[end]) < 0x20) return false;
      escaped |= rest_[end] == '\\';
      end += rest_[end] == '\\' ? 2 : 1;
    }
    if (end >= rest_.size()) return false;
    const std::string_view quoted = rest_.substr(0, end + 1);
    rest_.remove_prefix(end + 1);
    if (!escaped) {
      out = quoted.substr(1, quoted.size() - 2);
      return true;
    }
    const auto value = object::ParseJSON(builder_.arena(), quoted);
    if (value) out = value->as_string();
    return value.has_value();
  }

  bool SkipValue(int depth) {
    if (depth > kFieldsDepthMax) return false;
    Skip();
    if (rest_.empty()) return false;
    if (rest_[0] == '"') {
      std::string_view ignored;
      return String(ignored);
    }
    if (rest_[0] == '{' || rest_[0] == '[') {
      const bool object = rest_[0] == '{';
      rest_.remove_prefix(1);
      const char close = object ? '}' : ']';
      if (Take(close)) return true;
      do {
        std::string_view ignored;
        if (object && (!String(ignored) || !Take(':'))) return false;
        if (!SkipValue(depth + 1)) return false;
      } while (Take(','));
      return Take(close);
    }
    const std::size_t end = std::min(rest_.find_first_of(",}] \t\r\n"), rest_.size());
    const bool ok = object::ParseJSON(builder_.arena(), rest_.substr(0, end)).has_value();
    rest_.remove_prefix(end);
    return ok;
  }

  FieldSetBuilder builder_;
  std::string_view rest_;
};

// A node that is a member and has children says so first: ".":{}.
void AppendContents(std::string& out, const FieldSet& set, bool includes_itself, std::string& scratch) {
  out += includes_itself ? "{\".\":{}" : "{";
  bool first = !includes_itself;
  for (const Node& node : set.nodes()) {
    if (!first) out += ',';
    first = false;
    AppendElement(out, node.element, scratch);
    out += ':';
    if (node.children.empty()) {
      out += "{}";
    } else {
      AppendContents(out, node.children, node.member, scratch);
    }
  }
  out += '}';
}

void Visit(const FieldSet& set, Path& path, const std::function<void(const Path&)>& visit) {
  for (const Node& node : set.nodes()) {
    if (!node.member) continue;
    path.push_back(node.element);
    visit(path);
    path.pop_back();
  }
  for (const Node& node : set.nodes()) {
    if (node.children.empty()) continue;
    path.push_back(node.element);
    Visit(node.children, path, visit);
    path.pop_back();
  }
}

// Walks two sorted levels side by side. `left` and `right` get a node of one alone, `both` the pair.
template <class Left, class Right, class Both>
void Zip(std::span<const Node> a, std::span<const Node> b, Left left, Right right, Both both) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size() ? 1 : j == b.size() ? -1 : Compare(a[i].element, b[j].element);
    if (order < 0) {
      left(a[i++]);
    } else if (order > 0) {
      right(b[j++]);
    } else {
      both(a[i++], b[j++]);
    }
  }
}

FieldSet UnionOf(FieldSetBuilder& builder, const FieldSet& a, const FieldSet& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  const std::size_t begin = builder.Begin();
  const auto keep = [&](const Node& node) { builder.Add(node); };
  Zip(a.nodes(), b.nodes(), keep, keep, [&](const Node& x, const Node& y) {
    builder.Add({x.element, x.member || y.member, UnionOf(builder, x.children, y.children)});
  });
  return builder.Finish(begin);
}

FieldSet IntersectionOf(FieldSetBuilder& builder, const FieldSet& a, const FieldSet& b) {
  if (a.empty() || b.empty()) return {};
  const std::size_t begin = builder.Begin();
  const auto drop = [](const Node&) {};
  Zip(a.nodes(), b.nodes(), drop, drop, [&](const Node& x, const Node& y) {
    builder.Add({x.element, x.member && y.member, IntersectionOf(builder, x.children, y.children)});
  });
  return builder.Finish(begin);
}

FieldSet DifferenceOf(FieldSetBuilder& builder, const FieldSet& a, const FieldSet& b, bool recursive) {
  if (a.empty() || b.empty()) return a;
  const std::size_t begin = builder.Begin();
  Zip(
      a.nodes(), b.nodes(), [&](const Node& node) { builder.Add(node); }, [](const Node&) {},
      [&](const Node& x, const Node& y) {
        if (recursive && y.member) return;
        builder.Add({x.element, x.member && !y.member, DifferenceOf(builder, x.children, y.children, recursive)});
      });
  return builder.Finish(begin);
}

}  // namespace

int CompareValues(const Value& a, const Value& b) {
  const int left = Rank(a);
  const int right = Rank(b);
  if (left == 0 && right == 0) {
    if (a.is_int() && b.is_int()) return Sign(a.as_int(), b.as_int());
    return Sign(a.as_double(), b.as_double());
  }
  if (left != right) return Sign(left, right);
  switch (left) {
    case 1:
      return Sign(a.as_string().compare(b.as_string()), 0);
    case 2:
      return Sign(a.as_bool(), b.as_bool());
    case 3:
      return CompareLists(a, b);
    case 4:
      return a.is_raw() && b.is_raw() ? Sign(a.as_raw().compare(b.as_raw()), 0) : CompareMaps(a, b);
    default:
      return 0;
  }
}

int Compare(const PathElement& a, const PathElement& b) {
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == PathElement::Kind::kField) {
    const int order = a.value.as_string().compare(b.value.as_string());
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  return CompareValues(a.value, b.value);
}

void AppendElement(std::string& out, const PathElement& element, std::string& scratch) {
  if (element.kind == PathElement::Kind::kField) return AppendName(out, "f:", element.value.as_string());
  scratch.clear();
  object::AppendJSON(scratch, element.value);
  AppendName(out,
             element.kind == PathElement::Kind::kKey     ? "k:"
             : element.kind == PathElement::Kind::kValue ? "v:"
                                                         : "i:",
             scratch);
}

std::string PathElement::ToString() const {
  switch (kind) {
    case Kind::kField:
      return "." + std::string(value.as_string());
    case Kind::kKey: {
      std::string out;
      for (const object::Member& member : value.members()) {
        out += (out.empty() ? "[" : ",") + std::string(member.key) + "=" + ValueText(member.value);
      }
      return out.empty() ? "[]" : out + "]";
    }
    case Kind::kValue:
      return "[=" + ValueText(value) + "]";
    case Kind::kIndex:
      return "[" + ValueText(value) + "]";
  }
  return {};
}

std::string ToString(const Path& path) {
  std::string out;
  for (const PathElement& element : path) out += element.ToString();
  return out;
}

FieldSet FieldSetBuilder::Finish(std::size_t begin) {
  const auto level = std::span(scratch_).subspan(begin);
  if (level.empty()) return {};
  const auto less = [](const Node& a, const Node& b) { return Compare(a.element, b.element) < 0; };
  if (!std::ranges::is_sorted(level, less)) std::ranges::sort(level, less);
  auto* nodes = arena_.NewArray<Node>(level.size());
  std::size_t size = 0;
  for (const Node& node : level) {
    if (size > 0 &&
        nodes[size - 1].element == node.element) {  // the same step twice in a document: the later one counts
      nodes[size - 1] = node;
    } else {
      nodes[size++] = node;
    }
  }
  scratch_.resize(begin);
  return FieldSet(std::span<const Node>(nodes, size));
}

FieldSet FieldSet::Of(Arena& arena, const Path& path) {
  FieldSet set;
  for (std::size_t i = path.size(); i-- > 0;) {
    auto* node = arena.New<Node>();
    *node = {path[i], i + 1 == path.size(), set};
    set = FieldSet(std::span<const Node>(node, 1));
  }
  return set;
}

FieldSet FieldSet::OfDotted(Arena& arena, std::string_view dotted) {
  Path path;
  for (const std::string_view name : base::Split(dotted, '.')) path.push_back(PathElement::Field(name));
  return Of(arena, path);
}

const FieldSet::Node* FieldSet::Find(const PathElement& element) const {
  const auto found =
      std::ranges::lower_bound(nodes(), 0, {}, [&](const Node& node) { return Compare(node.element, element); });
  return found != nodes().end() && found->element == element ? &*found : nullptr;
}

bool FieldSet::Has(const Path& path) const {
  FieldSet set = *this;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const Node* node = set.Find(path[i]);
    if (node == nullptr) return false;
    if (i + 1 == path.size()) return node->member;
    set = node->children;
  }
  return false;
}

void FieldSet::ForEach(const std::function<void(const Path&)>& visit) const {
  Path path;
  Visit(*this, path, visit);
}

bool operator==(const FieldSet& a, const FieldSet& b) {
  return a.IsSame(b) || std::ranges::equal(a.nodes(), b.nodes(), [](const Node& x, const Node& y) {
           return x.member == y.member && x.element == y.element && x.children == y.children;
         });
}

FieldSet FieldSet::Union(Arena& arena, const FieldSet& a, const FieldSet& b) {
  FieldSetBuilder builder(arena);
  return UnionOf(builder, a, b);
}

FieldSet FieldSet::UnionAll(Arena& arena, std::span<const FieldSet> sets) {
  if (sets.empty()) return {};
  if (sets.size() == 1) return sets[0];
  const std::size_t half = sets.size() / 2;
  return Union(arena, UnionAll(arena, sets.first(half)), UnionAll(arena, sets.subspan(half)));
}

FieldSet FieldSet::Intersection(Arena& arena, const FieldSet& a, const FieldSet& b) {
  FieldSetBuilder builder(arena);
  return IntersectionOf(builder, a, b);
}

FieldSet FieldSet::Difference(Arena& arena, const FieldSet& a, const FieldSet& b) {
  FieldSetBuilder builder(arena);
  return DifferenceOf(builder, a, b, false);
}

FieldSet FieldSet::RecursiveDifference(Arena& arena, const FieldSet& a, const FieldSet& b) {
  FieldSetBuilder builder(arena);
  return DifferenceOf(builder, a, b, true);
}

std::optional<FieldSet> FieldSet::Parse(Arena& arena, std::string_view json) { return Reader(arena, json).Document(); }

void FieldSet::AppendJSON(std::string& out) const {
  std::string scratch;
  AppendContents(out, *this, false, scratch);
}

std::string FieldSet::ToJSON() const {
  std::string out;
  AppendJSON(out);
  return out;
}

}  // namespace keelson::patch
