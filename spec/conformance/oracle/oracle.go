package main

import (
	"log"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
)

// The state of the trace that is being run.
type oracle struct {
	options         *line
	clock           *testclock.FakePassiveClock
	correlator      *record.EventCorrelator
	aggregates, log cache
	now             observed
	results         map[int]*result
	orders          orders
	identities      identities
	cases           cases
}

// The keys of the current step's event, and whether the aggregator combined it.
type observed struct {
	aggregateKey, localKey, spamKey string
	combined                        bool
}

// The correlated event of a step. A later step of the trace may carry the server's answer to it.
type result struct {
	event    v1.Event
	combined bool
	entry    entry
}

func newOracle(l *line) *oracle {
	o := &oracle{
		options:    l,
		clock:      testclock.NewFakePassiveClock(time.Unix(0, 0)),
		results:    map[int]*result{},
		orders:     orders{},
		identities: newIdentities(),
		cases:      newCases(l.LRUCacheSize),
	}
	o.correlator = record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
		LRUCacheSize:         l.LRUCacheSize,
		BurstSize:            l.BurstSize,
		QPS:                  float32(l.QPS),
		MaxEvents:            l.MaxEvents,
		MaxIntervalInSeconds: l.MaxIntervalInSeconds,
		Clock:                o.clock,
		KeyFunc: func(e *v1.Event) (string, string) {
			o.now.aggregateKey, o.now.localKey = o.aggregateKeys(e)
			return o.now.aggregateKey, o.now.localKey
		},
		MessageFunc: func(e *v1.Event) string {
			o.now.combined = true
			return o.combinedMessage(e)
		},
		SpamKeyFunc: func(e *v1.Event) string {
			o.now.spamKey = o.spamKey(e)
			return o.now.spamKey
		},
	})
	o.aggregates = cacheOf(o.correlator, "aggregator")
	o.log = cacheOf(o.correlator, "logger")
	return o
}

// The custom functions that a trace may use instead of client-go's; trace_runner.c has the same.

func (o *oracle) aggregateKeys(e *v1.Event) (string, string) {
	if o.options.KeyFunc {
		return e.Type + "\x01" + e.Reason, e.InvolvedObject.Name
	}
	return record.EventAggregatorByReasonFunc(e)
}

func (o *oracle) combinedMessage(e *v1.Event) string {
	if o.options.MessageFunc {
		return "together: " + e.Message
	}
	return record.EventAggregatorByReasonMessageFunc(e)
}

func (o *oracle) spamKey(e *v1.Event) string {
	if o.options.SpamKeyFunc {
		return e.InvolvedObject.Name + "\x01" + e.Reason
	}
	return joined(spamParts(e))
}

func (o *oracle) step(l *line) any {
	o.cases.begin(l.T)
	o.clock.SetTime(time.Unix(0, l.T).UTC())
	switch {
	case l.Event != nil:
		return o.correlate(l.ID, l.Event)
	case l.Update != nil:
		return o.update(l.Update)
	default:
		return o.answer(l)
	}
}

func (o *oracle) correlate(id int, event *v1.Event) any {
	complete(event, id)
	given := *event
	if o.collides(&given) {
		return collision{true}
	}
	o.now = observed{}
	o.cases.beforeEvent(o, &given)
	r, err := o.correlator.EventCorrelate(event)
	if err != nil {
		log.Fatal(err)
	}
	o.forgetOldest()
	key := eventKey(&given)
	if o.now.combined {
		key = o.now.aggregateKey
	}
	entry := o.log.entry(key)
	o.renameMade(entry, id, r)
	seen := entry.observation()
	o.cases.afterEvent(o, key, seen, r)
	out := eventAnswer{
		Skip:            r.Skip,
		Why:             why(r, o.now.combined),
		Name:            seen.name,
		Count:           int32(seen.count),
		ResourceVersion: seen.resourceVersion,
		FirstTimestamp:  nanoseconds(seen.firstTimestamp),
		Cases:           o.cases.list,
	}
	if r.Skip {
		return out
	}
	e := r.Event
	if o.now.combined {
		keep(e, &given)
	}
	if e.Name != seen.name || e.Count != int32(seen.count) || e.ResourceVersion != seen.resourceVersion ||
		!e.FirstTimestamp.Time.Equal(seen.firstTimestamp.Time) {
		log.Fatalf("the log of %v differs from the correlator's result: %v", e, seen)
	}
	o.results[id] = &result{*e, o.now.combined, entry}
	last := nanoseconds(e.LastTimestamp)
	out.LastTimestamp = &last
	out.Message = &e.Message
	out.Patch = patchOf(e, r.Patch)
	out.Kept = []string{e.Namespace, e.InvolvedObject.Name, e.InvolvedObject.FieldPath, e.Type, e.Reason, e.Action,
		e.Source.Component, e.Source.Host, e.ReportingController, e.ReportingInstance}
	return out
}

// The name that evrec gives to the correlator's decision.
func why(r *record.EventCorrelateResult, combined bool) string {
	switch {
	case r.Skip:
		return "rate_limited"
	case combined:
		return "aggregated"
	case r.Patch != nil:
		return "duplicate"
	default:
		return "new"
	}
}

func (o *oracle) update(event *v1.Event) any {
	if o.identities.eventCollides(event) {
		return collision{true}
	}
	o.updateState(*event)
	return updateAnswer{o.cases.list}
}

// The server's answer to the event of an earlier step.
func (o *oracle) answer(l *line) any {
	r, ok := o.results[l.Answer]
	if !ok {
		return updateAnswer{}
	}
	event := r.event
	event.ResourceVersion = l.ResourceVersion
	if l.Name != "" {
		event.Name = l.Name
	}
	o.cases.answer(o, r, l.Handle)
	if l.Handle {
		o.answered(r, &event)
	} else if o.identities.eventCollides(&event) {
		return collision{true}
	} else {
		o.updateState(event)
	}
	return updateAnswer{o.cases.list}
}

func nanoseconds(t metav1.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := strconv.FormatInt(t.UnixNano(), 10)
	return &s
}
