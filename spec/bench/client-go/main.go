// Runs one workload on client-go's event recorder, and prints what came of it.
//
// usage: client-go WAY WORKLOAD AMOUNT    (see ../README.md)
package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

const (
	batch    = 1000
	messages = 4096
	objects  = 8192
)

type sink struct{ created, patched int }

func (s *sink) Create(event *v1.Event) (*v1.Event, error) { s.created++; return event, nil }
func (s *sink) Update(event *v1.Event) (*v1.Event, error) { return event, nil }
func (s *sink) Patch(event *v1.Event, _ []byte) (*v1.Event, error) {
	s.patched++
	return event, nil
}

func object(i int) *v1.ObjectReference {
	return &v1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: "shop", Name: fmt.Sprintf("web-7d4b9c6f5b-%05d", i),
		UID: "3f2c6a1e-58b0-4c1d-9e7f-000000000000", ResourceVersion: "81224",
	}
}

func cpu() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

func main() {
	way, workload := os.Args[1], os.Args[2]
	amount, err := time.ParseDuration(os.Args[3])
	if err != nil {
		panic(err)
	}
	objs := []*v1.ObjectReference{object(0)}
	msgs := []string{"Back-off restarting failed container web in pod web-7d4b9c6f5b-00000"}
	options := record.CorrelatorOptions{BurstSize: 1000000000}
	switch workload {
	case "similar":
		msgs = msgs[:0]
		for i := 0; i < messages; i++ {
			msgs = append(msgs, fmt.Sprintf("Readiness probe failed: HTTP probe failed with statuscode: 503, try %04d", i))
		}
	case "unique":
		objs = objs[:0]
		for i := 0; i < objects; i++ {
			objs = append(objs, object(i))
		}
	case "limited":
		options.BurstSize = 0
	}

	next := 0
	var step func()
	source := v1.EventSource{Component: "kubelet", Host: "node-1"}
	if way == "whole" {
		done := make(chan struct{})
		seen := 0
		options.KeyFunc = func(event *v1.Event) (string, string) {
			seen++
			if seen%batch == 0 {
				done <- struct{}{}
			}
			return record.EventAggregatorByReasonFunc(event)
		}
		b := record.NewBroadcasterWithCorrelatorOptions(options)
		b.StartRecordingToSink(&sink{})
		r := b.NewRecorder(runtime.NewScheme(), source)
		step = func() {
			for i := 0; i < batch; i++ {
				r.Event(objs[next%len(objs)], "Warning", "BackOff", msgs[next%len(msgs)])
				next++
			}
			<-done
		}
	} else {
		c := record.NewEventCorrelatorWithOptions(options)
		now := metav1.Now()
		events := make([]v1.Event, max(len(objs), len(msgs)))
		for i := range events {
			o := objs[i%len(objs)]
			events[i] = v1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: o.Name + ".17a2b3c4d5e6f708", Namespace: o.Namespace},
				InvolvedObject: *o, Reason: "BackOff", Message: msgs[i%len(msgs)], FirstTimestamp: now, LastTimestamp: now,
				Count: 1, Type: "Warning", Source: source, ReportingController: source.Component, ReportingInstance: source.Host,
			}
		}
		step = func() {
			for i := 0; i < batch; i++ {
				event := events[next%len(events)]
				next++
				if _, err := c.EventCorrelate(&event); err != nil {
					panic(err)
				}
			}
		}
	}

	run := func(least time.Duration) (int, time.Duration) {
		started, n := cpu(), 0
		for {
			step()
			n += batch
			if took := cpu() - started; took >= least {
				return n, took
			}
		}
	}
	run(amount / 2)
	n, took := run(amount)
	fmt.Printf("client-go %s\t%s\t%.1f ns/event\n", way, workload, float64(took.Nanoseconds())/float64(n))
}
