# The development tasks: `make` lists them. cargo, xtask and the scripts in .ci do the work.

# Each recipe is one shell script that ends at its first error.
.ONESHELL:
.SHELLFLAGS = -euc
.DEFAULT_GOAL := help
.PHONY: help demo test check-machine check-http2 check-kubernetes check-slurm check-release dist check-dist tidy docs pictures \
    simulate bench fuzz install \
    uninstall clean tools

PREFIX = /usr/local
DESTDIR =
AS_WRK =
ROWS =
PEERS =
AGAINST =
ROUNDS =
DIST =
SAVE =
SEED =
PARTS =
comma = ,
BIN = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
DOC = $(SHARE)/doc/onrush
# What onrush writes about itself, each with what it is called.
WRITES = man:man/man1/onrush.1 complete-bash:bash-completion/completions/onrush complete-zsh:zsh/site-functions/_onrush \
    complete-fish:fish/vendor_completions.d/onrush.fish
# What messages refer to ("see docs/measuring.md"), and what that refers to.
PAGES = $(wildcard *.md LICENSE-* docs/*.* docs/pictures/* examples/*.* examples/*/*)

SECONDS = 60
TARGETS = $(notdir $(wildcard fuzz/corpus/*))

RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
export GET_RUST := curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y

# Under sudo, cargo and its output still belong to the calling user.
CALLER := $(if $(filter 0,$(shell id -u)),$(filter-out root,$(SUDO_USER)))
CALLER_HOME := $(if $(CALLER),$(shell getent passwd $(CALLER) | cut -d: -f6),$(HOME))
AS_CALLER := $(if $(CALLER),sudo -u $(CALLER) -H env PATH="$$PATH")
# A shell that was open when Rust was installed does not have its PATH yet. That of a user often lacks the directories
# of programs for administrators.
export PATH := $(PATH):$(CALLER_HOME)/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile
	$(MAKE) --silent tools

# In its own session, so that an interrupt at the terminal does not reach the server: it ends after the load.
demo: tools ## build onrush, put five seconds of load on the embedded target, print the report
	@onrush=$$($(build))
	says=$$(mktemp)
	setsid "$$onrush" serve --addr 127.0.0.1:0 >"$$says" &
	server=$$!
	trap 'kill $$server; rm "$$says"' EXIT
	trap 'exit 1' HUP INT TERM
	until url=$$(grep -o 'http://[^ ]*' "$$says"); do kill -0 $$server; sleep 0.05; done
	cat "$$says"
	echo "$$ onrush -d5 --latency $$url"
	"$$onrush" -d5 --latency "$$url"

test: tools ## install what the tests need (asking first), then check and test everything
	@.ci/test

check-machine: tools ## measure what needs a quiet machine: before a release, and when its subject changes
	@CHECK_MACHINE=1 cargo test --lib search::simulation -- --nocapture
	CHECK_MACHINE=1 cargo test --lib probe::simulation -- --nocapture
	SITUATIONS=100 SITUATIONS_SEED=$$(date +%s) cargo test --lib single::situations -- --nocapture
	CHECK_MACHINE=1 cargo test --test it
	CHECK_MACHINE=1 cargo test --release --test it

check-http2: tools ## check HTTP/2 with the servers of h2spec, which break its rules one by one; needs Go
	@.ci/check http2

check-kubernetes: tools ## carry runs out in a Kubernetes of two nodes on this machine; needs root, and Go to build it once
	@.ci/check-kubernetes

check-release: tools ## check what has a CI job of its own: oldest Rust, musl, aarch64, crates, dependencies, fuzzing, HTTP/2
	@failed= skipped=
	for check in oldest musl aarch64 package dependencies fuzz http2; do
	    .ci/check $$check && continue
	    if [ $$? = 77 ]; then skipped="$$skipped $$check"; else failed="$$failed $$check"; fi
	done
	if [ -n "$$failed$$skipped" ]; then echo "failed:$${failed:- none}; skipped:$${skipped:- none}"; exit 1; fi

check-slurm: tools ## run onrush on the two nodes of a real Slurm; needs root
	@.ci/check-slurm "$$($(build))"

dist: tools ## make the packages of a release in target/dist: [PARTS=binary,archive,deb,rpm,image,source,sbom,info,sums]
	@.ci/dist $(subst $(comma), ,$(PARTS))

check-dist: tools ## install, run and remove the packages in target/dist, on other systems and kernels too
	@.ci/check-dist

tidy: tools ## name every place that breaks a house rule
	@cargo xtask tidy

# The book is a convenience: every page reads as plain Markdown, and tests check the links.
docs: ## build the pages in docs/ as a book in target/book; needs mdbook
	@if ! command -v mdbook >/dev/null; then
	    echo "make docs needs mdbook. To install: cargo install --locked mdbook" >&2
	    exit 1
	fi
	mdbook build docs
	# Links out of the pages lead into the clone.
	sed -i -E 's#href="\.\./([A-Z]+)\.html#href="../../\1.md#g; s#href="\.\./([a-z])#href="../../\1#g' target/book/*.html
	echo "built target/book/index.html"

pictures: tools ## redraw the pictures in docs/pictures from real runs
	@cargo xtask pictures

simulate: tools ## carry out random runs and check what must be true of each: [SECONDS=60] [SEED=7]
	@export RUST_BACKTRACE=0 SIMULATE_SECONDS=$(SECONDS) SIMULATE_SEED=$(or $(SEED),$$(date +%s)000)
	cargo test --package onrush-load --lib -- --exact --show-output \
	    run::tests::random::random_runs_keep_all_invariants \
	    run::machines::tests::arrived_rows_are_summed_once

# Inputs that the fuzzer keeps are in target/fuzz, and the next run begins with them. Without link-time optimisation a
# target is built in seconds.
fuzz: tools ## search for bytes that break a property: [SECONDS=60 for each] [TARGETS="url units"]
	@$(need_fuzzer)
	export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
	# Only nightly toolchains have the address sanitizer.
	if cargo +nightly --version >/dev/null 2>&1; then
	    export RUSTUP_TOOLCHAIN=nightly
	    sanitizer=address
	fi
	for target in $(TARGETS); do
	    echo "== $$target, for $(SECONDS) s"
	    mkdir -p "target/fuzz/$$target"
	    cargo fuzz run --sanitizer "$${sanitizer:-none}" --features libfuzzer "$$target" "target/fuzz/$$target" "fuzz/corpus/$$target" \
	        -- -max_total_time=$(SECONDS) -max_len=1024 -verbosity=0 -print_final_stats=1
	done

bench: tools ## compare with other generators or builds: [ROWS=small,big] [PEERS=wrk,shb] [AGAINST=FILE] [ROUNDS=21] [DIST=1] [SAVE=1]
	@cargo xtask bench ROWS=$(ROWS) PEERS=$(PEERS) AGAINST=$(AGAINST) ROUNDS=$(ROUNDS) DIST=$(DIST) SAVE=$(SAVE)

install: tools ## install onrush and its pages: [PREFIX=/usr/local] [DESTDIR=], and as wrk too: [AS_WRK=1]
	@$(need_places)
	if [ "$(AS_WRK)" = 1 ] && $(wrk_is_there) && ! $(wrk_is_ours); then
	    echo "$(BIN)/wrk is there already and is not a link to onrush. To keep it under another name:" >&2
	    echo "    mv $(BIN)/wrk $(BIN)/wrk.original" >&2
	    exit 1
	fi
	binary=$$($(build))
	install -D "$$binary" "$(BIN)/onrush"
	echo "installed $(BIN)/onrush"
	for page in $(PAGES); do install -D -m 644 "$$page" "$(DOC)/$$page"; done
	echo "installed $(DOC)"
	for file in $(WRITES); do
	    install -D -m 644 /dev/null "$(SHARE)/$${file#*:}"
	    "$$binary" --generate "$${file%%:*}" >"$(SHARE)/$${file#*:}"
	done
	echo "installed the manual page (man onrush), and completions for bash, zsh and fish, in $(SHARE)"
	if [ "$(AS_WRK)" = 1 ]; then
	    ln -sf onrush "$(BIN)/wrk"
	    ln -sf onrush "$(SHARE)/bash-completion/completions/wrk"
	    echo "installed $(BIN)/wrk, a link to it"
	fi

# The only target that needs no tools: uninstalling must not require any.
uninstall: ## remove what install installed: [PREFIX=/usr/local] [DESTDIR=]
	@$(need_places)
	if $(wrk_is_ours); then rm -v "$(BIN)/wrk"; rm -f "$(SHARE)/bash-completion/completions/wrk"; fi
	if [ -e "$(BIN)/onrush" ]; then rm -v "$(BIN)/onrush"; else echo "there is no $(BIN)/onrush"; fi
	for file in $(WRITES); do rm -f "$(SHARE)/$${file#*:}"; done
	if [ -d "$(DOC)" ]; then
	    for page in $(PAGES); do rm -f "$(DOC)/$$page"; done
	    # What somebody else has put there stays.
	    find "$(DOC)" -depth -type d -empty -delete
	    if [ -e "$(DOC)" ]; then echo "left $(DOC), which has other files"; else echo "removed '$(DOC)'"; fi
	fi

clean: tools ## delete everything that was built
	@cargo clean

# Names what is missing, and the command that installs it.
tools:
	@is_missing=0
	need() {
	    printf 'onrush needs %s. To install:\n' "$$1" >&2
	    shift
	    printf '    %s\n' "$$@" >&2
	    is_missing=1
	}
	if ! command -v cc >/dev/null || ! command -v make >/dev/null; then
	    need "gcc and make" "sudo apt-get install gcc make"
	fi
	version=$$($(AS_CALLER) cargo --version 2>/dev/null | cut -d ' ' -f 2)
	oldest=$$(printf '%s\n' "$(RUST_VERSION)" "$$version" | sort -V | head -n 1)
	if [ "$$oldest" != "$(RUST_VERSION)" ]; then
	    if ! command -v curl >/dev/null; then GET_RUST="sudo apt-get install curl && $$GET_RUST"; fi
	    if command -v rustup >/dev/null; then GET_RUST="rustup update stable && rustup default stable"; fi
	    need "cargo $(RUST_VERSION) or newer (there is $${version:-none})" "$$GET_RUST" '. "$$HOME/.cargo/env"'
	fi
	exit $$is_missing

# Builds the program as users install it, and prints its path.
build = $(AS_CALLER) cargo build --release --package onrush --bin onrush --message-format json-render-diagnostics | \
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | grep .

# Names the C++ compiler that libFuzzer needs, if it is missing; installs cargo-fuzz if that is.
define need_fuzzer
if ! command -v c++ >/dev/null; then
    echo "libFuzzer needs a C++ compiler. To install: sudo apt-get install g++" >&2
    exit 1
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "make fuzz needs cargo-fuzz; installing it: cargo install --locked cargo-fuzz"
    cargo install --locked cargo-fuzz
fi
endef

# Whether there is a command wrk, and whether it is our own link.
wrk_is_there = { [ -e "$(BIN)/wrk" ] || [ -L "$(BIN)/wrk" ]; }
wrk_is_ours = [ "$$(readlink "$(BIN)/wrk")" = onrush ]

# Fails, and says what to type, if a directory (or its nearest existing parent) cannot be written: nothing is half installed.
define need_places
if [ -d "$(BIN)/onrush" ]; then
    echo "$(BIN)/onrush is a directory. Move it away, or choose another PREFIX." >&2
    exit 1
fi
for place in "$(BIN)" "$(DOC)" $(foreach file,$(WRITES),"$(SHARE)/$(patsubst %/,%,$(dir $(lastword $(subst :, ,$(file)))))"); do
    while [ ! -e "$$place" ]; do place=$$(dirname "$$place"); done
    if [ ! -d "$$place" ]; then
        echo "$$place is not a directory. Move it away, or choose another PREFIX." >&2
        exit 1
    fi
    if [ ! -w "$$place" ]; then
        echo "$$place cannot be written. Use sudo, or a directory of your own:" >&2
        echo "    $(strip sudo make $@ $(MAKEOVERRIDES))" >&2
        echo "    $(strip make $@ $(filter-out PREFIX=%,$(MAKEOVERRIDES)) PREFIX=$$HOME/.local)" >&2
        exit 1
    fi
done
endef
