# The front door. `make run` and `make test` do all set-up on a fresh Debian 12 machine.
#   make run ARGS="--secure-port=7443"      make test      make fuzz SECONDS=30 ONLY=selector      make bench FAST=1      make bench ONLY=codec
.DEFAULT_GOAL := build
.PHONY: setup configure build run test package package-test bench beside lint format train asan tsan fuzz soak conformance interop envtest reference cmd clients sequences simulate nightly profile projects clean

ARGS ?=
ONLY ?=
SECONDS ?= 60

setup:
	@tools/setup.sh

configure: setup
	@mkdir -p build && cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }

build: configure
	@cmake --build build/release --target keelson

run: build
	@exec build/release/keelson $(ARGS)

test: configure
	@cmake --build build/release
	@tools/run-tests.sh build/release

# The same tests under the address and undefined-behaviour sanitizers, and under the thread sanitizer.
asan tsan: setup
	@cmake --preset $@
	@cmake --build build/$@
	@tools/run-tests.sh build/$@

# A Debian package with its debug symbols, and a container image, in build/package. PRESET=reproducible builds anew, so that the bytes do
# not depend on the folder. PRESET=arm64 builds for arm64, with libraries of a Debian root in build/arm64-root.
PRESET ?= release
CONFIGURE = $(if $(filter arm64,$(PRESET)),tools/arm64.sh build/arm64-root,cmake --preset $(PRESET))
package: setup
	@mkdir -p build && $(CONFIGURE) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@cmake --build build/$(PRESET) --target keelson
	@packaging/build.py build/$(PRESET) build/package

# The packages tried out: reproducible, lintian, image, install and upgrade in a fresh Debian. Needs root and Debian's mirror. With PRESET=arm64
# the server of the package is run by qemu instead.
package-test: package
	@PRESET=$(PRESET) tools/package-test.sh $(ARGS)

bench: configure
	@tools/bench.sh "$(ONLY)"

# Our microbenchmarks beside Kubernetes' own Go code: ONLY="codec", "apply", "validation", "cel" or "call".
beside: configure
	@tools/beside.sh $(ONLY)

# The counts that the build optimizes with (cmake/profile.cmake), made anew.
train: setup
	@tools/train.sh

fuzz: setup
	@cmake --preset fuzz
	@cmake --build build/fuzz
	@tools/fuzz.sh $(SECONDS) "$(ONLY)"

lint: build
	@tools/lint.sh

format: setup
	@git ls-files '*.cc' '*.h' | xargs clang-format-19 -i

# Simulated hours of the server, its caches and its store, with faults; SEED is the first of two hours each. Ends at the first failure, with its seed.
HOURS ?= 100
SEED ?= 1
simulate: configure
	@cmake --build build/release --target simulation_test
	@KEELSON_SIMULATION_HOURS=$(HOURS) KEELSON_SIMULATION_SEED=$(SEED) build/release/test/simulation/simulation_test --gtest_filter=*InvariantsHold 2>/dev/null

# Targets that need real Kubernetes programs: one script each, which also fetches them.
soak conformance interop envtest reference cmd clients sequences nightly profile projects: build
	@if [ -x tools/$@.sh ]; then ONLY="$(ONLY)" exec tools/$@.sh $(ARGS); else echo "make $@: not built yet" >&2; exit 1; fi

clean:
	rm -rf build
