// Names of objects in apimachinery's words: DNS labels and subdomains. A check returns the messages of what is wrong;
// none means valid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keelson::meta {

std::vector<std::string> IsDNS1123Label(std::string_view text);
std::vector<std::string> IsDNS1123Subdomain(std::string_view text);
std::vector<std::string> IsDNS1035Label(std::string_view text);

// `prefix`: it is a generateName, so a trailing "-" is masked.
std::vector<std::string> NameIsDNSSubdomain(std::string_view name, bool prefix);
std::vector<std::string> NameIsDNSLabel(std::string_view name, bool prefix);
std::vector<std::string> NameIsDNS1035Label(std::string_view name, bool prefix);

}  // namespace keelson::meta
