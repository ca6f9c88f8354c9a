// client-go runs one workload through client-go's event recorder, and prints the line that ../README.md describes.
//
// usage: client-go VARIANT WORKLOAD AMOUNT    (../README.md lists them)
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

// Number of events between two waits for the correlator. The broadcaster's queues hold 1,000 events, and drop further
// ones silently.
const batch = 1000

func die(why ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"client-go:"}, why...)...)
	os.Exit(1)
}

// The CPU time of the process, with the garbage collector's threads.
func cpu() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		die(err)
	}
	return time.Duration(t.Nano())
}

// Runs batches until they had at least so many events and took at least `enough` CPU time. Returns both.
func run(v variant, events int, enough time.Duration) (int, time.Duration) {
	started, done := cpu(), 0
	for {
		v.batch()
		done += batch
		if spent := cpu() - started; done >= events && spent >= enough {
			return done, spent
		}
	}
}

func main() {
	if len(os.Args) != 4 {
		die("usage: client-go VARIANT WORKLOAD AMOUNT")
	}
	name, workload, amount := os.Args[1], os.Args[2], os.Args[3]
	options := record.CorrelatorOptions{BurstSize: 1000000000}
	if workload == "limited" {
		options.BurstSize = 0 // the default
	}
	recorded := eventsOf(workload)
	var v variant
	switch name {
	case "recorder":
		v = newRecorder(recorded, options)
	case "correlator":
		v = newCorrelator(recorded, options)
	default:
		die("no such variant:", name)
	}

	var enough time.Duration
	events, err := strconv.Atoi(amount)
	if strings.HasSuffix(amount, "ms") {
		events = 0
		enough, err = time.ParseDuration(amount)
		run(v, max(len(recorded.objects), len(recorded.messages)), enough/2)
	}
	if err != nil {
		die(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done, spent := run(v, events, enough)
	runtime.ReadMemStats(&after)
	out := v.outcome()
	fmt.Printf("%d\t%.9f\t%d\t%d\t%d\t%d\t%d\n", done, spent.Seconds(), out.created, out.patched, out.skipped,
		after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc)
}
