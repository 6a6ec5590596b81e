# Language, warnings, optimisation and sanitizers: the only place that sets compiler flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# All programs land in one folder: llmctl finds its siblings beside itself.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# Checks stay on in release builds (common/base/check.h), so NDEBUG would change nothing of ours.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options(-Wthread-safety -Werror=thread-safety)
endif()
if(LLM_SANITIZE)
  # -O1: UndefinedBehaviorSanitizer's checks at -O2 cost several times the compile time, and find nothing more.
  add_compile_options(-fsanitize=${LLM_SANITIZE} -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  # The check of dynamic types needs the type information of SOCI's classes, which its library does not export.
  add_compile_options(-fno-sanitize=vptr)
  add_link_options(-fsanitize=${LLM_SANITIZE})
endif()

find_program(LLM_CCACHE ccache)
if(LLM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${LLM_CCACHE}")
endif()
find_program(LLM_MOLD mold)
if(LLM_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
