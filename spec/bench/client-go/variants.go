package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

const (
	objects  = 8192
	messages = 4096
	reason   = "BackOff"
)

var source = v1.EventSource{Component: "kubelet", Host: "node-1"}

// The objects and messages of a workload, which are used in turn.
type events struct {
	objects  []*v1.ObjectReference
	messages []string
}

func objectOf(i int) *v1.ObjectReference {
	return &v1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: "shop", Name: fmt.Sprintf("web-7d4b9c6f5b-%05d", i),
		UID:             types.UID(fmt.Sprintf("3f2c6a1e-58b0-4c1d-9e7f-%012d", i)),
		ResourceVersion: "81224",
	}
}

func eventsOf(workload string) events {
	e := events{
		objects:  []*v1.ObjectReference{objectOf(0)},
		messages: []string{"Back-off restarting failed container web in pod web-7d4b9c6f5b-00000"},
	}
	switch workload {
	case "similar":
		e.messages = make([]string, messages)
		for i := range e.messages {
			e.messages[i] = fmt.Sprintf("Readiness probe failed: HTTP probe failed with statuscode: 503, try %04d", i)
		}
	case "unique":
		e.objects = make([]*v1.ObjectReference, objects)
		for i := range e.objects {
			e.objects[i] = objectOf(i)
		}
	}
	return e
}

// outcome is how many events were created, patched and skipped.
type outcome struct{ created, patched, skipped int }

// variant runs batches of events, and returns the outcome of all of them.
type variant interface {
	batch()
	outcome() outcome
}

// recorder runs events from a recorder to a sink that accepts every write immediately. client-go does not count its
// queued events. But it calls the key function for an event only after it has handled all earlier events, so the key
// function counts them.
type recorder struct {
	events
	client        record.EventRecorder
	recorded, due int
	seen          outcome      // so far
	arrived       chan outcome // before the event that was due
}

func newRecorder(e events, options record.CorrelatorOptions) variant {
	r := &recorder{events: e, arrived: make(chan outcome)}
	passed := 0
	options.KeyFunc = func(event *v1.Event) (string, string) {
		passed++
		if passed == r.due {
			r.arrived <- outcome{r.seen.created, r.seen.patched, passed - 1 - r.seen.created - r.seen.patched}
		}
		return record.EventAggregatorByReasonFunc(event)
	}
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(options)
	broadcaster.StartRecordingToSink(r)
	r.client = broadcaster.NewRecorder(runtime.NewScheme(), source)
	return r
}

func (r *recorder) Create(event *v1.Event) (*v1.Event, error) {
	r.seen.created++
	return event, nil
}

func (r *recorder) Update(event *v1.Event) (*v1.Event, error) { return event, nil }

func (r *recorder) Patch(event *v1.Event, _ []byte) (*v1.Event, error) {
	r.seen.patched++
	return event, nil
}

func (r *recorder) record(n int) outcome {
	r.due += n
	for range n {
		object, message := r.objects[r.recorded%len(r.objects)], r.messages[r.recorded%len(r.messages)]
		r.client.Event(object, v1.EventTypeWarning, reason, message)
		r.recorded++
	}
	return <-r.arrived
}

func (r *recorder) batch() { r.record(batch) }

func (r *recorder) outcome() outcome { return r.record(1) }

// correlator is client-go's EventCorrelator alone, with events made beforehand. Each is copied, as client-go's own
// recordToSink does before it correlates.
type correlator struct {
	client *record.EventCorrelator
	events []v1.Event
	next   int
	seen   outcome
}

func newCorrelator(e events, options record.CorrelatorOptions) variant {
	c := &correlator{client: record.NewEventCorrelatorWithOptions(options)}
	now := metav1.Now()
	for i := range max(len(e.objects), len(e.messages)) {
		object := e.objects[i%len(e.objects)]
		c.events = append(c.events, v1.Event{
			ObjectMeta:          metav1.ObjectMeta{Name: object.Name + ".17a2b3c4d5e6f708", Namespace: object.Namespace},
			InvolvedObject:      *object,
			Type:                v1.EventTypeWarning,
			Reason:              reason,
			Message:             e.messages[i%len(e.messages)],
			Source:              source,
			ReportingController: source.Component,
			ReportingInstance:   source.Host,
			FirstTimestamp:      now,
			LastTimestamp:       now,
			Count:               1,
		})
	}
	return c
}

func (c *correlator) batch() {
	for range batch {
		event := c.events[c.next]
		if c.next++; c.next == len(c.events) {
			c.next = 0
		}
		result, err := c.client.EventCorrelate(&event)
		switch {
		case err != nil:
			die(err)
		case result.Skip:
			c.seen.skipped++
		case result.Event.Count > 1:
			c.seen.patched++
		default:
			c.seen.created++
		}
	}
}

func (c *correlator) outcome() outcome { return c.seen }
