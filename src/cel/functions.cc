#include "cel/functions.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace keelson::cel {
namespace {

template <class T, class Key>
std::vector<T> Sorted(std::initializer_list<std::span<const T>> tables, Key key) {
  std::vector<T> all;
  for (const std::span<const T> table : tables) all.insert(all.end(), table.begin(), table.end());
  std::ranges::sort(all, {}, key);
  return all;
}

template <class T, class Key>
const T* Search(const std::vector<T>& table, std::string_view name, Key key) {
  const auto found = std::ranges::lower_bound(table, name, {}, key);
  return found != table.end() && std::invoke(key, *found) == name ? &*found : nullptr;
}

}  // namespace

const Binding* FindBinding(std::string_view overload_id) {
  static const std::vector<Binding> kBindings =
      Sorted<Binding>({StandardBindings(), StringBindings(), ListBindings(), MathBindings(), KubernetesBindings(),
                       NetworkBindings(), AuthorizerBindings()},
                      &Binding::id);
  return Search(kBindings, overload_id, &Binding::id);
}

const Singleton* FindSingleton(std::string_view function) {
  static const std::vector<Singleton> kSingletons =
      Sorted<Singleton>({StandardSingletons(), ListSingletons()}, &Singleton::function);
  return Search(kSingletons, function, &Singleton::function);
}

bool HasTypeGuards(std::string_view function) {
  return function != "contains" && function != "endsWith" && function != "startsWith" && function != "flatten";
}

}  // namespace keelson::cel
