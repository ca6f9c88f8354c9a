# evrec. `make help` lists the targets. Everything is built below build/, which `make clean` removes.

# ---- variables for the command line ----

# The Luas to build and test for: make LUAS=5.4
LUAS = 5.4 5.3 luajit
# The Luas that `make install` installs for, and the folder that it installs below.
LUA = $(LUAS)
$(foreach lua,$(LUAS) $(LUA),$(if $(filter $(lua),5.4 5.3 luajit),,$(error LUAS and LUA: '$(lua)' is none of \
  5.4, 5.3 and luajit. LuaJIT, which has the paths of Lua 5.1, is called luajit)))
PREFIX = /usr/local
DESTDIR ?=
# CC, CFLAGS and LDFLAGS as usual; CFLAGS and LDFLAGS are put behind the Makefile's own flags. V=1 shows whole commands.
ifeq ($(origin CC),default)
CC = gcc
endif
OPTIMIZE = -O2
# Link-time optimization, for the modules and the benchmark, if the compiler is gcc 10 or later: a new event takes 10 % fewer
# instructions. The objects have code for a link without it, too, which tests use, as it takes less time. Each function
# begins at a cache line: else the time of a similar event changes by up to 12 % with the code in front of it.
LTO_FLAGS = -flto=auto -falign-functions=64
LTO = $(call once,LTO,$(if $(filter -O2,$(OPTIMIZE)),$(if $(has_lto),$(LTO_FLAGS) \
  $(if $(call accepts,$(COPY_FLAGS)),$(COPY_FLAGS)))))
# For x86: gcc copies and clears a struct of some 100 bytes by `rep movs` and `rep stos`, which take long to begin. With
# calls of memcpy and memset a new event takes 5 % less time from C, a duplicate 3 %.
COPY_FLAGS = -mmemcpy-strategy=libcall:-1:noalign -mmemset-strategy=libcall:-1:noalign
BUILD = build

# ---- sources and flags ----

LUA_SRC := $(sort $(wildcard csrc/lua/*.c))
CORE_SRC := $(filter-out $(LUA_SRC),$(sort $(wildcard csrc/*/*.c)))
UNIT_SRC := $(sort $(wildcard spec/unit/*/*_test.c))
UNIT_CXX_SRC := $(sort $(wildcard spec/unit/*/*_test.cpp))
SUPPORT_SRC := $(sort $(wildcard spec/unit/support/*.c))
FUZZ_SRC := $(sort $(wildcard spec/fuzz/*_fuzz.c))

LIB := $(BUILD)/libevrec.a
MODULES := $(LUAS:%=$(BUILD)/%/evrec/core.so)
SUPPORT := $(BUILD)/unit/libsupport.a
UNITS := $(UNIT_SRC:spec/unit/%.c=$(BUILD)/unit/%) $(UNIT_CXX_SRC:spec/unit/%.cpp=$(BUILD)/unit/%)
BENCHES = $(BUILD)/bench/evrec $(BUILD)/bench/keys $(BUILD)/bench/store $(BUILD)/bench/store_query $(BUILD)/bench/otlp $(LUAS:%=$(BUILD)/bench/%/baseline.so)
RUNNERS := $(BUILD)/conformance/trace_runner $(BUILD)/conformance/series_runner
FUZZERS := $(FUZZ_SRC:spec/fuzz/%_fuzz.c=$(BUILD)/fuzz/%)
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard examples/*/*.c)))

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
COMPILE = $(CC) -std=gnu11 $(OPTIMIZE) -g $(WARNINGS) -fPIC -fno-plt -pthread -MMD -MP -Icsrc
# The sources in csrc, and programs that are linked without link-time optimization.
COMPILE_CORE = $(COMPILE) $(if $(LTO),$(LTO) -ffat-lto-objects)
NO_LTO = $(if $(LTO),-fno-lto)
PROGRAM = $(COMPILE) $(NO_LTO)

# The output of pkg-config $1 for the packages $2. If one is missing, the build ends with advice.
pkg = $(if $(shell pkg-config --exists $2 2>/dev/null && echo yes),$(shell pkg-config $1 $2),$(error \
  pkg-config does not find all of: $2. `make deps` installs what evrec needs on Debian))
# Asks pkg-config and the compiler once, when the flags are first needed, as the same run of make may install them before.
once = $(eval $1 := $2)$($1)
accepts = $(shell $(CC) $1 -x c -c /dev/null -o /dev/null 2>/dev/null && echo yes)
has_lto = $(if $(shell $(CC) --version 2>/dev/null | grep 'Free Software Foundation'),$(call accepts,$(LTO_FLAGS)))
CORE_CFLAGS = $(call once,CORE_CFLAGS,$(call pkg,--cflags,libcurl jansson sqlite3 zlib))
# libcurl and SQLite are loaded by csrc/base/library.c.
CORE_LIBS = $(call once,CORE_LIBS,$(call pkg,--libs,jansson zlib) -lm -ldl)
CMOCKA_CFLAGS = $(call once,CMOCKA_CFLAGS,$(call pkg,--cflags,cmocka openssl))
CMOCKA_LIBS = $(call once,CMOCKA_LIBS,$(call pkg,--libs,cmocka openssl sqlite3 libcurl))
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

all: lib $(MODULES) ## start | build the library and a module for each Lua (the default)
lib: $(LIB)
units: $(UNITS) $(FUZZERS) $(foreach lua,$(LUAS),$(BUILD)/$(lua)/memory_test $(BUILD)/$(lua)/states_test)
fuzzers: $(FUZZERS)
examples: $(EXAMPLES)
benches: $(BENCHES)
runners: $(RUNNERS)
all lib units fuzzers examples benches runners:
	@:

# This file changes if the compiler, a flag or the list of sources does; then everything is built again.
SETTINGS = $(COMPILE_CORE) $(CFLAGS) $(LDFLAGS) $(CORE_SRC) $(LUA_SRC) $(SUPPORT_SRC)
$(BUILD)/settings: FORCE
	@mkdir -p $(@D) && echo '$(SETTINGS)' | cmp -s - $@ || echo '$(SETTINGS)' >$@

$(LIB): $(CORE_SRC:csrc/%.c=$(BUILD)/core/%.o)
	$(SAY) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/core/%.o: csrc/%.c $(BUILD)/settings
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE_CORE) $(CORE_CFLAGS) $(CFLAGS) -c -o $@ $<

define module
$(BUILD)/$1/evrec/core.so: $(LUA_SRC:csrc/lua/%.c=$(BUILD)/$1/obj/%.o) $(LIB)
	$$(SAY) LINK $$@
	$$(Q)mkdir -p $$(@D) && $$(CC) -shared -pthread $$(OPTIMIZE) -fno-plt $$(LTO) $$(CFLAGS) -o $$@ $$^ $$(LDFLAGS) $$(CORE_LIBS)

# Tests that are linked with the module's objects and make Lua states of their own.
$(BUILD)/$1/memory_test $(BUILD)/$1/states_test: $(BUILD)/$1/%_test: spec/lua/%_test.c $(LUA_SRC:csrc/lua/%.c=$(BUILD)/$1/obj/%.o) $(SUPPORT) $(LIB)
	$$(SAY) TEST '$$< ($1)'
	$$(Q)mkdir -p $$(@D) && $$(PROGRAM) -Ispec/unit/support $$(CMOCKA_CFLAGS) $$(call pkg,--cflags,$(PC_$1)) $$(CFLAGS) \
	  -o $$@ $$(filter %.c %.o %.a,$$^) $$(LDFLAGS) $$(call pkg,--libs,$(PC_$1)) $$(CMOCKA_LIBS) $$(CORE_LIBS)

$(BUILD)/$1/obj/%.o: csrc/lua/%.c $(BUILD)/settings
	$$(SAY) CC '$$< ($1)'
	$$(Q)mkdir -p $$(@D) && $$(COMPILE_CORE) $$(call pkg,--cflags,$(PC_$1)) $$(CFLAGS) -c -o $$@ $$<
endef
$(foreach lua,$(LUAS),$(eval $(call module,$(lua))))

UNIT_CFLAGS = -Ispec/unit/support $(CORE_CFLAGS) $(CMOCKA_CFLAGS)

# The helpers of the unit tests, a static library: a test is linked to the members that it calls.
$(SUPPORT): $(SUPPORT_SRC:spec/unit/%.c=$(BUILD)/unit/%.o)
	$(SAY) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/unit/support/%.o: spec/unit/support/%.c $(BUILD)/settings
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(UNIT_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/unit/%: spec/unit/%.c $(SUPPORT) $(LIB)
	$(SAY) TEST $<
	$(Q)mkdir -p $(@D) && $(PROGRAM) $(UNIT_CFLAGS) $(CFLAGS) -o $@ $< $(SUPPORT) $(LIB) $(LDFLAGS) $(CMOCKA_LIBS) $(CORE_LIBS)

# A program in C++ sees evrec.h, evrec_otlp.h and evrec_read.h alone.
$(BUILD)/unit/%: spec/unit/%.cpp $(LIB)
	$(SAY) TEST $<
	$(Q)mkdir -p $(@D) && $(CXX) -std=c++17 $(OPTIMIZE) -g -Wall -Wextra -Wpedantic -Wshadow -Werror -pthread -MMD -MP \
	  -Icsrc $(NO_LTO) $(CFLAGS) -o $@ $< $(LIB) $(LDFLAGS) $(CORE_LIBS)

# The main() of a fuzz target: it runs the inputs once. spec/support/fuzz.sh sets it to nothing and links libFuzzer's.
FUZZ_MAIN = $(BUILD)/fuzz/replay.o

$(BUILD)/fuzz/%: spec/fuzz/%_fuzz.c $(LIB) $(FUZZ_MAIN)
	$(SAY) FUZZ $<
	$(Q)mkdir -p $(@D) && $(PROGRAM) $(CORE_CFLAGS) $(call pkg,--cflags,lua5.4) $(CFLAGS) -o $@ $< $(FUZZ_MAIN) \
	  $(LIB) $(LDFLAGS) $(call pkg,--libs,lua5.4) $(CORE_LIBS)

$(BUILD)/fuzz/replay.o: spec/fuzz/replay.c $(BUILD)/settings
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CFLAGS) -c -o $@ $<

$(BUILD)/examples/%: examples/%.c $(LIB)
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(PROGRAM) $(CFLAGS) -o $@ $< $(LIB) $(LDFLAGS) $(CORE_LIBS)

$(BUILD)/bench/%: spec/bench/%.c $(LIB)
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(LTO) $(CFLAGS) -o $@ $< $(LIB) $(LDFLAGS) $(CORE_LIBS)

$(BUILD)/bench/%/baseline.so: spec/bench/baseline.c $(BUILD)/settings
	$(SAY) CC '$< ($*)'
	$(Q)mkdir -p $(@D) && $(COMPILE) $(call pkg,--cflags,$(PC_$*)) $(CFLAGS) -shared -o $@ $< $(LDFLAGS)

$(BUILD)/conformance/%: spec/conformance/%.c $(BUILD)/conformance/runner.o $(LIB)
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(PROGRAM) $(CORE_CFLAGS) $(CFLAGS) -o $@ $(filter %.c %.o %.a,$^) $(LDFLAGS) $(CORE_LIBS)

$(BUILD)/conformance/runner.o: spec/conformance/runner.c $(BUILD)/settings
	$(SAY) CC $<
	$(Q)mkdir -p $(@D) && $(COMPILE) $(CORE_CFLAGS) $(CFLAGS) -c -o $@ $<

-include $(shell find $(addprefix $(BUILD)/,core unit fuzz examples bench conformance $(LUAS)) -name '*.d' 2>/dev/null)

# ---- testing: each target installs the Debian packages that it lacks, and says which ----
# `make help` shows each `## GROUP | TEXT`.

test: ## start | run the unit tests, and the specs on every Lua (some minutes)
	@spec/support/packages.sh build test
	@$(MAKE) --no-print-directory all units examples
	@spec/support/test.sh $(BUILD) $(LUAS)

asan tsan: ## testing | the same tests under a sanitizer, the specs on Lua 5.4 only
	@spec/support/packages.sh build test
	+@spec/support/sanitize.sh $@

test-arm64 test-s390x: ## testing | the same tests for another machine, under qemu; FOLDERS= (of spec/unit)
	@spec/support/packages.sh build test $(@:test-%=%)
	+@spec/support/cross.sh $(@:test-%=%) $(FOLDERS)

demo: ## start | play two stories under a fake clock (examples/demo.lua)
	@spec/support/packages.sh build demo
	@$(MAKE) --no-print-directory $(BUILD)/5.4/evrec/core.so LUAS=5.4
	@mkdir -p $(BUILD)/demo
	@LUA_PATH='lua/?.lua;lua/?/init.lua;;' LUA_CPATH='$(BUILD)/5.4/?.so;;' EVREC_DEMO=$(BUILD)/demo \
		lua5.4 examples/demo.lua

e2e: ## server | run the end-to-end specs; against $KUBECONFIG's server if that is set; OTLP_EVENTS=
	@spec/support/packages.sh build test e2e
	@$(MAKE) --no-print-directory all examples
	@$(OTLP_EVENTS:%=EVREC_OTLP_EVENTS=%) spec/support/e2e.sh $(BUILD) $(LUAS)

fuzz: ## testing | fuzz each target of spec/fuzz for FUZZ_SECONDS (20); EVREC_SEED=, TARGETS=
	@spec/support/packages.sh build test fuzz
	+@spec/support/fuzz.sh run $(TARGETS)

fuzz-corpus: ## testing | add to spec/fuzz/corpus the inputs of `make fuzz` that reach new code
	@spec/support/packages.sh build test fuzz
	+@spec/support/fuzz.sh corpus $(TARGETS)

bench: ## measuring | measure evrec, client-go and a baseline (6 minutes); writes build/bench
bench-smoke: ## measuring | check that the benchmark runs and decides as client-go; measures nothing
bench bench-smoke:
	@spec/support/packages.sh build bench
	@$(MAKE) --no-print-directory all benches
	@CC='$(CC)' spec/bench/$@.sh $(BUILD) $(LUAS)

bench-store: ## measuring | measure the event store and evrec replay, and check their goals (3 minutes)
	@spec/support/packages.sh build bench
	@$(MAKE) --no-print-directory $(BUILD)/5.4/evrec/core.so $(BUILD)/bench/store $(BUILD)/bench/store_query LUAS=5.4
	@spec/bench/store.sh $(BUILD)

bench-publish: bench ## measuring | measure, and put the figures where the README shows them
	cp $(BUILD)/bench/bench.md $(BUILD)/bench/bench.svg spec/bench/results/

conformance: ## testing | compare with client-go; SEED=, STEPS=, TRACES=, or TRACE=FILE
	@spec/support/packages.sh build conformance
	@$(MAKE) --no-print-directory runners
	@spec/conformance/conformance.sh $(BUILD)/conformance $(if $(TRACE),replay $(TRACE),compare $(SEED:%=seed=%) \
	  $(STEPS:%=steps=%) $(TRACES:%=traces=%))

vectors: ## testing | write spec/conformance/vectors, traces with client-go's results, again
	@spec/support/packages.sh build conformance
	@$(MAKE) --no-print-directory runners
	@spec/conformance/conformance.sh $(BUILD)/conformance vectors

drill: ## server | run the fire drills; DRILL_RUNS=, DRILL_SCALE=, DRILL= (a pattern of names)
	@spec/support/packages.sh build drill
	@$(MAKE) --no-print-directory $(BUILD)/luajit/evrec/core.so LUAS=luajit
	@spec/drill/drill.sh $(BUILD)

drill-asan drill-tsan: ## server | the fire drills under a sanitizer; memory is not measured
	@spec/support/packages.sh build drill
	+@spec/support/sanitize.sh $(@:drill-%=%) drill

hosts: ## testing | change real nginx and HAProxy under load; as root; HOSTS_SCALE=, HOSTS= (a pattern of names)
hosts-cost: ## measuring | what a recorded event costs a request in nginx; as root
hosts hosts-cost:
	@spec/support/packages.sh build test go hosts
	@$(MAKE) --no-print-directory $(BUILD)/luajit/evrec/core.so $(BUILD)/5.3/evrec/core.so LUAS='5.3 luajit'
	@spec/hosts/$(@:hosts-%=%).sh $(BUILD)

throughput: ## measuring | events a second into a real API server and collector, and the slowest recording calls
	@spec/support/packages.sh build drill throughput
	@$(MAKE) --no-print-directory $(BUILD)/5.4/evrec/core.so $(BUILD)/luajit/evrec/core.so $(BUILD)/bench/otlp LUAS='5.4 luajit'
	@spec/drill/throughput.sh $(BUILD)

full: ## testing | the long tests in full (hours); FULL= (a pattern of steps)
	@spec/support/packages.sh build test
	@$(MAKE) --no-print-directory all units
	+@spec/support/full.sh $(BUILD) $(LUAS)

rock: ## testing | install the source rock for every Lua, by gcc and by clang, and load it
	@spec/support/packages.sh build dist rock
	@spec/support/rock.sh $(LUAS)

dist: ## release | pack the last commit in build/dist: a source rock, and its parts; DIST_URL=
	@spec/support/packages.sh dist
	@spec/support/dist.sh $(BUILD)/dist

rooms: ## sources | check which folder of csrc includes and calls which
	@spec/support/packages.sh build
	@$(MAKE) --no-print-directory all
	@spec/support/rooms.sh $(BUILD) $(LUAS)

lint: ## sources | formats, warnings of gcc and clang, clang-tidy, luacheck, gofmt, shellcheck
	@spec/support/packages.sh build test lint
	+@spec/support/lint.sh

# ---- installing and tidying ----

# A Lua searches this folder below share/lua and lib/lua; LuaJIT searches that of Lua 5.1.
lua_abi = $(1:luajit=5.1)
INSTALL_TO = $(DESTDIR)$(PREFIX)
LUA_DIRS = $(foreach lua,$(LUA),$(INSTALL_TO)/share/lua/$(call lua_abi,$(lua))/evrec)
C_DIRS = $(foreach lua,$(LUA),$(INSTALL_TO)/lib/lua/$(call lua_abi,$(lua))/evrec)
# The first of LUA runs the command.
COMMAND_LUA = $(patsubst lualuajit,luajit,lua$(firstword $(LUA)))
# Two lines by which the command finds its modules, whatever PREFIX is.
COMMAND_FOLDER = lua/$(call lua_abi,$(firstword $(LUA)))
COMMAND_SHARE = $(PREFIX)/share/$(COMMAND_FOLDER)
COMMAND_PATH = package.path = "$(COMMAND_SHARE)/?.lua;$(COMMAND_SHARE)/?/init.lua;" .. package.path
COMMAND_CPATH = package.cpath = "$(PREFIX)/lib/$(COMMAND_FOLDER)/?.so;" .. package.cpath
VERSION = $(shell sed -n 's/^\#define EVREC_VERSION "\(.*\)"/\1/p' csrc/evrec.h)

format: ## sources | format all C sources with clang-format
	@spec/support/packages.sh lint
	clang-format -i $(shell find csrc spec examples -name '*.[ch]')

# With folders, such as cli/html/page.lua.
LUA_FILES := $(sort $(shell find lua/evrec -name '*.lua' -printf '%P\n'))

# If root builds, the owner of the checkout gets what was built, and can build there again.
install: ## start | install for C and LUA (all) below PREFIX (/usr/local); DESTDIR=
	@{ mkdir -p '$(INSTALL_TO)/lib' && [ -w '$(INSTALL_TO)/lib' ]; } 2>/dev/null || { \
	  echo 'evrec: $(INSTALL_TO)/lib cannot be written: install as root, or with PREFIX="$$HOME/.local"' >&2; exit 1; }
	@! command -v apt-get >/dev/null || spec/support/packages.sh core $(LUA)
	@$(MAKE) --no-print-directory install-files
	@[ "$$(id -u)" != 0 ] || { chown --reference=Makefile $(BUILD) && chown -R --reference=Makefile $(BUILD)/settings \
	  $(BUILD)/core $(LIB) $(LUA:%=$(BUILD)/%); } || true
	@echo 'evrec $(VERSION) is installed below $(INSTALL_TO) for C$(if $(LUA), and Lua $(LUA))'

install-files: $(LIB) $(LUA:%=$(BUILD)/%/evrec/core.so)
	$(Q)install -d $(C_DIRS) $(INSTALL_TO)/include $(INSTALL_TO)/lib/pkgconfig
	$(Q)for folder in $(LUA_DIRS); do for file in $(LUA_FILES); do \
	  install -D -m 644 "lua/evrec/$$file" "$$folder/$$file" || exit; done; done
	$(Q)$(foreach lua,$(LUA),install -m 755 $(BUILD)/$(lua)/evrec/core.so $(INSTALL_TO)/lib/lua/$(call lua_abi,$(lua))/evrec &&) true
	$(Q)install -m 644 $(LIB) $(INSTALL_TO)/lib
	$(Q)$(if $(LTO),objcopy -w -R '.gnu.lto_*' -R '.gnu.debuglto_*' -N __gnu_lto_v1 $(INSTALL_TO)/lib/libevrec.a)
	$(Q)install -m 644 csrc/evrec.h csrc/evrec_otlp.h csrc/evrec_read.h $(INSTALL_TO)/include
	$(Q)$(if $(LUA),install -d $(INSTALL_TO)/bin && \
	  sed -e '1s/lua$$/$(COMMAND_LUA)/' -e '1a $(COMMAND_PATH)' -e '1a $(COMMAND_CPATH)' \
	    lua/bin/evrec >$(INSTALL_TO)/bin/evrec && chmod 755 $(INSTALL_TO)/bin/evrec)
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'Name: evrec' 'Description: Kubernetes event recorder' 'Version: $(VERSION)' \
	  'Requires: jansson zlib' 'Cflags: -I$${prefix}/include' 'Libs: -L$${prefix}/lib -levrec -pthread -lm -ldl' \
	  >$(INSTALL_TO)/lib/pkgconfig/evrec.pc

uninstall: ## start | remove what `make install` installed
	rm -rf $(LUA_DIRS) $(C_DIRS)
	cd $(INSTALL_TO) && rm -f bin/evrec lib/libevrec.a lib/pkgconfig/evrec.pc \
	  include/evrec.h include/evrec_otlp.h include/evrec_read.h

deps: ## start | install the Debian packages for building and testing
	@spec/support/packages.sh build test

help: ## start | show this list
	@awk -F ' ## | [|] ' '/^[a-z0-9 -]*:.* ## / { sub(/:.*/, "", $$1); \
	  group_of = NF > 2 ? $$2 : "testing"; text[group_of] = text[group_of] sprintf("  %-22s %s\n", $$1, $$NF) } \
	  function group(name, heading) { printf "%s\n%s\n", heading, text[name] } \
	  END { group("start", "Getting started"); group("testing", "Testing"); \
	  group("server", "Against a real API server, which is built the first time (15 minutes)"); \
	  group("measuring", "Measuring"); group("sources", "Checking the sources"); group("release", "Releasing"); \
	  print "LUAS=5.4 chooses one Lua of 5.4, 5.3 and luajit. Each target but `all` installs the packages it lacks." }' Makefile

clean: ## start | remove build/
	rm -rf build

.PHONY: all lib units fuzzers examples benches runners test asan tsan test-arm64 test-s390x demo e2e \
  fuzz fuzz-corpus conformance vectors bench bench-smoke bench-store bench-publish drill drill-asan drill-tsan hosts hosts-cost \
  throughput full rock dist rooms lint format deps install install-files uninstall help clean FORCE
