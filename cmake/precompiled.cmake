# Precompiled headers of the standard library and of Asio's coroutine types: a third of the CPU time of a build from nothing. Only headers that are not
# ours, so that the layers' include roots still decide which of ours a source can name. Sources include what they use all the same: the preset `layers`
# and `make lint` (headers alone) compile without.
option(KEELSON_PCH "precompile headers of the standard library and Asio" ON)
if(NOT KEELSON_PCH)
  function(keelson_precompiled target)
  endfunction()
  return()
endif()

set(keelson_pch_std algorithm array atomic charconv chrono cstdint cstring deque expected functional map memory mutex optional set span string string_view
  unordered_map utility variant vector)
set(keelson_pch_asio ${keelson_pch_std} boost/asio/any_io_executor.hpp boost/asio/awaitable.hpp)
set(keelson_pch_std_test ${keelson_pch_std} gtest/gtest.h)
set(keelson_pch_asio_test ${keelson_pch_asio} gtest/gtest.h)

# ccache compares a precompiled header by the file *.sum beside it (CCACHE_PCH_EXTSUM), which has the hash of the preprocessed text: the precompiled
# file itself has the folder of its build in it, so that two trees would never share an entry.
file(WRITE ${CMAKE_BINARY_DIR}/precompiled/empty.cc "")
separate_arguments(keelson_pch_flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
if(CMAKE_CXX_COMPILER_TARGET)  # the preset arm64: the headers of its root
  list(APPEND keelson_pch_flags --target=${CMAKE_CXX_COMPILER_TARGET} --sysroot=${CMAKE_SYSROOT})
endif()
foreach(name std asio std_test asio_test)
  set(target keelson_pch_${name})
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled/empty.cc)
  list(TRANSFORM keelson_pch_${name} REPLACE "^(.+)$" "<\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${target} PRIVATE ${headers})
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
  list(TRANSFORM headers REPLACE "^(.+)$" "#include \\1\n")
  string(CONCAT text ${headers})
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled/${name}.h ${text})
  set(definitions ${keelson_boost_definitions})
  list(TRANSFORM definitions PREPEND -D)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${keelson_pch_flags} -std=c++23 -E -P -x c++ ${definitions} ${CMAKE_BINARY_DIR}/precompiled/${name}.h
                  OUTPUT_VARIABLE preprocessed RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "the headers to precompile (${name}) cannot be preprocessed")
  endif()
  string(SHA256 sum "${preprocessed}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum ${sum})
endforeach()

# Tests are programs, the modules are libraries.
foreach(target keelson_pch_std_test keelson_pch_asio_test)
  target_compile_options(${target} PRIVATE -fPIE)
  target_link_libraries(${target} PRIVATE GTest::gtest)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endforeach()

# Whether one of `targets` is, or depends on, keelson::async. Targets that are not defined yet count as no.
function(keelson_uses_async result targets)
  set(seen)
  while(targets)
    list(POP_FRONT targets target)
    if(target STREQUAL "keelson::async")
      set(${result} ON PARENT_SCOPE)
      return()
    endif()
    if(TARGET ${target} AND target MATCHES "^keelson" AND NOT target IN_LIST seen)
      list(APPEND seen ${target})
      get_target_property(more ${target} INTERFACE_LINK_LIBRARIES)
      if(more)
        list(APPEND targets ${more})
      endif()
    endif()
  endwhile()
  set(${result} OFF PARENT_SCOPE)
endfunction()

# keelson_precompiled(target SUFFIX dependency...): `target` starts from a precompiled header: Asio's too if it may use that. Asio's headers have
# initializers that need its library. The path is relative to the build folder, or ccache would not share between trees (REUSE_FROM makes it absolute).
function(keelson_precompiled target suffix)
  keelson_uses_async(async "${ARGN}")
  if(async)
    set(pch keelson_pch_asio${suffix})
  else()
    set(pch keelson_pch_std${suffix})
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include-pch CMakeFiles/${pch}.dir/cmake_pch.hxx.pch>")
  # Each object waits for it: a dependency between targets orders only their links.
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^[$]<")
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/CMakeFiles/${pch}.dir/cmake_pch.hxx.pch)
endfunction()
