#include "audit/event.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/strings.h"
#include "codec/json.h"
#include "object/json_text.h"
#include "object/time.h"

namespace keelson::audit {
namespace {

class JSONPayload final : public Payload {
 public:
  explicit JSONPayload(base::SharedBytes json) : json_(std::move(json)) {}
  void Write(const Emit& emit, bool omit_managed_fields) const override {
    if (omit_managed_fields) return WriteWithoutManagedFields(json_.view(), emit);
    emit(json_.view());
  }

 private:
  base::SharedBytes json_;
};

// A body as a client sent it, written without white space between its tokens, as Go writes raw JSON.
class RawPayload final : public Payload {
 public:
  explicit RawPayload(base::SharedBytes body)
      : body_(std::move(body)), valid_(codec::JSONSyntaxError(body_.view()).empty()) {}
  bool valid() const override { return valid_; }
  void Write(const Emit& emit, bool omit_managed_fields) const override {
    std::string compact;
    bool inside = false;  // a string
    const std::string_view text = body_.view();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '"') inside = !inside;
      if (inside && c == '\\') compact += text[i++];
      if (inside || (c != ' ' && c != '\n' && c != '\t' && c != '\r')) compact += text[i];
    }
    if (omit_managed_fields) return WriteWithoutManagedFields(compact, emit);
    emit(compact);
  }

 private:
  base::SharedBytes body_;
  bool valid_;
};

// The copier's position in an object; managedFields are left out of kMetadata only.
enum class Place : std::uint8_t { kObject, kMetadata, kItems, kRows, kRow, kOther };

Place Inside(Place place, std::string_view key) {
  if (place == Place::kObject) {
    if (key == "metadata") return Place::kMetadata;
    if (key == "items") return Place::kItems;
    if (key == "rows") return Place::kRows;
  }
  if (place == Place::kRow && key == "object") return Place::kObject;
  return Place::kOther;
}

// Copies one JSON value. The text is our own encoder's, so it is well formed.
class Copier {
 public:
  Copier(std::string_view json, const Emit& emit) : json_(json), emit_(emit) {}

  void Run() {
    Copy(Place::kObject);
    Flush(json_.size());
  }

 private:
  void Copy(Place place) {
    SkipSpace();
    if (place != Place::kOther && At() == '{') return CopyMembers(place);
    if ((place == Place::kItems || place == Place::kRows) && At() == '[')
      return CopyElements(place == Place::kItems ? Place::kObject : Place::kRow);
    Skip();
  }

  void CopyMembers(Place place) {
    ++next_;  // {
    bool first = true;
    for (SkipSpace(); At() != '}' && next_ < json_.size(); SkipSpace()) {
      const std::size_t begin = next_;
      if (At() == ',') ++next_;
      SkipSpace();
      const std::size_t key_begin = next_;
      SkipString();
      const std::string_view key = json_.substr(key_begin + 1, next_ - key_begin - 2);
      SkipSpace();
      ++next_;  // :
      if (place == Place::kMetadata && key == "managedFields") {
        SkipSpace();
        Skip();
        Flush(begin);
        if (first && At() == ',') ++next_;
        kept_ = next_;
        continue;
      }
      first = false;
      Copy(Inside(place, key));
    }
    ++next_;  // }
  }

  void CopyElements(Place place) {
    ++next_;  // [
    for (SkipSpace(); At() != ']' && next_ < json_.size(); SkipSpace()) {
      if (At() == ',') ++next_;
      Copy(place);
    }
    ++next_;  // ]
  }

  // Behind one value of any kind, without recursion.
  void Skip() {
    int depth = 0;
    while (next_ < json_.size()) {
      const char c = At();
      if (c == '"') {
        SkipString();
        if (depth == 0) return;
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return;
      ++next_;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return;
    }
  }

  void SkipString() {
    for (++next_; next_ < json_.size() && At() != '"'; ++next_) {
      if (At() == '\\') ++next_;
    }
    ++next_;
  }
  void SkipSpace() {
    while (next_ < json_.size() && (At() == ' ' || At() == '\n' || At() == '\t' || At() == '\r')) ++next_;
  }
  char At() const { return next_ < json_.size() ? json_[next_] : '\0'; }
  void Flush(std::size_t end) {
    end = std::min(end, json_.size());
    if (end > kept_) emit_(json_.substr(kept_, end - kept_));
    kept_ = end;
  }

  const std::string_view json_;
  const Emit& emit_;
  std::size_t next_ = 0;
  std::size_t kept_ = 0;  // where what was not emitted yet begins
};

void Member(std::string& out, std::string_view key, std::string_view text) {
  if (out.back() != '{') out += ',';
  out += '"';
  out += key;
  out += "\":";
  object::AppendJSONString(out, text);
}

void MemberIfAny(std::string& out, std::string_view key, std::string_view text) {
  if (!text.empty()) Member(out, key, text);
}

void AppendList(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (const std::string& text : texts) {
    if (out.back() != '[') out += ',';
    object::AppendJSONString(out, text);
  }
  out += ']';
}

void AppendUser(std::string& out, const request::User& user) {
  out += '{';
  MemberIfAny(out, "username", user.name);
  MemberIfAny(out, "uid", user.uid);
  if (!user.groups.empty()) {
    out += out.back() == '{' ? "\"groups\":" : ",\"groups\":";
    AppendList(out, user.groups);
  }
  if (!user.extra.empty()) {
    auto extra = user.extra;
    std::ranges::sort(extra, {}, [](const auto& entry) { return entry.first; });
    out += out.back() == '{' ? "\"extra\":{" : ",\"extra\":{";
    for (const auto& [key, values] : extra) {
      if (out.back() != '{') out += ',';
      object::AppendJSONString(out, key);
      out += ':';
      AppendList(out, values);
    }
    out += '}';
  }
  out += '}';
}

void AppendReference(std::string& out, const ObjectReference& reference) {
  out += ",\"objectRef\":{";
  MemberIfAny(out, "resource", reference.resource);
  MemberIfAny(out, "namespace", reference.name_space);
  MemberIfAny(out, "name", reference.name);
  MemberIfAny(out, "uid", reference.uid);
  MemberIfAny(out, "apiGroup", reference.api_group);
  MemberIfAny(out, "apiVersion", reference.api_version);
  MemberIfAny(out, "resourceVersion", reference.resource_version);
  MemberIfAny(out, "subresource", reference.subresource);
  out += '}';
}

object::Time ToTime(Event::Time time) {
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return {nanos / 1'000'000'000, static_cast<std::int32_t>(nanos % 1'000'000'000)};
}

std::string RFC3339Nano(Event::Time time) {
  const object::Time parts = ToTime(time);
  std::string text = object::FormatTime(parts.seconds);
  if (parts.nanos == 0) return text;
  std::string fraction = std::to_string(1'000'000'000 + parts.nanos).substr(1);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return text.substr(0, text.size() - 1) + "." + fraction + "Z";
}

// A list of names as the legacy format shows it.
std::string QuotedNames(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ',';
    out += base::GoQuote(name);
  }
  return out;
}

// The canonical text of an address; "" when it is none.
std::string CanonicalIP(std::string_view text) {
  const std::string terminated(text);
  in_addr v4{};
  char out[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET, terminated.c_str(), &v4) == 1) return terminated;
  in6_addr v6{};
  if (inet_pton(AF_INET6, terminated.c_str(), &v6) != 1) return "";
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return inet_ntop(AF_INET, &v6.s6_addr[12], out, sizeof(out));
  return inet_ntop(AF_INET6, &v6, out, sizeof(out));
}

}  // namespace

PayloadPtr NewJSONPayload(base::SharedBytes json) { return std::make_shared<JSONPayload>(std::move(json)); }

PayloadPtr NewRawPayload(base::SharedBytes body) { return std::make_shared<RawPayload>(std::move(body)); }

void WriteWithoutManagedFields(std::string_view json, const Emit& emit) { Copier(json, emit).Run(); }

bool Event::valid() const {
  return (!request_object || request_object->valid()) && (!response_object || response_object->valid());
}

std::size_t Event::weight() const {
  return 1 + (request_object ? request_object->weight() : 0) + (response_object ? response_object->weight() : 0);
}

void Event::WriteJSON(const Emit& emit, Form form) const {
  std::string out = form == Form::kItem ? "{" : R"({"kind":"Event","apiVersion":"audit.k8s.io/v1")";
  Member(out, "level", ToString(level));
  Member(out, "auditID", audit_id);
  Member(out, "stage", ToString(stage));
  Member(out, "requestURI", request_uri);
  Member(out, "verb", verb);
  out += ",\"user\":";
  AppendUser(out, user);
  if (impersonated_user) {
    out += ",\"impersonatedUser\":";
    AppendUser(out, *impersonated_user);
  }
  if (!impersonation_constraint.empty()) {
    out += ",\"authenticationMetadata\":{";
    Member(out, "impersonationConstraint", impersonation_constraint);
    out += '}';
  }
  if (!source_ips.empty()) {
    out += ",\"sourceIPs\":";
    AppendList(out, source_ips);
  }
  MemberIfAny(out, "userAgent", user_agent);
  if (object_ref) AppendReference(out, *object_ref);
  if (code) {
    out += ",\"responseStatus\":{\"metadata\":{}" + status_fields + ",\"code\":" + std::to_string(*code) + "}";
  }
  emit(out);
  if (request_object) {
    emit(",\"requestObject\":");
    request_object->Write(emit, omit_managed_fields);
  }
  if (response_object) {
    emit(",\"responseObject\":");
    response_object->Write(emit, omit_managed_fields);
  }
  out = ",\"requestReceivedTimestamp\":\"" + object::FormatMicroTime(ToTime(received)) + "\",\"stageTimestamp\":\"" +
        object::FormatMicroTime(ToTime(stage_time)) + "\"";
  if (!annotations.empty()) {
    auto sorted = annotations;
    std::ranges::sort(sorted);
    out += ",\"annotations\":{";
    for (const auto& [key, value] : sorted) {
      if (out.back() != '{') out += ',';
      object::AppendJSONString(out, key);
      out += ':';
      object::AppendJSONString(out, value);
    }
    out += '}';
  }
  out += '}';
  emit(out);
}

std::size_t Event::JSONSize() const {
  std::size_t size = 0;
  WriteJSON([&size](std::string_view piece) { size += piece.size(); });
  return size;
}

std::string Event::LegacyLine() const {
  const auto field = [](std::string_view name, std::string_view value) {
    return " " + std::string(name) + "=" + base::GoQuote(value);
  };
  const auto or_else = [](std::string_view value, std::string_view otherwise) {
    return value.empty() ? std::string(otherwise) : std::string(value);
  };
  std::string line = RFC3339Nano(received) + " AUDIT:";
  line += field("id", audit_id) + field("stage", ToString(stage));
  line += field("ip", source_ips.empty() ? "<unknown>" : source_ips.front());
  line += field("method", verb) + field("user", or_else(user.name, "<none>"));
  line += field("groups", or_else(QuotedNames(user.groups), "<none>"));
  line += field("as", impersonated_user ? impersonated_user->name : "<self>");
  line +=
      field("asgroups", impersonated_user ? or_else(QuotedNames(impersonated_user->groups), "<lookup>") : "<lookup>");
  line += field("user-agent", user_agent);
  line += field("namespace", or_else(object_ref ? object_ref->name_space : "", "<none>"));
  line += field("uri", request_uri);
  line += " response=\"" + (code ? std::to_string(*code) : std::string("<deferred>")) + "\"";
  return line;
}

std::vector<std::string> SourceIPs(std::string_view forwarded_for, std::string_view real_ip, std::string_view remote) {
  constexpr std::size_t kAddressesMax =
      100;  // a header of a megabyte is not repeated address by address in every event
  std::vector<std::string> addresses;
  if (!forwarded_for.empty()) {
    for (const auto part : base::Split(forwarded_for, ',')) {
      std::string address = CanonicalIP(base::Trim(part));
      if (!address.empty() && addresses.size() < kAddressesMax) addresses.push_back(std::move(address));
    }
  }
  if (std::string address = CanonicalIP(base::Trim(real_ip));
      !address.empty() && std::ranges::find(addresses, address) == addresses.end()) {
    addresses.push_back(std::move(address));
  }
  std::string_view host = remote;
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos) host = host.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (std::string address = CanonicalIP(host); !address.empty() && (addresses.empty() || addresses.back() != address))
    addresses.push_back(std::move(address));
  return addresses;
}

std::string TruncatedUserAgent(std::string_view user_agent) {
  constexpr std::size_t kLengthMax = 1024;
  if (user_agent.size() <= kLengthMax) return std::string(user_agent);
  return std::string(user_agent.substr(0, kLengthMax)) + "...TRUNCATED";
}

}  // namespace keelson::audit
