#include "apidocs/openapi_descriptions.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "apidocs/openapi_descriptions_text.h"

namespace keelson::apidocs {
namespace {

// "  name: text" in two, without white space at the ends. "name" alone has no text.
struct Line {
  std::string_view name;
  std::string_view text;
  bool indented;
};

using TypeName = std::pair<std::string_view, std::string_view>;  // package, type

// A type and the lines of its fields.
struct Block {
  TypeName name;
  TypeName like;  // {"", ""}: none
  std::string_view text;
  std::string_view fields;
};

constexpr int kLikeDepthMax = 4;

// Takes the next line off `text`; nothing at its end. Comments and empty lines are skipped.
std::optional<Line> NextLine(std::string_view& text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;
    const bool indented = line[0] == ' ';
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return Line{line, {}, indented};
    return Line{line.substr(0, colon), line.substr(colon + 2), indented};
  }
  return std::nullopt;
}

TypeName SplitName(std::string_view name) {
  const std::size_t space = name.find(' ');
  return {name.substr(0, space), name.substr(space + 1)};
}

std::vector<Block> ParseBlocks(std::string_view text) {
  constexpr std::string_view kLike = " like ";
  std::vector<Block> blocks;
  while (const auto line = NextLine(text)) {
    if (line->indented) {
      std::string_view& fields = blocks.back().fields;
      fields = {fields.data(), text.data()};
      continue;
    }
    const std::size_t like = line->name.find(kLike);
    Block block{SplitName(line->name.substr(0, like)), {}, line->text, {text.data(), text.data()}};
    if (like != std::string_view::npos) block.like = SplitName(line->name.substr(like + kLike.size()));
    blocks.push_back(block);
  }
  return blocks;
}

class Descriptions {
 public:
  explicit Descriptions(std::string_view text) : blocks_(ParseBlocks(text)) {
    std::ranges::sort(blocks_, {}, &Block::name);
  }

  std::string_view Find(std::string_view package, std::string_view type, std::string_view field) const {
    const std::string_view group = package.substr(0, package.find('/'));
    for (const std::string_view place : {package, group}) {
      if (const std::string_view text = FindIn({place, type}, field, kLikeDepthMax); !text.empty()) return text;
    }
    return FindForAll(type, field);
  }

 private:
  const Block* FindBlock(const TypeName& name) const {
    const auto found = std::ranges::lower_bound(blocks_, name, {}, &Block::name);
    return found == blocks_.end() || found->name != name ? nullptr : &*found;
  }

  static std::string_view FindField(const Block& block, std::string_view field) {
    std::string_view fields = block.fields;
    while (const auto line = NextLine(fields)) {
      if (line->name == field) return line->text;
    }
    return {};
  }

  std::string_view FindIn(const TypeName& name, std::string_view field, int depth) const {
    const Block* block = FindBlock(name);
    if (block == nullptr) return {};
    if (field.empty()) return block->text;
    const std::string_view text = FindField(*block, field);
    if (!text.empty() || block->like.first.empty() || depth == 0) return text;
    return FindIn(block->like, field, depth - 1);
  }

  // The blocks "* *Suffix", the longest suffix first.
  std::string_view FindForAll(std::string_view type, std::string_view field) const {
    const auto all = std::ranges::equal_range(blocks_, std::string_view("*"), {},
                                              [](const Block& block) { return block.name.first; });
    std::string_view text;
    std::size_t longest = 0;
    for (const Block& block : all) {
      const std::string_view suffix = block.name.second.substr(1);
      if (!type.ends_with(suffix) || suffix.size() < longest) continue;
      const std::string_view found = field.empty() ? block.text : FindField(block, field);
      if (found.empty()) continue;
      text = found;
      longest = suffix.size();
    }
    return text;
  }

  std::vector<Block> blocks_;  // sorted by name
};

}  // namespace

std::string_view FindDescription(std::string_view package, std::string_view type, std::string_view field) {
  static const Descriptions descriptions(kDescriptionsText);
  return descriptions.Find(package, type, field);
}

}  // namespace keelson::apidocs
