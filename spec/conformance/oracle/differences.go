package main

// The points in which evrec differs from client-go on purpose. Each section below is one difference, and makes the
// oracle answer as evrec does. No other part of the comparison handles a difference.

import (
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"strings"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
)

// ---- 1. evrec sets an unset count to 1, and generates a name for an event without one. client-go leaves that to its
// recorder.

func complete(event *v1.Event, id int) {
	if event.Count == 0 {
		event.Count = 1
	}
	if event.Name == "" {
		event.Name = madeAt(id)
	}
}

// Generated names differ between the programs, so an answer has the step that generated the name instead.
func madeAt(id int) string {
	return fmt.Sprintf("made at %d", id)
}

// ---- 2. If a set of local keys is full, client-go forgets any of them, evrec the oldest.

// The local keys of a set, in the order in which they were inserted.
type order struct {
	keys sets.Set[string] // keeps the set alive, so that no other set gets its address
	list []string
}

type orders map[unsafe.Pointer]*order

// Puts back the local key that client-go forgot, and deletes the oldest.
func (o *oracle) forgetOldest() {
	keys := o.aggregates.entry(o.now.aggregateKey).aggregate().localKeys
	which := *(*unsafe.Pointer)(unsafe.Pointer(&keys))
	known, ok := o.orders[which]
	if !ok {
		known = &order{keys: keys}
		o.orders[which] = known
	}
	if !slices.Contains(known.list, o.now.localKey) {
		known.list = append(known.list, o.now.localKey)
	}
	if o.now.combined {
		keys.Insert(known.list...)
		keys.Delete(known.list[0])
		o.cases.localKeyForgotten(o.now.aggregateKey, known.list[0])
		known.list = known.list[1:]
	}
	if len(keys) != len(known.list) || !keys.HasAll(known.list...) {
		log.Fatalf("the local keys are %v, not %v", keys, known.list)
	}
}

// ---- 3. client-go gives two aggregates about one object the same name if the clock did not move, evrec does not.

func (o *oracle) renameMade(entry entry, id int, r *record.EventCorrelateResult) {
	if seen := entry.observation(); o.now.combined && seen.count == 1 {
		seen.name = madeAt(id)
		entry.setObservation(seen)
		if !r.Skip {
			r.Event.Name = seen.name
		}
	}
}

// ---- 4. client-go's aggregates lose the following fields; evrec's keep those of the occurrence.

func keep(aggregate, occurrence *v1.Event) {
	aggregate.ReportingController = occurrence.ReportingController
	aggregate.ReportingInstance = occurrence.ReportingInstance
	aggregate.Action = occurrence.Action
	aggregate.Related = occurrence.Related
	aggregate.Labels = occurrence.Labels
	aggregate.Annotations = occurrence.Annotations
}

// ---- 5. client-go's patch is the difference to an event whose lastTimestamp is 1970-01-01T00:00:00Z. So it lacks a
// lastTimestamp that is in that second.

func patchOf(event *v1.Event, patch []byte) json.RawMessage {
	if patch == nil {
		return json.RawMessage("null")
	}
	if event.LastTimestamp.IsZero() || event.LastTimestamp.Unix() != 0 {
		return patch
	}
	fields := map[string]any{}
	if err := json.Unmarshal(patch, &fields); err != nil {
		log.Fatal(err)
	}
	fields["lastTimestamp"] = "1970-01-01T00:00:00Z"
	whole, err := json.Marshal(fields)
	if err != nil {
		log.Fatal(err)
	}
	return whole
}

// ---- 6. client-go joins the parts of its keys without a separator, so that different parts may give equal keys.
// evrec's keys differ if any part differs. The comparison of a trace ends before the first step with such a collision.

// Maps a joined key to its parts.
type identity map[string]string

type identities struct {
	aggregates, log, buckets identity
}

func newIdentities() identities {
	return identities{identity{}, identity{}, identity{}}
}

func (i identity) collides(key string, parts ...string) bool {
	quoted := fmt.Sprintf("%q", parts)
	other, ok := i[key]
	i[key] = quoted
	return ok && other != quoted
}

func joined(parts []string) string {
	return strings.Join(parts, "")
}

func spamParts(e *v1.Event) []string {
	r := &e.InvolvedObject
	return []string{e.Source.Component, e.Source.Host, r.Kind, r.Namespace, r.Name, string(r.UID), r.APIVersion, e.Type}
}

func aggregateParts(e *v1.Event) []string {
	return append(spamParts(e), e.Reason, e.ReportingController, e.ReportingInstance)
}

func eventParts(e *v1.Event) []string {
	r := &e.InvolvedObject
	return []string{e.Source.Component, e.Source.Host, r.Kind, r.Namespace, r.Name, r.FieldPath, string(r.UID),
		r.APIVersion, e.Type, e.Reason, e.Message}
}

func eventKey(e *v1.Event) string {
	return joined(eventParts(e))
}

// The log has keys of events and of aggregates.
func (i identities) eventCollides(e *v1.Event) bool {
	return i.log.collides(eventKey(e), append([]string{"event"}, eventParts(e)...)...)
}

func (o *oracle) collides(e *v1.Event) bool {
	group, _ := o.aggregateKeys(e)
	groupParts, bucketParts := aggregateParts(e), spamParts(e)
	if o.options.KeyFunc {
		groupParts = []string{group}
	}
	bucket := o.spamKey(e)
	if o.options.SpamKeyFunc {
		bucketParts = []string{bucket}
	}
	event := o.identities.eventCollides(e)
	inLog := o.identities.log.collides(group, append([]string{"aggregate"}, groupParts...)...)
	inAggregates := o.identities.aggregates.collides(group, groupParts...)
	return o.identities.buckets.collides(bucket, bucketParts...) || inAggregates || inLog || event
}

// ---- 7. client-go's UpdateState stores an answer under the key that it makes of the answer's event. For an aggregate
// that is another key than the one under which it was observed. evrec searches by the event's name first. A late answer
// sets name and resource version, but never lowers a count.

func (o *oracle) updateState(event v1.Event) {
	own := o.log.entry(eventKey(&event))
	held := own
	if own.element == nil || own.observation().name != event.Name {
		if other := o.log.named(event.Name); other.element != nil {
			held = other
		}
	}
	if own.element != nil {
		o.log.use(own)
	}
	if held.element == nil {
		o.cases.updated(eventKey(&event))
		o.correlator.UpdateState(&event)
		return
	}
	o.log.use(held)
	seen := held.observation()
	seen.name, seen.resourceVersion = event.Name, event.ResourceVersion
	seen.count = max(seen.count, uint(event.Count))
	held.setObservation(seen)
}

// ---- 8. Only evrec takes an answer by handle. That does not count as use of the entry. The handle is invalid once the
// entry is evicted.

func (o *oracle) answered(r *result, event *v1.Event) {
	if o.log.holds(r.entry) {
		seen := r.entry.observation()
		seen.name, seen.resourceVersion = event.Name, event.ResourceVersion
		r.entry.setObservation(seen)
	}
}
