// client-go runs one workload through client-go's event recorder, and prints what came of it.
//
// usage: client-go WAY WORKLOAD AMOUNT    (../README.md says which there are)
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/record"
)

// Events from one wait to the next: the broadcaster's queues hold 1,000, and drop without a word what comes then.
const batch = 1000

func die(why ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"client-go:"}, why...)...)
	os.Exit(1)
}

// The process's CPU time: what collects garbage in the background counts.
func cpu() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		die(err)
	}
	return time.Duration(t.Nano())
}

// Runs batches until at least so many events and so much time are through.
func run(w way, events int, enough time.Duration) (int, time.Duration) {
	started, done := cpu(), 0
	for {
		w.batch()
		done += batch
		if spent := cpu() - started; done >= events && spent >= enough {
			return done, spent
		}
	}
}

func main() {
	if len(os.Args) != 4 {
		die("usage: client-go WAY WORKLOAD AMOUNT")
	}
	name, workload, amount := os.Args[1], os.Args[2], os.Args[3]
	options := record.CorrelatorOptions{BurstSize: 1000000000}
	if workload == "limited" {
		options.BurstSize = 0 // the default
	}
	recorded := eventsOf(workload)
	var w way
	switch name {
	case "recorder":
		w = newRecorder(recorded, options)
	case "correlator":
		w = newCorrelator(recorded, options)
	default:
		die("no such way:", name)
	}

	var enough time.Duration
	events, err := strconv.Atoi(amount)
	if strings.HasSuffix(amount, "ms") {
		events = 0
		enough, err = time.ParseDuration(amount)
		run(w, max(len(recorded.objects), len(recorded.messages)), enough/2)
	}
	if err != nil {
		die(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done, spent := run(w, events, enough)
	runtime.ReadMemStats(&after)
	out := w.outcome()
	fmt.Printf("%d\t%.9f\t%d\t%d\t%d\t%d\t%d\n", done, spent.Seconds(), out.created, out.patched, out.skipped,
		after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc)
}
