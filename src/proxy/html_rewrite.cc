#include "proxy/html_rewrite.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/strings.h"

namespace keelson::proxy {
namespace {

struct URLAttributes {
  std::string_view element;
  std::string_view attributes;  // separated by spaces
};

constexpr URLAttributes kURLAttributes[] = {
    {"a", "href"},
    {"applet", "codebase"},
    {"area", "href"},
    {"audio", "src"},
    {"base", "href"},
    {"blockquote", "cite"},
    {"body", "background"},
    {"button", "formaction"},
    {"command", "icon"},
    {"del", "cite"},
    {"embed", "src"},
    {"form", "action"},
    {"frame", "longdesc src"},
    {"head", "profile"},
    {"html", "manifest"},
    {"iframe", "longdesc src"},
    {"img", "longdesc src usemap"},
    {"input", "src usemap formaction"},
    {"ins", "cite"},
    {"link", "href"},
    {"object", "classid codebase data usemap"},
    {"q", "cite"},
    {"script", "src"},
    {"source", "src"},
    {"video", "poster src"},
};

// Elements whose content is text up to the closing tag.
constexpr std::string_view kRawText[] = {"iframe", "noembed", "noframes", "noscript", "plaintext",
                                         "script", "style",   "textarea", "title",    "xmp"};

constexpr std::pair<std::string_view, char> kEntities[] = {
    {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#34;", '"'}, {"&#39;", '\''}, {"&apos;", '\''}};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string Unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto entity = std::ranges::find_if(
        kEntities, [&](const auto& candidate) { return text[0] == '&' && text.starts_with(candidate.first); });
    if (entity != std::end(kEntities)) {
      out += entity->second;
      text.remove_prefix(entity->first.size());
    } else {
      out += text[0];
      text.remove_prefix(1);
    }
  }
  return out;
}

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\r':
        out += "&#13;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool HoldsURL(std::string_view element, std::string_view attribute) {
  const auto row = std::ranges::find(kURLAttributes, element, &URLAttributes::element);
  if (row == std::end(kURLAttributes)) return false;
  const auto names = base::Split(row->attributes, ' ');
  return std::ranges::find(names, attribute) != names.end();
}

class Page {
 public:
  Page(std::string_view page, const std::function<std::string(std::string_view)>& rewrite)
      : page_(page), rewrite_(rewrite) {}

  std::string Rewrite() {
    while (at_ < page_.size()) {
      const std::size_t open = page_.find('<', at_);
      if (open == std::string_view::npos) break;
      out_ += page_.substr(at_, open - at_);
      at_ = open;
      Markup();
    }
    out_ += page_.substr(std::min(at_, page_.size()));
    return std::move(out_);
  }

 private:
  void CopyThrough(std::size_t end) {
    end = std::min(end, page_.size());
    out_ += page_.substr(at_, end - at_);
    at_ = end;
  }

  void Markup() {
    const std::string_view rest = page_.substr(at_);
    if (rest.starts_with("<!--")) {
      const std::size_t end = page_.find("-->", at_ + 4);
      return CopyThrough(end == std::string_view::npos ? page_.size() : end + 3);
    }
    if (rest.size() < 2 || !IsLetter(rest[1])) {  // a closing tag, a declaration, or a lone '<'
      const bool tag = rest.size() >= 2 && (rest[1] == '/' || rest[1] == '!' || rest[1] == '?');
      const std::size_t end = tag ? page_.find('>', at_) : at_;
      return CopyThrough(end == std::string_view::npos ? page_.size() : end + 1);
    }
    StartTag();
  }

  void StartTag() {
    std::size_t end = at_ + 1;
    while (end < page_.size() && !IsSpace(page_[end]) && page_[end] != '>' && page_[end] != '/') ++end;
    const std::string element = base::ToLower(page_.substr(at_ + 1, end - at_ - 1));
    CopyThrough(end);
    while (at_ < page_.size() && page_[at_] != '>') Attribute(element);
    CopyThrough(at_ + 1);
    if (std::ranges::find(kRawText, element) != std::end(kRawText)) RawText(element);
  }

  // One attribute, or the space and slashes before it.
  void Attribute(const std::string& element) {
    std::size_t end = at_;
    while (end < page_.size() && (IsSpace(page_[end]) || page_[end] == '/')) ++end;
    CopyThrough(end);
    if (at_ >= page_.size() || page_[at_] == '>') return;
    end = at_ + 1;  // a name may begin with '='
    while (end < page_.size() && !IsSpace(page_[end]) && page_[end] != '>' && page_[end] != '/' && page_[end] != '=')
      ++end;
    const std::string name = base::ToLower(page_.substr(at_, end - at_));
    CopyThrough(end);
    while (end < page_.size() && IsSpace(page_[end])) ++end;
    if (end >= page_.size() || page_[end] != '=') return;
    ++end;
    while (end < page_.size() && IsSpace(page_[end])) ++end;
    CopyThrough(end);
    if (at_ >= page_.size() || page_[at_] == '>') return;
    const char quote = page_[at_];
    std::string_view value;
    std::size_t after = 0;
    if (quote == '"' || quote == '\'') {
      const std::size_t close = std::min(page_.find(quote, at_ + 1), page_.size());
      value = page_.substr(at_ + 1, close - at_ - 1);
      after = std::min(close + 1, page_.size());
    } else {
      after = at_;
      while (after < page_.size() && !IsSpace(page_[after]) && page_[after] != '>') ++after;
      value = page_.substr(at_, after - at_);
    }
    if (!HoldsURL(element, name)) return CopyThrough(after);
    const std::string url = Unescape(value);
    const std::string rewritten = rewrite_(url);
    if (rewritten.empty() || rewritten == url) return CopyThrough(after);
    out_ += '"' + Escape(rewritten) + '"';
    at_ = after;
  }

  void RawText(const std::string& element) {
    for (std::size_t from = at_;;) {
      const std::size_t close = page_.find("</", from);
      if (close == std::string_view::npos) return CopyThrough(page_.size());
      if (base::EqualsIgnoreCase(page_.substr(close + 2, element.size()), element)) return CopyThrough(close);
      from = close + 2;
    }
  }

  std::string_view page_;
  const std::function<std::string(std::string_view)>& rewrite_;
  std::string out_;
  std::size_t at_ = 0;
};

struct URLParts {
  std::string_view scheme, host, path, rest;  // rest: query and fragment
};

URLParts Split(std::string_view url) {
  URLParts parts;
  const std::size_t colon = url.find(':');
  const std::size_t slash = url.find_first_of("/?#");
  if (colon != std::string_view::npos && colon > 0 && (slash == std::string_view::npos || colon < slash)) {
    parts.scheme = url.substr(0, colon);
    url.remove_prefix(colon + 1);
  }
  if (url.starts_with("//")) {
    url.remove_prefix(2);
    const std::size_t end = std::min(url.find_first_of("/?#"), url.size());
    parts.host = url.substr(0, end);
    url.remove_prefix(end);
  }
  const std::size_t end = std::min(url.find_first_of("?#"), url.size());
  parts.path = url.substr(0, end);
  parts.rest = url.substr(end);
  return parts;
}

}  // namespace

std::string JoinPath(std::string_view a, std::string_view b) {
  std::vector<std::string_view> kept;
  const std::string joined = std::string(a) + "/" + std::string(b);
  const bool rooted = joined.starts_with('/');
  for (const std::string_view part : base::Split(joined, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!kept.empty() && kept.back() != "..") {
        kept.pop_back();
      } else if (!rooted) {
        kept.push_back(part);
      }
      continue;
    }
    kept.push_back(part);
  }
  std::string out = rooted ? "/" : "";
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (i > 0) out += '/';
    out += kept[i];
  }
  return out;
}

std::string CleanPreservingTrailingSlash(std::string_view path) {
  if (path.empty()) return std::string();
  std::string cleaned = JoinPath("", path);
  if (path.ends_with('/') && !cleaned.ends_with('/')) cleaned += '/';
  return cleaned;
}

std::string RewriteURL(const RewriteRules& rules, std::string_view url) {
  const URLParts parts = Split(url);
  const bool other_host = !parts.host.empty() && parts.host != rules.source_host && parts.host != rules.request_host;
  if (other_host || !parts.path.starts_with('/')) return std::string(url);
  std::string scheme(parts.scheme), host(parts.host);
  if (!(parts.host == rules.request_host && rules.scheme.empty() && rules.host.empty())) {
    scheme = rules.scheme;
    host = rules.host;
  }
  std::string path(parts.path);
  if (!path.starts_with(rules.path_prepend)) {
    path = JoinPath(rules.path_prepend, parts.path);
    if (parts.path.ends_with('/') && !path.ends_with('/')) path += '/';
  }
  std::string out;
  if (!scheme.empty()) out += scheme + ":";
  if (!host.empty() || !scheme.empty()) out += "//" + host;
  return out + path + std::string(parts.rest);
}

std::string RewriteHTML(std::string_view page, const std::function<std::string(std::string_view url)>& rewrite) {
  return Page(page, rewrite).Rewrite();
}

}  // namespace keelson::proxy
