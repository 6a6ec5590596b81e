#!/usr/bin/env bash
# Builds.  deploy/build.sh [programs|all]
#   programs (default): what a user runs. all: the tests too.
# The build folder is build/, or LLM_BUILD_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${LLM_BUILD_DIR:-build}
case ${1:-programs} in
  programs) targets=(llmctl llm-coordinator llm-worker llm-shim llm-evidence llm-trainer llm-data) tests=OFF ;;
  all) targets=(all) tests=ON ;;
  *) echo "deploy/build.sh: unknown argument $1 (programs or all)" >&2; exit 2 ;;
esac

# Configuring costs seconds: only for a new folder, or to add the tests. Ninja itself notices changed CMake files.
has_tests() { grep -q '^LLM_BUILD_TESTS:BOOL=ON' "$build/CMakeCache.txt"; }
if [ ! -f "$build/build.ninja" ] || { [ $tests = ON ] && ! has_tests; }; then
  cmake -S . -B "$build" -G Ninja --log-level=WARNING -DLLM_DEPS_DIR="${LLM_DEPS_DIR:-$PWD/.deps}" \
    -DLLM_BUILD_TESTS=$tests
fi
cmake --build "$build" --target "${targets[@]}"
