# `make` lists the targets. A target installs what it needs and cannot find (scripts/install-deps.sh).
.DEFAULT_GOAL := help
.PHONY: help run build test test-rest test-client test-ctl test-web pictures test-clients test-workers test-import test-prometheus test-matrix test-valgrind miri explore soak soak-clients fuzz fuzz-smoke lint deny msrv fmt bench bench-quick bench-core bench-stalls bench-end-to-end bench-shards bench-workers bench-instructions bench-charts bench-deps docs dist test-dist deps clean

# The directory where rustup installs cargo, in case the shell does not have it in its PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' Makefile

BUILD := cargo build --release --locked
TARGET := $(or $(CARGO_TARGET_DIR),target)

run: ## build the module to try it, and start a server with it on port 6379, or on the next free port
	@scripts/install-deps.sh build server
	@DQ_MODULE="$$(scripts/build-to-run.sh)" && export DQ_MODULE && exec scripts/run-server.sh

build: ## build the module, target/release/libdq.so
	@scripts/install-deps.sh build
	$(BUILD)

# The last lines name each test that failed and then passed: a defect too. See docs/internals/testing.md, Flaky tests.
test: deps ## run the tests of the core, of the module on a real server, of the client and of dqctl, but for those of test-rest
	scripts/build-tests.sh
	@echo "dq: the servers of the tests keep their files in $$(scripts/find-test-dir.sh)"
	DQ_HISTORIES=5000 $(RUN_TESTS) --workspace -- --test-threads $(TEST_THREADS) $(addprefix --skip ,$(LONG))

test-rest: deps ## run what test leaves out: upgrades, further partitions and moving slots, memory usage, other histories of the model
	scripts/build-tests.sh
	DQ_HISTORIES=5000 DQ_SEED=2 $(RUN_TESTS) --workspace --test model
	$(RUN_TESTS) --workspace --test server -- --test-threads $(TEST_THREADS) $(LONG)

# The servers of the tests load the module of scripts/build-tests.sh. Tests wait most of the time, so more of them run
# at once than there are cores.
RUN_TESTS = DQ_MODULE="$$(scripts/find-module.sh debug)" scripts/run-tests.sh
TEST_THREADS = 6

# Server tests that take long, by parts of their names: those that need a second build of the module, and all but one or
# two of each kind of run with a checker. A part that no test has any more leaves nothing out.
LONG = _upgraded_ upgrades:: memory_usage_is_accurate \
	a_cluster_master_that a_master_that_goes_on a_partition_of_a_cluster a_partition_between a_partition_keeps_the \
	is_forwarded_in_a_partition a_moving_slot_keeps_limits a_moving_slot_keeps_the_order a_moving_slot_forwards

test-client: deps ## run the tests of the client, clients/rust/, on a real server with the module
	cargo test --locked --package dq-client -- --test-threads $(TEST_THREADS)

test-ctl: deps ## run the tests of dqctl, ctl/, on a real server with the module
	cargo test --locked --package dqctl -- --test-threads $(TEST_THREADS)

test-web: deps ## look at the page of dqctl web in a headless browser, chromium or DQ_BROWSER
	cargo test --locked --package dqctl --test it web:: -- --ignored --test-threads 1

pictures: deps ## take the pictures of the page in docs/images anew, with chromium or DQ_BROWSER
	DQ_PICTURES="$(CURDIR)/docs/images" cargo test --locked --package dqctl --test it web::pictures -- --ignored

# PLANTED=1/3: only the first third of the planted faults.
test-clients: ## test the clients in clients/ and drive them with one suite; installs packages from PyPI and npm into target/clients
	@scripts/install-deps.sh build server python
	scripts/build-tests.sh
	scripts/test-clients.sh

test-workers: deps ## run unchanged workers of RQ, Celery (from PyPI) and Sidekiq (if it is installed) behind queues that forward
	DQ_SERVER="$$(scripts/find-server.sh)" cargo test --locked --test server forwarding::workers -- --ignored --test-threads 1

test-prometheus: deps ## scrape dqctl export with Prometheus, and check the alerts of contrib/ with promtool
	@scripts/install-deps.sh prometheus
	cargo test --locked --package dqctl contrib -- --include-ignored --test-threads 2

# The packages of PyPI and npm are installed once, into target/import.
IMPORT = $(abspath $(TARGET))/import
test-import: deps ## let RQ, Celery (from PyPI), BullMQ (from npm) and Sidekiq (if it is installed) write queues, and import them
	@test -e $(IMPORT)/python/installed || { python3 -m venv $(IMPORT)/python \
		&& $(IMPORT)/python/bin/pip install -q --disable-pip-version-check "rq>=2" "celery[redis]>=5.4" \
		&& touch $(IMPORT)/python/installed; }
	@test -e $(IMPORT)/node/installed || { mkdir -p $(IMPORT)/node && echo '{}' >$(IMPORT)/node/package.json \
		&& npm install --silent --ignore-scripts --prefix $(IMPORT)/node bullmq ioredis && touch $(IMPORT)/node/installed; }
	DQ_IMPORT_PYTHON=$(IMPORT)/python/bin/python DQ_IMPORT_NODE=$(IMPORT)/node \
		cargo test --locked --package dqctl --test it import -- --ignored --test-threads 1

test-matrix: deps ## run the server tests on each of SERVERS="path ...", by default on six servers that are downloaded
	@scripts/test-matrix.sh $(SERVERS)

test-valgrind: deps ## run server tests under valgrind, to find invalid memory accesses of the module
	@scripts/test-valgrind.sh

miri: ## run the unit tests of the core under Miri, which needs a nightly toolchain
	@cargo +nightly miri --version >/dev/null 2>&1 || { echo "dq: missing: Miri. Install it with: rustup +nightly component add miri"; exit 1; }
	cargo +nightly miri test -p dq-queue --lib

explore: ## carry out every history of a master and a replica up to a bound; DQ_DEPTH=1 adds an act
	cargo test --locked --release -p dq-queue --test explore -- --ignored --nocapture

soak: deps ## check the guarantees on failing servers and power cuts for DQ_SOAK_SECONDS (600), with a new seed or with DQ_SEED; DQ_FAULTS=partitions, cluster, slots, upgrades or clocks
	cargo test --locked --test server servers_keep_their_promises -- --ignored --nocapture

# `make test-clients` makes the programs. A server with a debug build would be away for seconds while it loads its AOF.
soak-clients: ## work with all clients while workers and servers are killed, for DQ_SOAK_SECONDS (600), with a new seed or DQ_SEED
	@scripts/install-deps.sh build server
	$(BUILD)
	DQ_MODULE="$${DQ_MODULE:-$$(scripts/find-module.sh release)}" $(TARGET)/clients/python/bin/python clients/conformance/soak.py

FUZZ_TARGETS := snapshot effects ids arguments
# RUSTC_BOOTSTRAP: the sanitizer needs unstable flags, which a stable compiler accepts with it.
FUZZ := RUSTC_BOOTSTRAP=1 cargo fuzz run
FUZZ_LIMITS := -max_len=20000 -timeout=20

fuzz: ## fuzz the four parsers of untrusted bytes, each for FUZZ_SECONDS (600); adds inputs to fuzz/corpus
	@command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	cargo test --locked -p dq-queue --test model -- --ignored seeds_for_the_fuzzer
	for target in $(FUZZ_TARGETS); do \
		$(FUZZ) $$target -- -max_total_time=$${FUZZ_SECONDS:-600} $(FUZZ_LIMITS) || exit 1; \
	done

fuzz-smoke: ## the same for a minute each, if cargo-fuzz is installed; leaves fuzz/corpus alone
	@command -v cargo-fuzz >/dev/null || { echo "dq: not fuzzed: cargo-fuzz is not installed"; exit 0; }; \
	for target in $(FUZZ_TARGETS); do \
		mkdir -p $(TARGET)/fuzz-smoke/$$target; \
		$(FUZZ) $$target $(TARGET)/fuzz-smoke/$$target fuzz/corpus/$$target -- \
			-max_total_time=$${FUZZ_SECONDS:-60} $(FUZZ_LIMITS) -verbosity=0 -print_funcs=0 -print_final_stats=1 || exit 1; \
	done

lint: ## check formatting and lints, and that workflows and manifests agree with the rest
	@scripts/install-deps.sh build lint python
	python3 scripts/check-repository.py
	python3 scripts/public-items.py
	cargo fmt --all -- --check
	cargo clippy --all-targets --workspace --locked -- -D warnings

deny: ## check licenses, sources and advisories of the dependencies (deny.toml), if cargo-deny is installed
	@if ! command -v cargo-deny >/dev/null; then \
		echo "dq: dependencies not checked: cargo-deny is not installed"; \
	else \
		cargo deny --locked check licenses bans sources && \
		if cargo deny --locked fetch db >/dev/null 2>&1; then cargo deny --locked check --disable-fetch advisories; \
		else echo "dq: advisories not checked: their database cannot be downloaded"; fi; \
	fi

msrv: ## build with the oldest supported Rust (rust-version in Cargo.toml), if rustup has it
	@version=$$(sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml); \
	toolchain=$$(rustup toolchain list 2>/dev/null | grep -oE "^$$version(\.[0-9]+)?" | tail -n 1); \
	if [ -z "$$toolchain" ]; then \
		echo "dq: Rust $$version not checked: rustup does not have it (rustup toolchain install $$version --profile minimal)"; \
	else \
		set -x; cargo "+$$toolchain" check --locked --workspace; \
	fi

fmt: ## format the code
	@scripts/install-deps.sh lint
	cargo fmt --all

bench: bench-core bench-deps ## measure the core, then dq and other queues, half an hour; writes benches/results.json
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/peers --json benches/results.json

bench-quick: bench-deps ## measure dq and other queues with fewer messages, three minutes; writes no file
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/peers --quick

# STALLS: options of benches/stalls, such as --quick or --only leases-pop.
bench-stalls: ## play the worst cases, half an hour; writes benches/stalls/results.json
	@scripts/install-deps.sh build server python
	$(BUILD)
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/stalls $(or $(STALLS),--json benches/stalls/results.json)

bench-workers: ## measure workers in all six languages beside others, in eight minutes; installs from PyPI, npm and Debian
	@scripts/install-deps.sh build server python
	$(BUILD)
	python3 benches/workers

# END_TO_END: options of benches/end-to-end, such as --quick or --only dq,BullMQ.
bench-end-to-end: bench-deps ## measure producers and workers of dq, BullMQ and others with the scenarios of bullmq-bench
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/end-to-end $(END_TO_END)

bench-shards: ## measure what a message costs all servers of a cluster with 1, 2, 4 and 8 shards, in two minutes
	@scripts/install-deps.sh build server python
	$(BUILD)
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/shards

bench-instructions: ## count the instructions of frequent commands under valgrind; fails if one grew by a tenth
	@scripts/install-deps.sh build server python
	$(BUILD)
	DQ_SERVER="$$(scripts/find-server.sh)" python3 benches/instructions.py

bench-core: ## measure the core alone
	@scripts/install-deps.sh build
	cargo bench --locked -p dq-queue --bench core

# The charts are committed, so that no other target needs matplotlib.
bench-charts: ## draw docs/charts and update the tables of docs, from benches/results.json
	@scripts/install-deps.sh python
	@test -e $(TARGET)/bench-venv/matplotlib-3.9.4 || { python3 -m venv $(TARGET)/bench-venv \
		&& $(TARGET)/bench-venv/bin/pip install -q --disable-pip-version-check matplotlib==3.9.4 \
		&& touch $(TARGET)/bench-venv/matplotlib-3.9.4; }
	$(TARGET)/bench-venv/bin/python benches/peers/publish.py

# The bench leaves out the queues whose programs cannot be installed.
bench-deps:
	@scripts/install-deps.sh build server python
	@scripts/install-deps.sh bench || echo "dq: the bench leaves out what is missing"
	$(BUILD)

docs: ## build the site of docs/ in target/docs/book; cargo installs mdbook if it is missing, which takes minutes
	@scripts/install-deps.sh python
	@command -v mdbook >/dev/null || cargo install --locked mdbook
	python3 scripts/docs.py $(TARGET)/docs

dist: ## build what is released, in target/dist: stripped binaries, a tarball, a Debian package, checksums
	@scripts/install-deps.sh build python
	scripts/dist.sh $(TRIPLE)

# It installs the package on this machine and removes it again, if it may: as root, and if no such package is there.
test-dist: ## test target/dist as a new user would, on the server that is installed or on SERVERS="path ..."
	@scripts/install-deps.sh server python
	python3 tests/dist $(foreach server,$(SERVERS),--server $(server))

deps: ## install what is missing to build, test and run
	@scripts/install-deps.sh

clean: ## remove what was built; the data of `make run` stays in run/
	cargo clean
	rm -rf "/dev/shm/dq-tests-$$(id -u)"
