# Each target is a line that a person could type. Needed: Python 3.11+ with venv and headers, a C++20
# compiler, make (Debian, Ubuntu: apt install python3-venv python3-dev g++ make). All else comes by pip.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := pyproject.toml CMakeLists.txt $(shell find src/cuzk -type f -not -name '*.so' -not -path '*/__pycache__/*')

.PHONY: prove test check slow filecoin sanitize interop browser gpu bench clean

# Prove the example circuit from nothing and verify the proof.
prove: .venv/installed
	@mkdir -p out
	$(BIN)/cuzk ptau new bn254 13 -o out/powers.ptau
	$(BIN)/cuzk setup examples/membership20.r1cs out/powers.ptau -o out/membership20.zkey
	$(BIN)/cuzk prove out/membership20.zkey examples/membership20.wtns -o out/proof.json --public out/public.json
	$(BIN)/cuzk verify out/membership20.zkey out/public.json out/proof.json

test: .venv/installed .venv/test
	$(BIN)/pytest -n 2 -m "not slow and not interop and not browser" -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

check: .venv/installed .venv/check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest tests/test_rules.py

slow: .venv/installed .venv/test
	$(BIN)/pytest -m "slow and not filecoin"

# Filecoin's proofs of millions of rows under keys made here: 10 minutes on 2 cores, 4 GB of memory, 2 GB of disk.
filecoin: .venv/installed .venv/test
	$(BIN)/pytest -m filecoin -x

# The kernels in the emulator with the address and undefined behaviour sanitizers, then in random orders of
# threads and blocks; both leave rubbish in memory that nobody wrote. Needs gcc's libasan and libubsan.
EMULATED := $(wildcard tests/backends/test_*.py)
CXX_LIB = $(shell $(CXX) -print-file-name=$(1))
sanitize: .venv/installed .venv/test
	CUZK_SANITIZE=1 CUZK_POISON=0x5A LD_PRELOAD="$(call CXX_LIB,libasan.so) $(call CXX_LIB,libubsan.so) $(call CXX_LIB,libstdc++.so.6)" \
	  ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:detect_odr_violation=0 PYTHONMALLOC=malloc \
	  $(BIN)/pytest -p no:xdist -m "not slow and not gpu" $(EMULATED)
	for seed in 1 2 3; do CUZK_SHUFFLE=$$seed CUZK_POISON=$$seed $(BIN)/pytest -m "not slow and not gpu" $(EMULATED) || exit 1; done

# Against circom, circomlib, snarkjs, solc and an Ethereum virtual machine from npm: needs Node.js.
interop: .venv/installed .venv/test build/interop/node_modules
	$(BIN)/pytest -m "interop and not slow"

# The status page in Chromium (Debian: apt install chromium chromium-driver): half a minute.
browser: .venv/installed .venv/test
	CUZK_REQUIRE_BROWSER=1 $(BIN)/pytest -m browser

# On a machine with an NVIDIA GPU; where none can be used these tests fail, elsewhere they skip.
gpu: .venv/installed .venv/test .venv/cuda
	CUZK_REQUIRE_GPU=1 $(BIN)/pytest -m gpu

bench: .venv/installed
	$(BIN)/python -m bench

clean:
	rm -rf .venv build out .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The package itself: built again when a source file changed, by ninja and so only what depends on it.
.venv/installed: $(SOURCES) | .venv/tools
	@echo installing: $@
	@$(PIP) install --no-build-isolation .
	@touch $@

.venv/test .venv/check .venv/cuda: pyproject.toml | .venv/installed
	@echo installing: $@
	@$(PIP) install --no-build-isolation ".[$(@F)]"
	@touch $@
.venv/check: .venv/test

build/interop/node_modules: Makefile
	npm install --silent --no-audit --no-fund --prefix build/interop circom2@0.2.23 circomlib@2.0.5 snarkjs@0.7.6 solc@0.8.37 @zk-kit/semaphore-artifacts@4.13.0 @ethereumjs/evm@10.1.3 @ethereumjs/util@10.1.3
	@touch $@

# What builds and runs it; the checks say in one line what the machine lacks.
.venv/tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "cuzk needs Python 3.11 or newer, found: $$($(PYTHON) --version 2>&1); name another with make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null || { echo "$(PYTHON) has no C headers (Python.h): apt install python3-dev" >&2; exit 1; }
	@echo 'int main() { return [](auto x) requires(sizeof(x) > 0) { return 0; }(1); }' | $(CXX) -std=c++20 -fsyntax-only -x c++ - 2>/dev/null || { echo "no C++20 compiler: \"$(CXX)\" is missing or too old: apt install g++, or name one with make CXX=clang++" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@echo installing: $@
	@$(PIP) install "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.18" ninja
	@touch $@
