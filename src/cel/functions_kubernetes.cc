// URLs, regular expressions, quantities, semantic versions, named formats and JSON pointers of the Kubernetes
// libraries.
#include "base/go_regex.h"
#include "base/strings.h"
#include "base/url.h"
#include "cel/functions.h"
#include "cel/library_values.h"
#include "object/go_url.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using Args = std::span<const Val>;

Val StringToURL(Evaluation& e, Args args) {
  const std::string_view text = args[0].text();
  constexpr std::string_view kPrefix = "URL parse error during conversion from string: ";
  if (const auto request = object::ParseRequestURI(text); !request.ok())
    return ErrorIn(e.arena, kPrefix, request.error());
  const auto parsed = object::ParseURL(text);  // ParseRequestURI takes a fragment for a part of the path or query.
  if (!parsed.ok()) return ErrorIn(e.arena, kPrefix, parsed.error());
  URL* url = e.arena.New<URL>();
  url->scheme = e.arena.Copy(parsed->scheme);
  url->host = e.arena.Copy(parsed->host);
  url->hostname = e.arena.Copy(parsed->Hostname());
  url->port = e.arena.Copy(parsed->Port());
  url->escaped_path = e.arena.Copy(parsed->EscapedPath());
  url->raw_query = e.arena.Copy(parsed->raw_query);
  url->text = e.arena.Copy(parsed->ToString());
  return Val::OfPointer(Tag::kURL, url);
}

Val IsURL(Evaluation&, Args args) { return Val::Bool(object::ParseRequestURI(args[0].text()).ok()); }

template <std::string_view URL::* part>
Val GetPart(Evaluation&, Args args) {
  return Val::String(args[0].url().*part);
}

Val GetQuery(Evaluation& e, Args args) {
  const base::Query query(args[0].url().raw_query);
  Map* out = NewMap(e.arena, 0);
  for (const auto& [key, value] : query.pairs()) {
    const Val name = e.String(key);
    Val values;
    if (!out->FindExact(name, &values)) {
      values = Val::Of(NewList(e.arena, 1));
      out->Set(e.arena, name, values);
    }
    Append(e.arena, const_cast<List&>(values.list()), e.String(value));
  }
  return Val::Of(out);
}

Val Find(Evaluation& e, Args args) {
  const base::GoRegex regex(args[1].text());
  if (!regex.ok()) return ErrorIn(e.arena, "Illegal regex: ", regex.error());
  return Val::String(regex.Find(args[0].text()));
}

Val FindAll(Evaluation& e, Args args) {
  const base::GoRegex regex(args[1].text());
  if (!regex.ok()) return ErrorIn(e.arena, "Illegal regex: ", regex.error());
  return NewStringList(e.arena, regex.FindAll(args[0].text(), args.size() > 2 ? args[2].int_value() : -1));
}

Val StringToQuantity(Evaluation& e, Args args) {
  std::string_view error;
  const auto parsed = ParseQuantityVal(e.arena, args[0].text(), &error);
  return parsed ? *parsed : e.Error(error);
}
Val IsQuantity(Evaluation&, Args args) { return Val::Bool(object::Quantity::Parse(args[0].text()).ok()); }
Val QuantitySign(Evaluation&, Args args) { return Val::Int(args[0].quantity().value.Sign()); }
Val QuantityFloat(Evaluation&, Args args) { return Val::Double(args[0].quantity().value.AsDouble()); }
Val QuantityIsInteger(Evaluation&, Args args) { return Val::Bool(args[0].quantity().value.AsInt64().has_value()); }
Val QuantityInteger(Evaluation&, Args args) {
  const auto value = args[0].quantity().value.AsInt64();
  return value ? Val::Int(*value) : Val::Error("cannot convert value to integer");
}
int CompareQuantities(Args args) { return args[0].quantity().value.Compare(args[1].quantity().value); }
Val QuantityGreater(Evaluation&, Args args) { return Val::Bool(CompareQuantities(args) > 0); }
Val QuantityLess(Evaluation&, Args args) { return Val::Bool(CompareQuantities(args) < 0); }
Val QuantityCompare(Evaluation&, Args args) { return Val::Int(CompareQuantities(args)); }

object::Quantity QuantityOperand(const Val& value) {
  if (value.is(Tag::kInt)) return object::Quantity(value.int_value(), object::Quantity::Format::kDecimalExponent);
  return value.quantity().value;
}
Val QuantityAdd(Evaluation& e, Args args) {
  object::Quantity sum = args[0].quantity().value;
  sum.Add(QuantityOperand(args[1]));
  return NewQuantity(e.arena, sum, /*computed=*/true);
}
Val QuantitySub(Evaluation& e, Args args) {
  object::Quantity difference = args[0].quantity().value;
  difference.Sub(QuantityOperand(args[1]));
  return NewQuantity(e.arena, difference, /*computed=*/true);
}

Outcome<Semver, std::string> ReadSemver(Evaluation& e, Args args) {
  const bool normalize = args.size() > 1 && args[1].bool_value();
  return normalize ? ParseSemverNormalized(e.arena, args[0].text()) : ParseSemver(e.arena, args[0].text());
}
Val StringToSemver(Evaluation& e, Args args) {
  const auto parsed = ReadSemver(e, args);
  if (!parsed.ok()) return e.Error(parsed.error());
  return Val::OfPointer(Tag::kSemver, e.arena.New<Semver>(*parsed));
}
Val IsSemver(Evaluation& e, Args args) { return Val::Bool(ReadSemver(e, args).ok()); }
Val SemverMajor(Evaluation&, Args args) { return Val::Int(static_cast<std::int64_t>(args[0].semver().major)); }
Val SemverMinor(Evaluation&, Args args) { return Val::Int(static_cast<std::int64_t>(args[0].semver().minor)); }
Val SemverPatch(Evaluation&, Args args) { return Val::Int(static_cast<std::int64_t>(args[0].semver().patch)); }
Val SemverGreater(Evaluation&, Args args) { return Val::Bool(CompareSemver(args[0].semver(), args[1].semver()) > 0); }
Val SemverLess(Evaluation&, Args args) { return Val::Bool(CompareSemver(args[0].semver(), args[1].semver()) < 0); }
Val SemverCompare(Evaluation&, Args args) { return Val::Int(CompareSemver(args[0].semver(), args[1].semver())); }

Val FormatValidate(Evaluation& e, Args args) {
  const auto messages = args[0].format().validate(args[1].text());
  if (messages.empty()) return Val::OptionalNone();
  List* out = NewList(e.arena, static_cast<std::uint32_t>(messages.size()));
  for (const std::string& message : messages) out->items[out->size++] = e.String(message);
  return Val::OptionalOf(e.arena, Val::Of(out));
}

Val FormatNamed(Evaluation& e, Args args) {
  const NamedFormat* format = FindNamedFormat(args[0].text());
  if (format == nullptr) return Val::OptionalNone();
  return Val::OptionalOf(e.arena, Val::OfPointer(Tag::kFormat, format));
}

// format.<key>(): one implementation each, because a call without arguments has no other parameter.
template <std::size_t index>
Val ConstantFormat(Evaluation&, Args);

constexpr std::string_view kFormatKeys[] = {"dns1123Label",
                                            "dns1123Subdomain",
                                            "dns1035Label",
                                            "qualifiedName",
                                            "dns1123LabelPrefix",
                                            "dns1123SubdomainPrefix",
                                            "dns1035LabelPrefix",
                                            "labelValue",
                                            "uri",
                                            "uuid",
                                            "byte",
                                            "date",
                                            "datetime"};

template <std::size_t index>
Val ConstantFormat(Evaluation&, Args) {
  return Val::OfPointer(Tag::kFormat, FindNamedFormat(kFormatKeys[index]));
}

Val EscapeKey(Evaluation& e, Args args) {
  std::string out;
  for (const char c : args[0].text()) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return e.String(out);
}

using enum CallForm;
constexpr Binding kBindings[] = {
    {"string_to_url", StringToURL, kUnary},
    {"is_url_string", IsURL, kUnary},
    {"url_get_scheme", GetPart<&URL::scheme>, kUnary},
    {"url_get_host", GetPart<&URL::host>, kUnary},
    {"url_get_hostname", GetPart<&URL::hostname>, kUnary},
    {"url_get_port", GetPart<&URL::port>, kUnary},
    {"url_get_escaped_path", GetPart<&URL::escaped_path>, kUnary},
    {"url_get_query", GetQuery, kUnary},
    {"string_find_string", Find, kBinary},
    {"string_find_all_string", FindAll, kBinary},
    {"string_find_all_string_int", FindAll, kVarArgs},
    {"string_to_quantity", StringToQuantity, kUnary},
    {"is_quantity_string", IsQuantity, kUnary},
    {"quantity_sign", QuantitySign, kUnary},
    {"quantity_is_greater_than", QuantityGreater, kBinary},
    {"quantity_is_less_than", QuantityLess, kBinary},
    {"quantity_compare_to", QuantityCompare, kBinary},
    {"quantity_get_float", QuantityFloat, kUnary},
    {"quantity_get_int", QuantityInteger, kUnary},
    {"quantity_is_integer", QuantityIsInteger, kUnary},
    {"quantity_add", QuantityAdd, kBinary},
    {"quantity_add_int", QuantityAdd, kBinary},
    {"quantity_sub", QuantitySub, kBinary},
    {"quantity_sub_int", QuantitySub, kBinary},
    {"string_to_semver", StringToSemver, kUnary},
    {"string_bool_to_semver", StringToSemver, kBinary},
    {"is_semver_string", IsSemver, kUnary},
    {"is_semver_string_bool", IsSemver, kBinary},
    {"semver_is_greater_than", SemverGreater, kBinary},
    {"semver_is_less_than", SemverLess, kBinary},
    {"semver_compare_to", SemverCompare, kBinary},
    {"semver_major", SemverMajor, kUnary},
    {"semver_minor", SemverMinor, kUnary},
    {"semver_patch", SemverPatch, kUnary},
    {"format-validate", FormatValidate, kBinary},
    {"format-named", FormatNamed, kUnary},
    {"format.dns1123Label", ConstantFormat<0>, kVarArgs},
    {"format.dns1123Subdomain", ConstantFormat<1>, kVarArgs},
    {"format.dns1035Label", ConstantFormat<2>, kVarArgs},
    {"format.qualifiedName", ConstantFormat<3>, kVarArgs},
    {"format.dns1123LabelPrefix", ConstantFormat<4>, kVarArgs},
    {"format.dns1123SubdomainPrefix", ConstantFormat<5>, kVarArgs},
    {"format.dns1035LabelPrefix", ConstantFormat<6>, kVarArgs},
    {"format.labelValue", ConstantFormat<7>, kVarArgs},
    {"format.uri", ConstantFormat<8>, kVarArgs},
    {"format.uuid", ConstantFormat<9>, kVarArgs},
    {"format.byte", ConstantFormat<10>, kVarArgs},
    {"format.date", ConstantFormat<11>, kVarArgs},
    {"format.datetime", ConstantFormat<12>, kVarArgs},
    {"string_jsonpatch_escapeKey_string", EscapeKey, kUnary},
};

}  // namespace

std::span<const Binding> KubernetesBindings() { return kBindings; }

}  // namespace keelson::cel
