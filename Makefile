# `make` lists what there is to do. Every target installs what it lacks (scripts/install-deps.sh).
.DEFAULT_GOAL := help
.PHONY: help run build test test-matrix test-valgrind miri soak fuzz lint fmt bench bench-core deps clean

# Where rustup puts cargo, for shells that do not know it yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: ## build dq and start a server with it on port 6379, or the next free one
	@scripts/install-deps.sh build server
	cargo build --release --locked
	@exec scripts/run-server.sh

build: ## build the module, target/release/libdq.so
	@scripts/install-deps.sh build
	cargo build --release --locked

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

bench: bench-core ## measure the core, then a server with dq against its peers
	@scripts/install-deps.sh build server python
	cargo build --release --locked
	@if [ -f benches/server.py ]; then python3 benches/server.py; else echo "benches/server.py: none yet"; fi

bench-core: ## measure the core alone
	@scripts/install-deps.sh build
	@if [ -f benches/core.rs ]; then cargo bench --locked --bench core --no-default-features; else echo "benches/core.rs: none yet"; fi

deps: ## install what is missing to build, test and run
	@scripts/install-deps.sh

clean: ## remove what was built; the data of `make run` stays, in run/
	cargo clean
