# The front door. `make` lists what there is; CMake does the work (CMakePresets.json), scripts/ does the rest.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CTEST = ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help build tests demo check check-all check-python docs bench format install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: build/build.ninja ## the release build: build/eplb, build/libeplb.so, build/libeplb.a
	cmake --build build -j $(JOBS) --target shipped

build/build.ninja:
	cmake --preset release

# EPLB_TESTS=ON: a missing cmocka is an error, not a build without tests.
tests: ## the release build and its tests, not run
	cmake --preset release -DEPLB_TESTS=ON >/dev/null
	cmake --build build -j $(JOBS)

demo: ## install what is missing, build, and plan a real trace
	scripts/install-packages build
	$(MAKE) build
	scripts/demo

check: ## install what is missing, build, run every test and style check
	scripts/install-packages build test
	$(MAKE) tests
	$(CTEST)
	$(MAKE) check-python

check-python: ## the Python tests in build/venv, the wheel in a fresh environment, the documentation site
	scripts/test-python
	scripts/test-wheel
	scripts/docs

check-all: ## slow and wide: both compilers, sanitizers, valgrind, long fuzzing and properties, coverage
	scripts/install-packages
	$(MAKE) check
	scripts/check-all

docs: ## the documentation site in build/site
	scripts/docs

bench: build ## the figures of the README
	scripts/bench
	scripts/bench-python

format: ## lay the C out as clang-format does
	git ls-files -z --cached --others --exclude-standard '*.c' '*.h' | xargs -0 clang-format-14 -i

install: build ## install under PREFIX (default /usr/local); DESTDIR is honoured
	cmake --install build --prefix $(PREFIX)

clean: ## remove everything built
	rm -rf build
