# The front door. `make` lists what there is; CMake does the work (see CMakePresets.json).
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local

.DEFAULT_GOAL := help
.PHONY: help build tests check clean install

help: ## this text
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

build: ## the release build: build/eplb and the libraries
	@test -f build/build.ninja || cmake --preset release
	cmake --build build -j $(JOBS) --target shipped

tests: build ## build the tests too
	cmake --build build -j $(JOBS) --target all

check: tests ## build and run every test and style check
	ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

install: build ## install under PREFIX (default /usr/local)
	cmake --install build --prefix $(PREFIX)

clean: ## remove everything built
	rm -rf build
