# SPDX-License-Identifier: GPL-2.0-only
#
#   make demo     set all up, run the weights study, write the report
#   make test     set all up, run the tests that are not long; builds the default kernel alone
#   make test-all build all kernels but the emulated one with sanitizers, run what is not for the night
#   make test-night  build all kernels, run what test-all leaves out, storms and sweeps at full length
#   make test-smp of test-all, those on four processors: Debian's kernel, and User Mode Linux with SMP
#   make test-times  print where the time of the tests went
#   make storm    the storms of four processors six times as long as in test-all
#   make pins     pin today's kernel sources of Debian (kernel/pins.toml)
#   make test-blktests BLKTESTS=DIR  the public suite, with each of our elevators as the default
#   make sweep    dm-setcache with a fault at each write of seven lives in each mode, on both kernels; says how many
#   make deb      Debian packages in dist/: isoblk-dkms and isoblk; SERIES="6.12 7.2": for these kernels alone
#   make rpm      the same as RPM packages
#   make try-packages  install, upgrade and purge them in roots of six distributions; root; an hour
#   make try-system  what docs/start/containers.md shows, in virtual machines with several Debians; root; an hour
#   make check    set all up, run every linter
#   make bench    measure speed (docs/findings/speed.md)
#   make machines  the same studies on uml, icount, smp and this machine (docs/findings/machines.md); root; an hour
#   make reference  write the pages of docs/reference that are made from records
#   make architecture  draw the packages and their imports (docs/concepts/architecture.md)
#   make wheel    the lab as a package for pip, which needs no clone, in dist/
#   make image    that package and a kernel as a container's image, isoblk, with podman or CONTAINERS
#   make figures  make the figures of the documentation again
#   make site     the documentation as a site in site/, to be read offline; a dead link fails
#   make lock     make the lock files again from pyproject.toml

VENV := .venv
SITE_VENV := .venv-docs
ISOBLK := $(VENV)/bin/isoblk
JOBS ?= $(shell nproc)
LOOP_DIR ?= /var/tmp
CONTAINERS ?= podman

# STUDY/FILE: figures that the documentation shows, as STUDY-FILE.
FIGURES := weights/shares.svg weights/over-time-1.svg weights/latency-1.svg \
	io-cost-rate/scaling-io-cost-qos-max.svg group-count/scaling-tenant-task-count.svg \
	many-groups/scaling-tenant-g-count.svg very-many-groups/scaling-tenant-g-count.svg \
	fair/shares.svg prediction-change/prediction.svg \
	p0-weights/latency-1.svg p0-weights/shares.svg p0-group-count/scaling-tenant-task-count.svg \
	p1-record-size/compare-none.svg p1-record-size/compare-mq-deadline.svg \
	p1-record-size/compare-cfq.svg p0-rocksdb/shares.svg \
	cache-fit/cached-throughput.svg p4-warm/cached-throughput.svg

# Studies that the documentation quotes.
QUOTED := weights io-cost-rate bfq-tags bfq-seeds bfq-collapse group-count prototype fair \
	fair-large deep many-groups very-many-groups unequal unequal-depth sporadic changes \
	nested light prediction prediction-change cfq-gate p0-weights p0-group-count \
	p0-group-time p1-record-size p0-rocksdb cache-fit p4-sysbench p4-warm p4-fio p4-dd \
	cache-writeback cache-tenants reader-beside-stream reader-beside-others \
	reader-on-hard-disk disk-streams disk-mix shallow small-sequential zipf metadata mixed-costs

# Lives of a cache, in each mode, that the sweep tries.
SWEEP_LIVES ?= 7

# What try-system tries: a Debian and the series of its kernel; scripts/system/root knows them.
SYSTEMS ?= trixie-6.12 bookworm-6.12 forky-7.2 trixie-7

# The newest series that is pinned; test-all runs on it as well.
NEWEST = $(shell $(VENV)/bin/python -c 'from isoblk.kernel import pins; print(pins.newest_series())')

# What a run of the tests leaves for test-times.
PYTEST = $(VENV)/bin/pytest -n $(JOBS) --durations=15 --junitxml=results/tests/$@.xml

.PHONY: demo test test-all test-night test-smp test-times pins kernel-emulated storm test-blktests sweep deb rpm try-packages try-system check bench machines reference man architecture figures site wheel image lock setup setup-dev setup-deb setup-rpm kernel kernels kernels-smp clean
# What a target leans on stands in order.
.NOTPARALLEL:

demo: setup kernel
	$(ISOBLK) run studies/weights.toml -j $(JOBS)
	$(ISOBLK) report results/weights

# tests/conftest.py says what is long.
test: setup-dev kernel
	$(PYTEST) -m "not long"

test-all: setup-dev kernels kernels-smp
	$(PYTEST) -m "not night" --hypothesis-profile=all

test-night: setup-dev kernels kernels-smp kernel-emulated sweep
	WHOLE_STORMS=1 $(PYTEST) -m night

test-smp: setup-dev kernels-smp
	$(PYTEST) tests/qemu -m "not night"

test-times:
	@scripts/test-times

storm: setup-dev kernels-smp kernel-emulated
	WHOLE_STORMS=1 $(VENV)/bin/pytest tests/qemu/test_stress.py

# BLKTESTS: a checkout of https://github.com/linux-blktests/blktests in which make was run.
test-blktests:
	@[ -f "$(BLKTESTS)/check" ] || { \
		echo "test-blktests: set BLKTESTS to a checkout of blktests: it has a program named check" >&2; \
		exit 2; \
	}
	$(MAKE) setup-dev
	$(ISOBLK) kernel build --arch x86_64 --debug
	$(VENV)/bin/python scripts/blktests "$(BLKTESTS)"

sweep: setup-dev kernels
	SWEEP_LIVES=$(SWEEP_LIVES) $(VENV)/bin/pytest -n $(JOBS) \
		tests/lab/test_setcache_sweep.py tests/lab/test_cache_flight.py

# With the packages that make deb leaves in dist/.
try-system: deb
	MEETS=$(firstword $(SYSTEMS)) scripts/system/run dist results/system $(SYSTEMS)

# SERIES: of kernels whose private headers go in; without it all that can be had.
deb rpm: %: setup-%
	PYTHONPATH=packaging $(VENV)/bin/python packaging/build.py $@ --series "$(SERIES)"

# A higher version of the same is what the first is upgraded to.
try-packages: setup-deb
	PYTHONPATH=packaging $(VENV)/bin/python packaging/build.py deb -o results/packages/now
	PYTHONPATH=packaging $(VENV)/bin/python packaging/build.py deb -o results/packages/newer \
		--version 999
	scripts/try-packages results/packages/now results/packages/newer

check: setup-dev kernel
	scripts/check $(VENV)/bin

bench: setup-dev kernel
	$(ISOBLK) kernel build --arch um-smp
	$(ISOBLK) kernel build --arch um-smp --debug
	$(ISOBLK) kernel build --stock
	$(VENV)/bin/python benchmarks/run.py
	$(VENV)/bin/python benchmarks/schedulers.py
	$(VENV)/bin/python benchmarks/instructions.py
	$(VENV)/bin/python benchmarks/smp.py
	$(VENV)/bin/python benchmarks/smp.py --locks
	$(VENV)/bin/python benchmarks/traces.py

# LOOP_DIR: a directory on a disk, for the host machine.
machines: setup-dev kernel
	$(ISOBLK) kernel build --stock
	$(ISOBLK) kernel build --arch um-smp
	$(VENV)/bin/python benchmarks/machines.py --loop-dir $(LOOP_DIR)

reference: setup-dev
	$(VENV)/bin/python scripts/reference.py

# A page for each command, in man/.
man: setup
	$(VENV)/bin/python scripts/manpages.py

architecture: setup-dev
	$(VENV)/bin/python scripts/architecture.py

figures: setup kernel
	for study in $(QUOTED); do \
		$(ISOBLK) run studies/$$study.toml -j $(JOBS) && $(ISOBLK) report results/$$study || exit; \
	done
	mkdir -p docs/figures
	for figure in $(FIGURES); do \
		cp results/$${figure%%/*}/figures/$${figure##*/} docs/figures/$${figure%%/*}-$${figure##*/} \
			|| exit; \
	done

# With the reports of those studies that were run: make figures runs all that are quoted.
site:
	scripts/setup $(SITE_VENV) docs
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict
	@echo "site: open site/index.html"

wheel: setup
	rm -f dist/*.whl
	$(VENV)/bin/hatchling build --target wheel --directory dist

# CONTAINERS: docker or buildah do as well; BASE: another Debian.
image: wheel
	$(CONTAINERS) build --tag isoblk --file Containerfile $(if $(BASE),--build-arg BASE=$(BASE)) dist

setup:
	scripts/setup $(VENV) run

setup-deb setup-rpm:
	scripts/setup $(VENV) $(@:setup-%=%)

setup-dev:
	scripts/setup $(VENV) dev

kernel:
	$(ISOBLK) kernel build

kernels: kernel
	$(ISOBLK) kernel build --version $(NEWEST)
	$(ISOBLK) kernel build --debug
	$(ISOBLK) kernel build --arch um-lean

# For the qemu machine Debian's own; for smp one of ours with the sanitizers.
kernels-smp:
	$(ISOBLK) kernel build --stock
	$(ISOBLK) kernel build --arch um-smp --debug

# For the qemu machine, with the sanitizers.
kernel-emulated:
	$(ISOBLK) kernel build --arch x86_64 --debug

pins: setup
	$(VENV)/bin/python scripts/pin-kernels

lock: setup-dev
	$(VENV)/bin/pip install --quiet uv
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --extra build --extra hunt pyproject.toml \
		-o requirements.lock
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --extra build --extra dev pyproject.toml \
		-o requirements-dev.lock
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --group docs -o requirements-docs.lock

clean:
	rm -rf $(VENV) $(SITE_VENV) results site man dist
