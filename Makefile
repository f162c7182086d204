# Each target sets up what it needs and runs on a fresh machine: see scripts/setup.sh.
.PHONY: demo test bench format lint clean help

help:
	@echo "make demo    compile a kernel, run it, show where it is cached; needs a C++ compiler"
	@echo "make test    everything that CI checks"
	@echo "make bench   build and run the benchmarks"
	@echo "make format  format the sources"
	@echo "make lint    check format, clang-tidy and ruff"
	@echo "make clean   remove what was built (not .venv)"

demo:
	@scripts/setup.sh compiler
	@scripts/demo.sh

test:
	@scripts/setup.sh compiler build lint python cuda
	@scripts/test.sh

bench:
	@scripts/setup.sh compiler build
	@scripts/bench.sh

format:
	@scripts/setup.sh lint python
	@scripts/format.sh

lint:
	@scripts/setup.sh lint python cuda
	@scripts/test.sh format tidy ruff

clean:
	@rm -rf build
