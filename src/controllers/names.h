// The controllers' names and what --controllers says of them. Pure.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace keelson::controllers {

// kube-controller-manager's names of the controllers that are built, in the order they are started.
inline constexpr std::array<std::string_view, 9> kControllerNames = {"serviceaccount-controller",
                                                                     "root-ca-certificate-publisher-controller",
                                                                     "namespace-controller",
                                                                     "garbage-collector-controller",
                                                                     "clusterrole-aggregation-controller",
                                                                     "resourcequota-controller",
                                                                     "legacy-serviceaccount-token-cleaner-controller",
                                                                     "ttl-after-finished-controller",
                                                                     "validatingadmissionpolicy-status-controller"};

// The error in a value of --controllers ("*", "name", "-name"); "" if it is valid.
std::string CheckControllerList(std::span<const std::string> list);
// Upstream's IsControllerEnabled.
bool IsEnabled(std::string_view name, std::span<const std::string> list);

}  // namespace keelson::controllers
