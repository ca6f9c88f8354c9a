# evrec. `make help` lists what can be made; all that is made lies below build/.

# ---- what may be set on the command line ----

# The Luas to build and test for: make LUAS=5.4
LUAS = 5.4 5.3 luajit
# The one whose module `make install` installs, and where to.
LUA = 5.4
PREFIX = /usr/local
DESTDIR =
# CC, CFLAGS and LDFLAGS as usual: yours come last. V=1 shows whole commands.
ifeq ($(origin CC),default)
CC = gcc
endif
OPTIMIZE = -O2
BUILD = build

# ---- sources and flags ----

CORE_SRC := $(sort $(wildcard csrc/base/*.c csrc/event/*.c csrc/correlate/*.c csrc/deliver/*.c csrc/flow/*.c))
LUA_SRC := $(sort $(wildcard csrc/lua/*.c))
UNIT_SRC := $(sort $(wildcard spec/unit/*_test.c))
FUZZ_SRC := $(sort $(wildcard spec/fuzz/*_fuzz.c))

LIB := $(BUILD)/libevrec.a
MODULES := $(LUAS:%=$(BUILD)/%/evrec/core.so)
UNITS := $(UNIT_SRC:spec/unit/%.c=$(BUILD)/unit/%)
BENCHES = $(BUILD)/bench/evrec $(BUILD)/bench/keys $(LUAS:%=$(BUILD)/bench/%/floor.so)
SUBJECT := $(BUILD)/conformance/subject
FUZZERS := $(FUZZ_SRC:spec/fuzz/%_fuzz.c=$(BUILD)/fuzz/%)
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard examples/*.c)))

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
COMPILE = $(CC) -std=gnu11 $(OPTIMIZE) -g $(WARNINGS) -fPIC -fno-plt -pthread -MMD -MP -Icsrc

# pkg-config's words for packages $2; a missing one ends the build with advice.
pkg = $(if $(shell pkg-config --exists $2 && echo yes),$(shell pkg-config $1 $2),$(error \
  pkg-config does not find all of: $2. `make deps` installs what evrec needs on Debian))
# Each is asked for once, when it is first needed: then the packages may have been installed just before.
once = $(eval $1 := $2)$($1)
CORE_CFLAGS = $(call once,CORE_CFLAGS,$(call pkg,--cflags,libcurl jansson sqlite3))
CORE_LIBS = $(call once,CORE_LIBS,$(call pkg,--libs,libcurl jansson sqlite3) -lm)
CMOCKA = $(call once,CMOCKA,$(call pkg,--cflags --libs,cmocka))
PC_5.4 = lua5.4
PC_5.3 = lua5.3
PC_luajit = luajit

ifeq ($(V),1)
SAY = @:
else
Q = @
SAY = @printf '  %-4s %s\n'
endif

# ---- building ----

all: lib $(MODULES) ## the library and a module for each Lua (the default)
lib: $(LIB)
units: $(UNITS) $(FUZZERS) $(LUAS:%=$(BUILD)/%/memory_test)
fuzzers: $(FUZZERS)
examples: $(EXAMPLES)
benches: $(BENCHES)
subject: $(SUBJECT)
all lib units fuzzers examples benches subject:
	@:

# Changes when a compiler, a flag or the list of sources does: then all is built again.
SETTINGS = $(COMPILE) $(CFLAGS) $(LDFLAGS) $(CORE_SRC) $(LUA_SRC)
$(BUILD)/settings: FORCE
	@mkdir -p $(@D) && echo '$(SETTINGS)' | cmp -s - $@ || echo '$(SETTINGS)' >$@

$(LIB): $(CORE_SRC:csrc/%.c=$(BUILD)/core/%.o)
	$(SAY) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/core/%.o: csrc/%.c $(BUILD)/settings
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CORE_CFLAGS) $(CFLAGS) -c -o $@ $<

define module
$(BUILD)/$1/evrec/core.so: $(LUA_SRC:csrc/lua/%.c=$(BUILD)/$1/obj/%.o) $(LIB)
	$$(SAY) LINK $$@
	$$(Q)mkdir -p $$(@D) && $$(CC) -shared -pthread $$(CFLAGS) -o $$@ $$^ $$(LDFLAGS) $$(CORE_LIBS)

# With the module's objects, and a Lua whose memory is its own.
$(BUILD)/$1/memory_test: spec/lua/memory_test.c $(LUA_SRC:csrc/lua/%.c=$(BUILD)/$1/obj/%.o) $(LIB)
	$$(SAY) TEST '$$< ($1)'
	$$(Q)mkdir -p $$(@D) && $$(COMPILE) $$(call pkg,--cflags,$(PC_$1)) $$(CFLAGS) -o $$@ \
	  $$(filter %.c %.o %.a,$$^) $$(LDFLAGS) $$(call pkg,--libs,$(PC_$1)) $$(CMOCKA) $$(CORE_LIBS)

$(BUILD)/$1/obj/%.o: csrc/lua/%.c $(BUILD)/settings
	$$(SAY) CC '$$< ($1)'
	$$(Q)mkdir -p $$(@D) && $$(COMPILE) $$(call pkg,--cflags,$(PC_$1)) $$(CFLAGS) -c -o $$@ $$<
endef
$(foreach lua,$(LUAS),$(eval $(call module,$(lua))))

$(BUILD)/unit/%: spec/unit/%.c $(LIB)
	$(SAY) TEST $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CORE_CFLAGS) $(CFLAGS) -o $@ $< $(LIB) $(LDFLAGS) $(CMOCKA) $(CORE_LIBS)

# What runs a fuzz target's inputs: our own main. spec/support/fuzz.sh has libFuzzer's in its place.
FUZZ_MAIN = $(BUILD)/fuzz/replay.o

$(BUILD)/fuzz/%: spec/fuzz/%_fuzz.c $(LIB) $(FUZZ_MAIN)
	$(SAY) FUZZ $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CORE_CFLAGS) $(call pkg,--cflags,lua5.4) $(CFLAGS) -o $@ $< $(FUZZ_MAIN) \
	  $(LIB) $(LDFLAGS) $(call pkg,--libs,lua5.4) $(CORE_LIBS)

$(BUILD)/fuzz/replay.o: spec/fuzz/replay.c $(BUILD)/settings
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CFLAGS) -c -o $@ $<

$(BUILD)/examples/%: examples/%.c $(LIB)
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CFLAGS) -o $@ $< $(LIB) $(LDFLAGS) $(CORE_LIBS)

$(BUILD)/bench/%: spec/bench/%.c $(LIB)
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CFLAGS) -o $@ $< $(LIB) $(LDFLAGS) $(CORE_LIBS)

$(BUILD)/bench/%/floor.so: spec/bench/floor.c $(BUILD)/settings
	$(SAY) CC '$< ($*)'
	$(Q)mkdir -p $(@D) && $(COMPILE) $(call pkg,--cflags,$(PC_$*)) $(CFLAGS) -shared -o $@ $< $(LDFLAGS)

$(SUBJECT): spec/conformance/subject.c $(LIB)
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CORE_CFLAGS) $(CFLAGS) -o $@ $< $(LIB) $(LDFLAGS) $(CORE_LIBS)

-include $(shell find $(addprefix $(BUILD)/,core unit fuzz examples bench conformance $(LUAS)) -name '*.d' 2>/dev/null)

# ---- testing: each of these installs the Debian packages that it lacks, and says which ----

test: ## the unit tests, and the specs on every Lua
	@spec/support/packages.sh build test
	@$(MAKE) --no-print-directory all units examples
	@spec/support/test.sh $(BUILD) $(LUAS)

asan ubsan tsan: ## the same under a sanitizer, the specs on Lua 5.4 alone
	@spec/support/packages.sh build test
	+@spec/support/sanitize.sh $@

demo: ## an event's way, told by examples/demo.lua
	@spec/support/packages.sh build demo
	@$(MAKE) --no-print-directory $(BUILD)/5.4/evrec/core.so LUAS=5.4
	@LUA_PATH='lua/?.lua;lua/?/init.lua;;' LUA_CPATH='$(BUILD)/5.4/?.so;;' lua5.4 examples/demo.lua

e2e: ## the specs against a real API server: $KUBECONFIG's, or one that is built (minutes, once) and run
	@spec/support/packages.sh build test e2e
	@$(MAKE) --no-print-directory all
	@spec/support/e2e.sh $(BUILD) $(LUAS)

fuzz: ## bytes from outside, and the correlator against its model: FUZZ_SECONDS (20) each, EVREC_SEED; TARGETS=
	@spec/support/packages.sh build test fuzz
	+@spec/support/fuzz.sh run $(TARGETS)

fuzz-corpus: ## takes what `make fuzz` found below build/ into spec/fuzz/corpus, as far as it reaches anything new
	@spec/support/packages.sh build test fuzz
	+@spec/support/fuzz.sh corpus $(TARGETS)

bench: ## measures evrec, client-go and a floor in turns (minutes), and writes build/bench/bench.md and .svg
bench-smoke: ## tries the benchmark, briefly: all of it runs, and evrec and client-go do the same with the same events
bench bench-smoke:
	@spec/support/packages.sh build bench
	@$(MAKE) --no-print-directory all benches
	@CC='$(CC)' spec/bench/$@.sh $(BUILD) $(LUAS)

bench-publish: bench ## keeps what was measured where the README shows it
	cp $(BUILD)/bench/bench.md $(BUILD)/bench/bench.svg spec/bench/results/

conformance: ## the correlator beside client-go's on random traces: SEED=, STEPS=, TRACES= (at least); or TRACE=FILE
	@spec/support/packages.sh build conformance
	@$(MAKE) --no-print-directory subject
	@spec/conformance/conformance.sh $(BUILD)/conformance $(if $(TRACE),replay $(TRACE),compare $(SEED:%=seed=%) \
	  $(STEPS:%=steps=%) $(TRACES:%=traces=%))

vectors: ## makes spec/conformance/vectors anew: traces with client-go's answers, which `make test` checks
	@spec/support/packages.sh build conformance
	@$(MAKE) --no-print-directory subject
	@spec/conformance/conformance.sh $(BUILD)/conformance vectors

drill: ## fire drills: nothing lost, counts exact, whatever happens to a real API server (DRILL_RUNS, DRILL_SCALE, DRILL)
	@spec/support/packages.sh build drill
	@$(MAKE) --no-print-directory $(BUILD)/luajit/evrec/core.so LUAS=luajit
	@spec/drill/drill.sh $(BUILD)

drill-asan drill-tsan: ## the same under a sanitizer, whose reports fail a drill; memory is not measured
	@spec/support/packages.sh build drill
	+@spec/support/sanitize.sh $(@:drill-%=%) drill

throughput: ## events a second into a real API server, beside h2load; and a recording call's worst time
	@spec/support/packages.sh build drill throughput
	@$(MAKE) --no-print-directory $(BUILD)/5.4/evrec/core.so $(BUILD)/luajit/evrec/core.so LUAS='5.4 luajit'
	@spec/drill/throughput.sh $(BUILD)

rock: ## builds and loads the rock for every Lua
	@spec/support/packages.sh build rock
	@spec/support/rock.sh $(LUAS)

rooms: ## who may include and call whom in csrc
	@spec/support/packages.sh build
	@$(MAKE) --no-print-directory all
	@spec/support/rooms.sh $(BUILD) $(LUAS)

lint: ## formats, warnings of gcc and clang, clang-tidy, luacheck, gofmt, go vet, shellcheck
	@spec/support/packages.sh build test lint
	+@spec/support/lint.sh

# ---- habits ----

LUA_ABI = $(LUA:luajit=5.1)
LUA_DIR = $(DESTDIR)$(PREFIX)/share/lua/$(LUA_ABI)/evrec
C_DIR = $(DESTDIR)$(PREFIX)/lib/lua/$(LUA_ABI)/evrec
INSTALL_DIRS = $(LUA_DIR) $(C_DIR) $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
VERSION = $(shell sed -n 's/^\#define EVREC_VERSION "\(.*\)"/\1/p' csrc/evrec.h)

format: ## clang-format for all C sources
	@spec/support/packages.sh lint
	clang-format -i $(shell find csrc spec examples -name '*.[ch]')

install: $(LIB) $(BUILD)/$(LUA)/evrec/core.so ## for LUA (5.4), with the library and header for C, below PREFIX, DESTDIR
	install -d $(INSTALL_DIRS)
	install -m 644 lua/evrec/*.lua $(LUA_DIR)
	install -m 755 $(BUILD)/$(LUA)/evrec/core.so $(C_DIR)
	install -m 644 $(LIB) $(DESTDIR)$(PREFIX)/lib
	install -m 644 csrc/evrec.h $(DESTDIR)$(PREFIX)/include
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: evrec' 'Description: Kubernetes event recorder' 'Version: $(VERSION)' \
	  'Requires: libcurl jansson sqlite3' 'Cflags: -I$${prefix}/include' 'Libs: -L$${prefix}/lib -levrec -pthread -lm' \
	  >$(DESTDIR)$(PREFIX)/lib/pkgconfig/evrec.pc

uninstall: ## takes it away again
	rm -rf $(LUA_DIR) $(C_DIR)
	cd $(DESTDIR)$(PREFIX) && rm -f lib/libevrec.a include/evrec.h lib/pkgconfig/evrec.pc

deps: ## installs the Debian packages for building and testing
	@spec/support/packages.sh build test

help: ## this list
	@sed -n 's/^\([a-z0-9 -]*\):.* ## /\1\t/p' Makefile | expand -t 16

clean: ## removes all that was built
	rm -rf build

.PHONY: all lib units fuzzers examples benches subject test asan ubsan tsan demo e2e fuzz fuzz-corpus conformance \
  vectors bench bench-smoke bench-publish drill drill-asan drill-tsan throughput rock rooms lint format deps install \
  uninstall help clean FORCE
