# Two commands matter: `make run` and `make test`. The others are parts of them or take longer.
.PHONY: run test check bench soak fuzz mutants update

CARGO ?= cargo
# The property tests' cases per dialect; `make soak` and CI can ask for more.
export STEPWELL_CASES ?= 8000

# Grows into `stepwell serve` with the server; until then the examples are checked, drawn and simulated.
run:
	$(CARGO) build -p stepwell
	@for file in examples/*; do \
	  echo; echo "== $$file"; \
	  target/debug/stepwell check $$file && target/debug/stepwell graph $$file \
	    && target/debug/stepwell simulate $$file --runs 100 || exit 1; \
	done

# What CI runs. Prints the time of each part.
test:
	@bash scripts/test.sh

# The quick half of `make test`: no test is run.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

bench:
	$(CARGO) bench -p stepwell-core --bench planner

# Long runs of what `make test` does in short.
soak:
	STEPWELL_CASES=400000 $(CARGO) test -p stepwell-formats --test properties -- --nocapture
	PROPTEST_CASES=200000 $(CARGO) test -p stepwell-formats --test hostile
	PROPTEST_CASES=200000 $(CARGO) test -p stepwell-core
	bash scripts/mutants.sh

# Plants each known bug in a copy of the planner and demands that the tests notice.
mutants:
	bash scripts/mutants.sh

# Rewrites expected outputs; read the diff.
update:
	UPDATE=1 $(CARGO) test -p stepwell-formats --test cases
