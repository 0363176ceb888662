# `make` lists what there is to do. A target installs what it cannot do without (scripts/install-deps.sh).
.DEFAULT_GOAL := help
.PHONY: help run build test test-matrix test-valgrind miri soak fuzz lint fmt bench bench-quick bench-core bench-instructions bench-charts bench-deps deps clean

# Where rustup puts cargo, for shells that do not know it yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' Makefile

# With the core as a library beside it Cargo would not optimise the module as a whole.
BUILD := cargo rustc --release --locked --lib --crate-type cdylib

run: ## build dq and start a server with it on port 6379, or the next free one
	@scripts/install-deps.sh build server
	$(BUILD)
	@exec scripts/run-server.sh

build: ## build the module, target/release/libdq.so
	@scripts/install-deps.sh build
	$(BUILD)

test: deps ## run all tests, two to four minutes: the core, its model, and real servers
	cargo test --locked

test-matrix: deps ## run the server tests on each of SERVERS="path ...", else on six servers that it fetches
	@scripts/test-matrix.sh $(SERVERS)

test-valgrind: deps ## run tests on a server under valgrind: wrong accesses to memory in what touches the server
	@scripts/test-valgrind.sh

miri: ## run the core's own tests under Miri, where a nightly toolchain has it
	@cargo +nightly miri --version >/dev/null 2>&1 || { echo "dq: there is no Miri here: rustup +nightly component add miri"; exit 1; }
	cargo +nightly miri test --no-default-features --lib

soak: deps ## check what servers promise while they fail, for DQ_SOAK_SECONDS (600), with new seeds or from DQ_SEED
	cargo test --locked --test server servers_keep_their_promises -- --ignored --nocapture

fuzz: ## fuzz what reads bytes from outside, FUZZ_SECONDS (600) for each of four targets
	@command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	cargo test --locked --no-default-features --test model -- --ignored seeds_for_the_fuzzer
	@# RUSTC_BOOTSTRAP: the sanitizer's flags are not stable, the compiler may be.
	for target in snapshot effects ids arguments; do \
		RUSTC_BOOTSTRAP=1 cargo fuzz run $$target -- -max_total_time=$${FUZZ_SECONDS:-600} -max_len=20000 -timeout=20 || exit 1; \
	done

lint: ## check format and lints, of the module and of the core alone
	@scripts/install-deps.sh build lint
	cargo fmt --all -- --check
	cargo clippy --all-targets --locked -- -D warnings
	cargo clippy --all-targets --locked --no-default-features -- -D warnings

fmt: ## format the code
	@scripts/install-deps.sh lint
	cargo fmt --all

bench: bench-core bench-deps ## measure the core, then dq against its peers, twenty minutes; writes benches/results.json
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/peers --json benches/results.json

bench-quick: bench-deps ## the same against peers with fewer messages, two minutes; writes nothing
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/peers --quick

bench-instructions: ## count the instructions of the hot commands under valgrind; fails where one grew by a tenth
	@scripts/install-deps.sh build server python
	$(BUILD)
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/instructions.py

bench-core: ## measure the core alone
	@scripts/install-deps.sh build
	cargo bench --locked --bench core --no-default-features

# From benches/results.json; the charts are committed. No other target needs matplotlib.
TARGET := $(or $(CARGO_TARGET_DIR),target)
bench-charts: ## draw docs/charts/, and renew the tables of README.md and docs/performance.md
	@scripts/install-deps.sh python
	@test -e $(TARGET)/bench-venv/matplotlib-3.9.4 || { python3 -m venv $(TARGET)/bench-venv \
		&& $(TARGET)/bench-venv/bin/pip install -q --disable-pip-version-check matplotlib==3.9.4 \
		&& touch $(TARGET)/bench-venv/matplotlib-3.9.4; }
	$(TARGET)/bench-venv/bin/python benches/peers/publish.py

# What is measured beside dq is left out where it cannot be had.
bench-deps:
	@scripts/install-deps.sh build server python
	@scripts/install-deps.sh bench || echo "dq: measured without what is missing"
	$(BUILD)

deps: ## install what is missing to build, test and run
	@scripts/install-deps.sh

clean: ## remove what was built; the data of `make run` stays, in run/
	cargo clean
