#include "cel/libraries.h"

#include "base/check.h"

namespace keelson::cel {
namespace {

// One overload a row: id, "." (member) or "-" (global), function, (argument types), result type. Single capital letters
// are type parameters. The order of rows is the order in which the checker tries overloads.

constexpr std::string_view kStandardRows = R"(
logical_not - !_ (bool) bool
negate_double - -_ (double) double
negate_int64 - -_ (int) int
in_list - @in (A list(A)) bool
in_map - @in (A map(A,B)) bool
not_strictly_false - @not_strictly_false (bool) bool
not_equals - _!=_ (A A) bool
modulo_int64 - _%_ (int int) int
modulo_uint64 - _%_ (uint uint) uint
logical_and - _&&_ (bool bool) bool
multiply_double - _*_ (double double) double
multiply_int64 - _*_ (int int) int
multiply_uint64 - _*_ (uint uint) uint
add_bytes - _+_ (bytes bytes) bytes
add_double - _+_ (double double) double
add_duration_duration - _+_ (duration duration) duration
add_duration_timestamp - _+_ (duration timestamp) timestamp
add_timestamp_duration - _+_ (timestamp duration) timestamp
add_int64 - _+_ (int int) int
add_list - _+_ (list(A) list(A)) list(A)
add_string - _+_ (string string) string
add_uint64 - _+_ (uint uint) uint
subtract_double - _-_ (double double) double
subtract_duration_duration - _-_ (duration duration) duration
subtract_int64 - _-_ (int int) int
subtract_timestamp_duration - _-_ (timestamp duration) timestamp
subtract_timestamp_timestamp - _-_ (timestamp timestamp) duration
subtract_uint64 - _-_ (uint uint) uint
divide_double - _/_ (double double) double
divide_int64 - _/_ (int int) int
divide_uint64 - _/_ (uint uint) uint
less_equals_bool - _<=_ (bool bool) bool
less_equals_int64 - _<=_ (int int) bool
less_equals_int64_double - _<=_ (int double) bool
less_equals_int64_uint64 - _<=_ (int uint) bool
less_equals_uint64 - _<=_ (uint uint) bool
less_equals_uint64_double - _<=_ (uint double) bool
less_equals_uint64_int64 - _<=_ (uint int) bool
less_equals_double - _<=_ (double double) bool
less_equals_double_int64 - _<=_ (double int) bool
less_equals_double_uint64 - _<=_ (double uint) bool
less_equals_string - _<=_ (string string) bool
less_equals_bytes - _<=_ (bytes bytes) bool
less_equals_timestamp - _<=_ (timestamp timestamp) bool
less_equals_duration - _<=_ (duration duration) bool
less_bool - _<_ (bool bool) bool
less_int64 - _<_ (int int) bool
less_int64_double - _<_ (int double) bool
less_int64_uint64 - _<_ (int uint) bool
less_uint64 - _<_ (uint uint) bool
less_uint64_double - _<_ (uint double) bool
less_uint64_int64 - _<_ (uint int) bool
less_double - _<_ (double double) bool
less_double_int64 - _<_ (double int) bool
less_double_uint64 - _<_ (double uint) bool
less_string - _<_ (string string) bool
less_bytes - _<_ (bytes bytes) bool
less_timestamp - _<_ (timestamp timestamp) bool
less_duration - _<_ (duration duration) bool
equals - _==_ (A A) bool
greater_equals_bool - _>=_ (bool bool) bool
greater_equals_int64 - _>=_ (int int) bool
greater_equals_int64_double - _>=_ (int double) bool
greater_equals_int64_uint64 - _>=_ (int uint) bool
greater_equals_uint64 - _>=_ (uint uint) bool
greater_equals_uint64_double - _>=_ (uint double) bool
greater_equals_uint64_int64 - _>=_ (uint int) bool
greater_equals_double - _>=_ (double double) bool
greater_equals_double_int64 - _>=_ (double int) bool
greater_equals_double_uint64 - _>=_ (double uint) bool
greater_equals_string - _>=_ (string string) bool
greater_equals_bytes - _>=_ (bytes bytes) bool
greater_equals_timestamp - _>=_ (timestamp timestamp) bool
greater_equals_duration - _>=_ (duration duration) bool
greater_bool - _>_ (bool bool) bool
greater_int64 - _>_ (int int) bool
greater_int64_double - _>_ (int double) bool
greater_int64_uint64 - _>_ (int uint) bool
greater_uint64 - _>_ (uint uint) bool
greater_uint64_double - _>_ (uint double) bool
greater_uint64_int64 - _>_ (uint int) bool
greater_double - _>_ (double double) bool
greater_double_int64 - _>_ (double int) bool
greater_double_uint64 - _>_ (double uint) bool
greater_string - _>_ (string string) bool
greater_bytes - _>_ (bytes bytes) bool
greater_timestamp - _>_ (timestamp timestamp) bool
greater_duration - _>_ (duration duration) bool
conditional - _?_:_ (bool A A) A
index_list - _[_] (list(A) int) A
index_map - _[_] (map(A,B) A) B
__not_strictly_false__ - __not_strictly_false__ (bool) bool
in_list - _in_ (A list(A)) bool
in_map - _in_ (A map(A,B)) bool
logical_or - _||_ (bool bool) bool
bool_to_bool - bool (bool) bool
string_to_bool - bool (string) bool
bytes_to_bytes - bytes (bytes) bytes
string_to_bytes - bytes (string) bytes
contains_string . contains (string string) bool
double_to_double - double (double) double
int64_to_double - double (int) double
string_to_double - double (string) double
uint64_to_double - double (uint) double
duration_to_duration - duration (duration) duration
int64_to_duration - duration (int) duration
string_to_duration - duration (string) duration
to_dyn - dyn (A) dyn
ends_with_string . endsWith (string string) bool
timestamp_to_day_of_month_1_based . getDate (timestamp) int
timestamp_to_day_of_month_1_based_with_tz . getDate (timestamp string) int
timestamp_to_day_of_month . getDayOfMonth (timestamp) int
timestamp_to_day_of_month_with_tz . getDayOfMonth (timestamp string) int
timestamp_to_day_of_week . getDayOfWeek (timestamp) int
timestamp_to_day_of_week_with_tz . getDayOfWeek (timestamp string) int
timestamp_to_day_of_year . getDayOfYear (timestamp) int
timestamp_to_day_of_year_with_tz . getDayOfYear (timestamp string) int
timestamp_to_year . getFullYear (timestamp) int
timestamp_to_year_with_tz . getFullYear (timestamp string) int
timestamp_to_hours . getHours (timestamp) int
timestamp_to_hours_with_tz . getHours (timestamp string) int
duration_to_hours . getHours (duration) int
timestamp_to_milliseconds . getMilliseconds (timestamp) int
timestamp_to_milliseconds_with_tz . getMilliseconds (timestamp string) int
duration_to_milliseconds . getMilliseconds (duration) int
timestamp_to_minutes . getMinutes (timestamp) int
timestamp_to_minutes_with_tz . getMinutes (timestamp string) int
duration_to_minutes . getMinutes (duration) int
timestamp_to_month . getMonth (timestamp) int
timestamp_to_month_with_tz . getMonth (timestamp string) int
timestamp_to_seconds . getSeconds (timestamp) int
timestamp_to_seconds_tz . getSeconds (timestamp string) int
duration_to_seconds . getSeconds (duration) int
in_list - in (A list(A)) bool
in_map - in (A map(A,B)) bool
int64_to_int64 - int (int) int
double_to_int64 - int (double) int
duration_to_int64 - int (duration) int
string_to_int64 - int (string) int
timestamp_to_int64 - int (timestamp) int
uint64_to_int64 - int (uint) int
matches - matches (string string) bool
matches_string . matches (string string) bool
size_bytes - size (bytes) int
bytes_size . size (bytes) int
size_list - size (list(A)) int
list_size . size (list(A)) int
size_map - size (map(A,B)) int
map_size . size (map(A,B)) int
size_string - size (string) int
string_size . size (string) int
starts_with_string . startsWith (string string) bool
string_to_string - string (string) string
bool_to_string - string (bool) string
bytes_to_string - string (bytes) string
double_to_string - string (double) string
duration_to_string - string (duration) string
int64_to_string - string (int) string
timestamp_to_string - string (timestamp) string
uint64_to_string - string (uint) string
timestamp_to_timestamp - timestamp (timestamp) timestamp
int64_to_timestamp - timestamp (int) timestamp
string_to_timestamp - timestamp (string) timestamp
type - type (A) type(A)
uint64_to_uint64 - uint (uint) uint
double_to_uint64 - uint (double) uint
int64_to_uint64 - uint (int) uint
string_to_uint64 - uint (string) uint
)";

constexpr std::string_view kURLsRows = R"(
url_get_escaped_path . getEscapedPath (kubernetes.URL) string
url_get_host . getHost (kubernetes.URL) string
url_get_hostname . getHostname (kubernetes.URL) string
url_get_port . getPort (kubernetes.URL) string
url_get_query . getQuery (kubernetes.URL) map(string,list(string))
url_get_scheme . getScheme (kubernetes.URL) string
is_url_string - isURL (string) bool
string_to_url - url (string) kubernetes.URL
)";

constexpr std::string_view kRegexRows = R"(
string_find_string . find (string string) string
string_find_all_string . findAll (string string) list(string)
string_find_all_string_int . findAll (string string int) list(string)
)";

constexpr std::string_view kListsRows = R"(
list_a_index_of_int . indexOf (list(A) A) int
list_int_is_sorted_bool . isSorted (list(int)) bool
list_uint_is_sorted_bool . isSorted (list(uint)) bool
list_double_is_sorted_bool . isSorted (list(double)) bool
list_bool_is_sorted_bool . isSorted (list(bool)) bool
list_duration_is_sorted_bool . isSorted (list(duration)) bool
list_timestamp_is_sorted_bool . isSorted (list(timestamp)) bool
list_string_is_sorted_bool . isSorted (list(string)) bool
list_bytes_is_sorted_bool . isSorted (list(bytes)) bool
list_a_last_index_of_int . lastIndexOf (list(A) A) int
list_int_max_int . max (list(int)) int
list_uint_max_uint . max (list(uint)) uint
list_double_max_double . max (list(double)) double
list_bool_max_bool . max (list(bool)) bool
list_duration_max_duration . max (list(duration)) duration
list_timestamp_max_timestamp . max (list(timestamp)) timestamp
list_string_max_string . max (list(string)) string
list_bytes_max_bytes . max (list(bytes)) bytes
list_int_min_int . min (list(int)) int
list_uint_min_uint . min (list(uint)) uint
list_double_min_double . min (list(double)) double
list_bool_min_bool . min (list(bool)) bool
list_duration_min_duration . min (list(duration)) duration
list_timestamp_min_timestamp . min (list(timestamp)) timestamp
list_string_min_string . min (list(string)) string
list_bytes_min_bytes . min (list(bytes)) bytes
list_int_sum_int . sum (list(int)) int
list_uint_sum_uint . sum (list(uint)) uint
list_double_sum_double . sum (list(double)) double
list_duration_sum_duration . sum (list(duration)) duration
)";

constexpr std::string_view kAuthzRows = R"(
decision_allowed . allowed (kubernetes.authorization.Decision) bool
pathcheck_check . check (kubernetes.authorization.PathCheck string) kubernetes.authorization.Decision
resourcecheck_check . check (kubernetes.authorization.ResourceCheck string) kubernetes.authorization.Decision
decision_error . error (kubernetes.authorization.Decision) string
decision_errored . errored (kubernetes.authorization.Decision) bool
authorizer_group . group (kubernetes.authorization.Authorizer string) kubernetes.authorization.GroupCheck
resourcecheck_name . name (kubernetes.authorization.ResourceCheck string) kubernetes.authorization.ResourceCheck
resourcecheck_namespace . namespace (kubernetes.authorization.ResourceCheck string) kubernetes.authorization.ResourceCheck
authorizer_path . path (kubernetes.authorization.Authorizer string) kubernetes.authorization.PathCheck
decision_reason . reason (kubernetes.authorization.Decision) string
groupcheck_resource . resource (kubernetes.authorization.GroupCheck string) kubernetes.authorization.ResourceCheck
authorizer_serviceaccount . serviceAccount (kubernetes.authorization.Authorizer string string) kubernetes.authorization.Authorizer
resourcecheck_subresource . subresource (kubernetes.authorization.ResourceCheck string) kubernetes.authorization.ResourceCheck
)";

constexpr std::string_view kOptionalsRows = R"(
select_optional_field - _?._ (dyn string) optional_type(V)
list_optindex_optional_int - _[?_] (list(V) int) optional_type(V)
optional_list_optindex_optional_int - _[?_] (optional_type(list(V)) int) optional_type(V)
map_optindex_optional_value - _[?_] (map(K,V) K) optional_type(V)
optional_map_optindex_optional_value - _[?_] (optional_type(map(K,V)) K) optional_type(V)
optional_list_index_int - _[_] (optional_type(list(V)) int) optional_type(V)
optional_map_index_value - _[_] (optional_type(map(K,V)) K) optional_type(V)
list_first . first (list(V)) optional_type(V)
optional_hasValue . hasValue (optional_type(V)) bool
list_last . last (list(V)) optional_type(V)
optional_none - optional.none () optional_type(V)
optional_of - optional.of (V) optional_type(V)
optional_ofNonZeroValue - optional.ofNonZeroValue (V) optional_type(V)
optional_unwrap - optional.unwrap (list(optional_type(V))) list(V)
optional_or_optional . or (optional_type(V) optional_type(V)) optional_type(V)
optional_orValue_value . orValue (optional_type(V) V) V
optional_unwrapOpt . unwrapOpt (list(optional_type(V))) list(V)
optional_value . value (optional_type(V)) V
)";

constexpr std::string_view kQuantityRows = R"(
quantity_add . add (kubernetes.Quantity kubernetes.Quantity) kubernetes.Quantity
quantity_add_int . add (kubernetes.Quantity int) kubernetes.Quantity
quantity_get_float . asApproximateFloat (kubernetes.Quantity) double
quantity_get_int . asInteger (kubernetes.Quantity) int
quantity_compare_to . compareTo (kubernetes.Quantity kubernetes.Quantity) int
quantity_is_greater_than . isGreaterThan (kubernetes.Quantity kubernetes.Quantity) bool
quantity_is_integer . isInteger (kubernetes.Quantity) bool
quantity_is_less_than . isLessThan (kubernetes.Quantity kubernetes.Quantity) bool
is_quantity_string - isQuantity (string) bool
string_to_quantity - quantity (string) kubernetes.Quantity
quantity_sign - sign (kubernetes.Quantity) int
quantity_sub . sub (kubernetes.Quantity kubernetes.Quantity) kubernetes.Quantity
quantity_sub_int . sub (kubernetes.Quantity int) kubernetes.Quantity
)";

constexpr std::string_view kStringsRows = R"(
string_char_at_int . charAt (string int) string
string_format . format (string list(dyn)) string
string_index_of_string . indexOf (string string) int
string_index_of_string_int . indexOf (string string int) int
list_join . join (list(string)) string
list_join_string . join (list(string) string) string
string_last_index_of_string . lastIndexOf (string string) int
string_last_index_of_string_int . lastIndexOf (string string int) int
string_lower_ascii . lowerAscii (string) string
string_replace_string_string . replace (string string string) string
string_replace_string_string_int . replace (string string string int) string
string_split_string . split (string string) list(string)
string_split_string_int . split (string string int) list(string)
strings_quote - strings.quote (string) string
string_substring_int . substring (string int) string
string_substring_int_int . substring (string int int) string
string_trim . trim (string) string
string_upper_ascii . upperAscii (string) string
)";

constexpr std::string_view kSetsRows = R"(
list_sets_contains_list - sets.contains (list(T) list(T)) bool
list_sets_equivalent_list - sets.equivalent (list(T) list(T)) bool
list_sets_intersects_list - sets.intersects (list(T) list(T)) bool
)";

constexpr std::string_view kIPRows = R"(
ip_family . family (net.IP) int
string_to_ip - ip (string) net.IP
ip_is_canonical - ip.isCanonical (string) bool
ip_is_global_unicast . isGlobalUnicast (net.IP) bool
is_ip - isIP (string) bool
ip_is_link_local_multicast . isLinkLocalMulticast (net.IP) bool
ip_is_link_local_unicast . isLinkLocalUnicast (net.IP) bool
ip_is_loopback . isLoopback (net.IP) bool
ip_is_unspecified . isUnspecified (net.IP) bool
ip_to_string - string (net.IP) string
)";

constexpr std::string_view kCIDRRows = R"(
string_to_cidr - cidr (string) net.CIDR
cidr_contains_cidr_string . containsCIDR (net.CIDR string) bool
cidr_contains_cidr . containsCIDR (net.CIDR net.CIDR) bool
cidr_contains_ip_string . containsIP (net.CIDR string) bool
cidr_contains_ip_ip . containsIP (net.CIDR net.IP) bool
cidr_ip . ip (net.CIDR) net.IP
is_cidr - isCIDR (string) bool
cidr_masked . masked (net.CIDR) net.CIDR
cidr_prefix_length . prefixLength (net.CIDR) int
cidr_to_string - string (net.CIDR) string
)";

constexpr std::string_view kFormatRows = R"(
format.byte - format.byte () kubernetes.NamedFormat
format.date - format.date () kubernetes.NamedFormat
format.datetime - format.datetime () kubernetes.NamedFormat
format.dns1035Label - format.dns1035Label () kubernetes.NamedFormat
format.dns1035LabelPrefix - format.dns1035LabelPrefix () kubernetes.NamedFormat
format.dns1123Label - format.dns1123Label () kubernetes.NamedFormat
format.dns1123LabelPrefix - format.dns1123LabelPrefix () kubernetes.NamedFormat
format.dns1123Subdomain - format.dns1123Subdomain () kubernetes.NamedFormat
format.dns1123SubdomainPrefix - format.dns1123SubdomainPrefix () kubernetes.NamedFormat
format.labelValue - format.labelValue () kubernetes.NamedFormat
format-named - format.named (string) optional_type(kubernetes.NamedFormat)
format.qualifiedName - format.qualifiedName () kubernetes.NamedFormat
format.uri - format.uri () kubernetes.NamedFormat
format.uuid - format.uuid () kubernetes.NamedFormat
format-validate . validate (kubernetes.NamedFormat string) optional_type(list(string))
)";

constexpr std::string_view kAuthzSelectorsRows = R"(
authorizer_fieldselector . fieldSelector (kubernetes.authorization.ResourceCheck string) kubernetes.authorization.ResourceCheck
authorizer_labelselector . labelSelector (kubernetes.authorization.ResourceCheck string) kubernetes.authorization.ResourceCheck
)";

constexpr std::string_view kTwoVarComprehensionsRows = R"(
@mapInsert_map_key_value - cel.@mapInsert (map(K,V) K V) map(K,V)
@mapInsert_map_map - cel.@mapInsert (map(K,V) map(K,V)) map(K,V)
)";

constexpr std::string_view kSemverRows = R"(
semver_compare_to . compareTo (kubernetes.Semver kubernetes.Semver) int
semver_is_greater_than . isGreaterThan (kubernetes.Semver kubernetes.Semver) bool
semver_is_less_than . isLessThan (kubernetes.Semver kubernetes.Semver) bool
is_semver_string - isSemver (string) bool
is_semver_string_bool - isSemver (string bool) bool
semver_major . major (kubernetes.Semver) int
semver_minor . minor (kubernetes.Semver) int
semver_patch . patch (kubernetes.Semver) int
string_to_semver - semver (string) kubernetes.Semver
string_bool_to_semver - semver (string bool) kubernetes.Semver
)";

constexpr std::string_view kExtListsRows = R"(
list_int_sortByAssociatedKeys . @sortByAssociatedKeys (list(T) list(int)) list(T)
list_uint_sortByAssociatedKeys . @sortByAssociatedKeys (list(T) list(uint)) list(T)
list_double_sortByAssociatedKeys . @sortByAssociatedKeys (list(T) list(double)) list(T)
list_bool_sortByAssociatedKeys . @sortByAssociatedKeys (list(T) list(bool)) list(T)
list_google.protobuf.Duration_sortByAssociatedKeys . @sortByAssociatedKeys (list(T) list(duration)) list(T)
list_google.protobuf.Timestamp_sortByAssociatedKeys . @sortByAssociatedKeys (list(T) list(timestamp)) list(T)
list_string_sortByAssociatedKeys . @sortByAssociatedKeys (list(T) list(string)) list(T)
list_bytes_sortByAssociatedKeys . @sortByAssociatedKeys (list(T) list(bytes)) list(T)
list_distinct . distinct (list(T)) list(T)
list_flatten . flatten (list(list(T))) list(T)
list_flatten_int . flatten (list(dyn) int) list(dyn)
lists_range - lists.range (int) list(int)
list_reverse . reverse (list(T)) list(T)
list_slice . slice (list(T) int int) list(T)
list_int_sort . sort (list(int)) list(int)
list_uint_sort . sort (list(uint)) list(uint)
list_double_sort . sort (list(double)) list(double)
list_bool_sort . sort (list(bool)) list(bool)
list_google.protobuf.Duration_sort . sort (list(duration)) list(duration)
list_google.protobuf.Timestamp_sort . sort (list(timestamp)) list(timestamp)
list_string_sort . sort (list(string)) list(string)
list_bytes_sort . sort (list(bytes)) list(bytes)
)";

constexpr std::string_view kJSONPatchRows = R"(
string_jsonpatch_escapeKey_string - jsonpatch.escapeKey (string) string
)";

constexpr std::string_view kMathRows = R"(
math_@max_double - math.@max (double) double
math_@max_int - math.@max (int) int
math_@max_uint - math.@max (uint) uint
math_@max_double_double - math.@max (double double) double
math_@max_int_int - math.@max (int int) int
math_@max_uint_uint - math.@max (uint uint) uint
math_@max_int_uint - math.@max (int uint) dyn
math_@max_int_double - math.@max (int double) dyn
math_@max_double_int - math.@max (double int) dyn
math_@max_double_uint - math.@max (double uint) dyn
math_@max_uint_int - math.@max (uint int) dyn
math_@max_uint_double - math.@max (uint double) dyn
math_@max_list_double - math.@max (list(double)) double
math_@max_list_int - math.@max (list(int)) int
math_@max_list_uint - math.@max (list(uint)) uint
math_@min_double - math.@min (double) double
math_@min_int - math.@min (int) int
math_@min_uint - math.@min (uint) uint
math_@min_double_double - math.@min (double double) double
math_@min_int_int - math.@min (int int) int
math_@min_uint_uint - math.@min (uint uint) uint
math_@min_int_uint - math.@min (int uint) dyn
math_@min_int_double - math.@min (int double) dyn
math_@min_double_int - math.@min (double int) dyn
math_@min_double_uint - math.@min (double uint) dyn
math_@min_uint_int - math.@min (uint int) dyn
math_@min_uint_double - math.@min (uint double) dyn
math_@min_list_double - math.@min (list(double)) double
math_@min_list_int - math.@min (list(int)) int
math_@min_list_uint - math.@min (list(uint)) uint
math_abs_double - math.abs (double) double
math_abs_int - math.abs (int) int
math_abs_uint - math.abs (uint) uint
math_bitAnd_int_int - math.bitAnd (int int) int
math_bitAnd_uint_uint - math.bitAnd (uint uint) uint
math_bitNot_int_int - math.bitNot (int) int
math_bitNot_uint_uint - math.bitNot (uint) uint
math_bitOr_int_int - math.bitOr (int int) int
math_bitOr_uint_uint - math.bitOr (uint uint) uint
math_bitShiftLeft_int_int - math.bitShiftLeft (int int) int
math_bitShiftLeft_uint_int - math.bitShiftLeft (uint int) uint
math_bitShiftRight_int_int - math.bitShiftRight (int int) int
math_bitShiftRight_uint_int - math.bitShiftRight (uint int) uint
math_bitXor_int_int - math.bitXor (int int) int
math_bitXor_uint_uint - math.bitXor (uint uint) uint
math_ceil_double - math.ceil (double) double
math_floor_double - math.floor (double) double
math_isFinite_double - math.isFinite (double) bool
math_isInf_double - math.isInf (double) bool
math_isNaN_double - math.isNaN (double) bool
math_round_double - math.round (double) double
math_sign_double - math.sign (double) double
math_sign_int - math.sign (int) int
math_sign_uint - math.sign (uint) uint
math_sqrt_double - math.sqrt (double) double
math_sqrt_int - math.sqrt (int) double
math_sqrt_uint - math.sqrt (uint) double
math_trunc_double - math.trunc (double) double
)";

constexpr std::string_view kEncodersRows = R"(
base64_decode_string - base64.decode (string) bytes
base64_encode_bytes - base64.encode (bytes) string
)";

}  // namespace

std::string_view LibraryRows(Library library) {
  switch (library) {
    case Library::kStandard:
      return kStandardRows;
    case Library::kURLs:
      return kURLsRows;
    case Library::kRegex:
      return kRegexRows;
    case Library::kLists:
      return kListsRows;
    case Library::kAuthz:
      return kAuthzRows;
    case Library::kOptionals:
      return kOptionalsRows;
    case Library::kQuantity:
      return kQuantityRows;
    case Library::kStrings:
      return kStringsRows;
    case Library::kSets:
      return kSetsRows;
    case Library::kIP:
      return kIPRows;
    case Library::kCIDR:
      return kCIDRRows;
    case Library::kFormat:
      return kFormatRows;
    case Library::kAuthzSelectors:
      return kAuthzSelectorsRows;
    case Library::kTwoVarComprehensions:
      return kTwoVarComprehensionsRows;
    case Library::kSemver:
      return kSemverRows;
    case Library::kExtLists:
      return kExtListsRows;
    case Library::kJSONPatch:
      return kJSONPatchRows;
    case Library::kMath:
      return kMathRows;
    case Library::kEncoders:
      return kEncodersRows;
    case Library::kBindings:
      return {};
    case Library::kStringsV3:
      return "string_reverse . reverse (string) string\n";
    case Library::kDeviceLists:
      return "dra_includes_dyn_dyn . includes (dyn dyn) bool\n";
    case Library::kBlock:
      return "cel_block_list - cel.@block (list(dyn) T) T\n";
  }
  KS_CHECK(false);
}

}  // namespace keelson::cel
