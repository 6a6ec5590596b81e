#!/usr/bin/env bash
# Configures and builds.  deploy/build.sh [programs|all] [CMake option]...
#   programs (default): what a user runs. all: the tests too.
# The build folder is build/, or LLM_BUILD_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-programs}
[ $# -gt 0 ] && shift
build=${LLM_BUILD_DIR:-build}
targets=(llmctl llm-coordinator llm-worker llm-shim llm-trainer llm-data)
tests=OFF
if [ "$what" = all ]; then
  targets=(all)
  tests=ON
fi
cmake -S . -B "$build" -G Ninja --log-level=WARNING -DLLM_DEPS_DIR="${LLM_DEPS_DIR:-$PWD/.deps}" -DLLM_BUILD_TESTS=$tests "$@"
cmake --build "$build" --target "${targets[@]}"
