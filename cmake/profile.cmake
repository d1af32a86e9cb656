# Profile-guided optimization: modules that requests run through are compiled with counts of how often each branch was taken (cmake/profile/keelson.profdata), so
# that the compiler inlines and lays out the code of a request together, and makes what hardly ever runs small. `make train` makes the counts anew; they may be
# older than the code: functions that changed since are compiled as without. Formats of counts belong to a compiler's version.
set(KEELSON_PROFILE use CACHE STRING "use: optimize with the counts in the tree; generate: build a program that makes them; off")
set(keelson_profile ${CMAKE_CURRENT_LIST_DIR}/profile/keelson.profdata)
set(keelson_profiled admission apiextensions async audit auth auth_rbac auth_service_account base cacher cel codec controlplane endpoints flowcontrol http kv_mvcc
  kv_rocks meta net object patch registry registry_apiextensions registry_core registry_resource registry_rules registry_strategy request schema_structural server
  storage telemetry tracing validation validation_structural validation_structural_cel webhook)

# Functions of a file alone are counted under the file's name, not under its path, which is another one in every tree.
set(keelson_profile_names "SHELL:-mllvm -static-func-full-module-prefix=false")

if(NOT CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" OR KEELSON_SANITIZE)
  set(KEELSON_PROFILE "off")
endif()

# keelson_profile_options(target module): compile options of a module's target.
function(keelson_profile_options target name)
  if(NOT name IN_LIST keelson_profiled OR KEELSON_PROFILE STREQUAL "off")
    return()
  endif()
  if(KEELSON_PROFILE STREQUAL "generate")
    target_compile_options(${target} PRIVATE -fprofile-generate -fprofile-update=atomic ${keelson_profile_names})
    target_link_options(${target} INTERFACE -fprofile-generate)
  elseif(EXISTS ${keelson_profile})
    # Relative to the build folder, or a compiler cache would not share between trees.
    file(RELATIVE_PATH path ${CMAKE_BINARY_DIR} ${keelson_profile})
    target_compile_options(${target} PRIVATE -fprofile-use=${path} ${keelson_profile_names} -Wno-backend-plugin -Wno-profile-instr-out-of-date -Wno-profile-instr-unprofiled)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources EXCLUDE REGEX "^[$]<")
    set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${keelson_profile})
  endif()
endfunction()

# keelson_profile_layout(target): functions of a program that call each other often lie together. lld does that, mold does not.
function(keelson_profile_layout target)
  if(KEELSON_PROFILE STREQUAL "use" AND EXISTS ${keelson_profile})
    target_link_options(${target} PRIVATE -fuse-ld=lld)
  endif()
endfunction()
