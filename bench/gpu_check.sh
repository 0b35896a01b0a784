#!/usr/bin/env bash
# Builds the native core in place, with what a GPU machine has and nothing from the network, then runs a command:
#
#   bench/gpu_check.sh                     doctor, and the tests that need a GPU (they fail without one)
#   bench/gpu_check.sh COMMAND ...         the command, with this tree as the package: python3 -m cuzk bench msm
#
# Needed: python3 (or PYTHON) 3.11+ with its headers, numpy, nanobind, click, rich; cmake, ninja, a C++20
# compiler; for the tests pytest, hypothesis, py_ecc; for the GPU cuda-bindings, nvidia-cuda-nvrtc. Takes a
# minute and a half on 16 cores the first time, a second afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
python=$(command -v "${PYTHON:-python3}")
tag=$("$python" -c 'import sys; print(f"cp{sys.version_info.major}{sys.version_info.minor}")')
build=build/in-place-$tag
export PYTHONPATH=$PWD/src${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1

say() { echo "gpu_check: $*" >&2; }

missing=$("$python" - <<'CODE'
from importlib.util import find_spec
needed = {"numpy": "", "nanobind": "", "click": "", "rich": "", "cuda.bindings": "no GPU without it"}
for name, note in needed.items():
    try:
        found = find_spec(name)
    except ModuleNotFoundError:
        found = None
    if found is None:
        print(name, f"({note})" if note else "")
CODE
)
[ -z "$missing" ] || say "$python lacks: ${missing//$'\n'/, }"

start=$SECONDS
say "building $build with $("${CXX:-c++}" --version | head -1), $(nproc) cores"
if ! { cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$python" && cmake --build "$build"; } >"$build.log" 2>&1; then
  tail -30 "$build.log" >&2
  say "the build failed; all of it: $build.log"
  exit 2
fi
cp "$build"/_core.*.so src/cuzk/
say "built $(basename "$build"/_core.*.so) in $((SECONDS - start)) s; PYTHONPATH=$PYTHONPATH"

if [ $# -gt 0 ]; then
  say "running: $*"
  exec "$@"
fi
say "running: python -m cuzk doctor; CUZK_REQUIRE_GPU=1 pytest -m gpu"
"$python" -m cuzk doctor
export CUZK_REQUIRE_GPU=1
# A test file that needs a package which is not here (py_ecc, hypothesis) is an error but stops no other.
exec "$python" -m pytest -m gpu --tb=short -p no:cacheprovider --continue-on-collection-errors tests/backends tests/prover
