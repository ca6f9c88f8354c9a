package main

// The points in which evrec's series differ from client-go's tools/events on purpose. Each section below is one
// difference, and makes the oracle answer as evrec does. No other part of the comparison handles a difference.

import (
	"context"
	"log"
	"os"
	"sync"
	"time"
	_ "unsafe" // for linkname

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

//go:linkname recordEvent k8s.io/client-go/tools/events.recordEvent
func recordEvent(ctx context.Context, sink events.EventSink, event *eventsv1.Event) (*eventsv1.Event, bool)

// The fields that make two events a part of the same series, in client-go's order.
type seriesKey struct {
	eventType, action, reason, controller, instance string
	regarding, related                              v1.ObjectReference
}

func seriesKeyOf(e *eventsv1.Event) seriesKey {
	key := seriesKey{e.Type, e.Action, e.Reason, e.ReportingController, e.ReportingInstance, e.Regarding,
		v1.ObjectReference{}}
	if e.Related != nil {
		key.related = *e.Related
	}
	return key
}

func (e *seriesEvent) key() seriesKey {
	return seriesKeyOf(&eventsv1.Event{Type: e.Type, Action: e.Action, Reason: e.Reason, ReportingController: e.Controller,
		ReportingInstance: e.Instance, Regarding: e.Regarding, Related: e.Related})
}

var hostname = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	return name
})

// ---- 1. Resource versions and field paths are no part of evrec's key. They are left out of the bodies of requests.

func withoutVersion(r *v1.ObjectReference) {
	r.ResourceVersion, r.FieldPath = "", ""
}

// ---- 2. evrec sets an unset action, which the API server does not take, to the reason.

func (e *seriesEvent) likeEvrec() {
	withoutVersion(&e.Regarding)
	if e.Related != nil {
		withoutVersion(e.Related)
	}
	if e.Action == "" {
		e.Action = e.Reason
	}
	if e.Instance == "" {
		e.Instance = e.Controller + "-" + hostname() // as client-go's recorder does
	}
}

// ---- 3. If the server has forgotten a series, client-go creates it with its first note, evrec with the last one.

func (s *server) noted(e *seriesEvent) {
	s.notes[e.key()] = e.Note
}

func (s *server) lastNote(event *eventsv1.Event) *eventsv1.Event {
	out := event.DeepCopy()
	out.Note = s.notes[seriesKeyOf(event)]
	s.when(out.Note != event.Note, "other_note")
	return out
}

// ---- 4. client-go patches a series with every heartbeat, evrec only if the count has changed since the last patch. A
// series that is finished both patch: client-go twice if that is also the time of a heartbeat, and evrec to say that it is
// finished, which API servers are not told. If the count has not changed and the server has forgotten the event, only
// client-go creates it again.

func (s *server) hasNews(event *eventsv1.Event) bool {
	return s.written[event.Name] != event.Series.Count
}

func (s *server) changesNothing(event *eventsv1.Event) bool {
	now := time.Now()
	if s.hasNews(event) || s.telling {
		return false
	}
	for _, r := range s.log {
		if r.of == event.Name && r.At == now.Sub(s.start).Nanoseconds() {
			return true
		}
	}
	return now.Sub(s.start)%finishTime != 0 || !event.Series.LastObservedTime.Time.Before(now.Add(-finishTime))
}

// ---- 5. evrec remembers max_series events at most. For a new one it finishes the one that was not seen for longest.

func lastSeen(e *eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}

func (o *seriesOracle) evict(e *seriesEvent) {
	if o.cache.len() < o.options.MaxSeries {
		return
	}
	var oldest *eventsv1.Event
	for _, event := range o.cache.all() {
		if seriesKeyOf(event) == e.key() {
			return
		}
		if oldest == nil || lastSeen(event).Before(lastSeen(oldest)) {
			oldest = event
		}
	}
	o.server.when(oldest.Series == nil, "evicted_single")
	if oldest.Series != nil {
		o.server.when(true, "evicted_series")
		o.server.telling = true
		recordEvent(context.Background(), o.server, oldest.DeepCopy())
		o.server.telling = false
	}
	o.cache.remove(oldest)
}

// ---- 6. Only evrec can flush: it writes all counts, as with a heartbeat.

func (o *seriesOracle) flush() {
	for _, event := range o.cache.all() {
		if event.Series != nil {
			o.server.when(o.server.hasNews(event), "flushed")
			recordEvent(context.Background(), o.server, event.DeepCopy())
		}
	}
}

// ---- 7. If the server has rejected an event's first create, client-go patches the event when it happens again, and
// then, as there is no such event, creates it. evrec counts for 30 s, and creates the event when it happens after that,
// or with the next heartbeat or the end if it has counted something. It patches no event that the server never took.

const createAgain = 30 * time.Second

type drops struct {
	of    map[string]time.Time // by name: when its create was rejected
	known map[string]bool      // the names of events that the server once took
}

func newDrops() drops {
	return drops{map[string]time.Time{}, map[string]bool{}}
}

func (d drops) taken(event *eventsv1.Event) {
	d.known[event.Name] = true
	delete(d.of, event.Name)
}

func (s *server) dropped(event *eventsv1.Event) {
	if s.drops.known[event.Name] {
		return
	}
	s.when(true, "create_dropped")
	s.drops.of[event.Name] = time.Now()
}

func (d drops) has(event *eventsv1.Event) bool {
	_, ok := d.of[event.Name]
	return ok
}

func (d drops) over(event *eventsv1.Event) bool {
	return time.Since(d.of[event.Name]) >= createAgain
}

func (o *seriesOracle) createAgain(e *seriesEvent) {
	d := o.server.drops
	for _, event := range o.cache.all() {
		if d.has(event) && d.over(event) && seriesKeyOf(event) == e.key() {
			recordEvent(context.Background(), o.server, event.DeepCopy())
			return
		}
	}
}
