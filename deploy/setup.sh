#!/usr/bin/env bash
# Installs what building llmctl needs: Debian packages (with sudo where not root) and LibTorch, pinned by hash,
# into .deps/. Does nothing, quickly, when all is there.
#
#   deploy/setup.sh [--tests]     --tests: also what the tests need
set -euo pipefail
cd "$(dirname "$0")/.."
deps=${LLM_DEPS_DIR:-$PWD/.deps}

lists=(deploy/packages.txt)
for argument in "$@"; do
  case $argument in
    --tests) lists+=(deploy/packages-tests.txt) ;;
    *) echo "deploy/setup.sh: unknown argument $argument (there is only --tests)" >&2; exit 2 ;;
  esac
done

install_packages() {
  local wanted missing as_root=()
  mapfile -t wanted < <(grep -hv '^#' "${lists[@]}")
  mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
    <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | awk '$1 == "ii" { print $2 }' | sort -u))
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "deploy/setup.sh: these packages are missing and there is no sudo; install them as root, then run again:" >&2
      echo "  apt-get install ${missing[*]}" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

install_torch() {
  local stamp="$deps/venv/.installed"
  cmp -s deploy/requirements.txt "$stamp" && return
  echo "Installing LibTorch into ${deps#"$PWD"/} (about 530 MB to download)"
  mkdir -p "$deps"
  /usr/bin/python3 -m venv --clear "$deps/venv"
  "$deps/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r deploy/requirements.txt
  cp deploy/requirements.txt "$stamp"
}

install_packages
install_torch
