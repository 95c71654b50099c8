# `make demo` and `make test` are all a newcomer needs; the rest is for those who change things.

TARGET := $(or $(CARGO_TARGET_DIR),target)
ATOLL := $(TARGET)/release/atoll

.PHONY: help build demo test lint bench setup

help:
	@echo 'make demo    install what is missing, build, and show what Atoll does'
	@echo 'make test    install what is missing, and run every test'
	@echo 'make build   build $(ATOLL)'
	@echo 'make lint    formatting, clippy and documentation, warnings denied'
	@echo 'make bench   measure, beside bare Python, bwrap and docker'

setup:
	@scripts/setup

build: setup
	cargo build --locked --release --package atoll-cli

demo: build
	@ATOLL=$(ATOLL) scripts/demo

test:
	@scripts/setup tests
	cargo test --workspace --locked

lint:
	@scripts/setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links' cargo doc --workspace --no-deps --document-private-items --locked

bench: build
	@scripts/setup bench
	cargo run --locked --release --package atoll-bench -- --atoll $(ATOLL) $(ARGS)
