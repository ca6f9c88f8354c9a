package main

// Where evrec differs from client-go on purpose: each section below is one such difference, and makes the reference do,
// or tell, what evrec should. Nothing else in this comparison knows of any.

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

// ---- 1. An event without a count is the first, and one without a name gets one. (client-go's recorder sets both.)

func complete(event *v1.Event, id int) {
	if event.Count == 0 {
		event.Count = 1
	}
	if event.Name == "" {
		event.Name = madeAt(id)
	}
}

// Names that are made differ; they are told by where that was.
func madeAt(id int) string {
	return fmt.Sprintf("made at %d", id)
}

// ---- 2. Of a full set of local keys the reference forgets any, evrec the oldest.

// The local keys of a set in the order in which they came in.
type order struct {
	keys sets.Set[string] // so that its address is not used again
	list []string
}

type orders map[unsafe.Pointer]*order

// Puts back what was forgotten, and forgets the oldest.
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

// ---- 3. The reference gives two aggregates that are made about one object in one tick the same name, evrec does not.

func (o *oracle) renameMade(entry entry, id int, r *record.EventCorrelateResult) {
	if seen := entry.observation(); o.now.combined && seen.count == 1 {
		seen.name = madeAt(id)
		entry.setObservation(seen)
		if !r.Skip {
			r.Event.Name = seen.name
		}
	}
}

// ---- 4. The reference's aggregates lose these; evrec's keep those of the occurrence.

func keep(aggregate, occurrence *v1.Event) {
	aggregate.ReportingController = occurrence.ReportingController
	aggregate.ReportingInstance = occurrence.ReportingInstance
	aggregate.Action = occurrence.Action
	aggregate.Related = occurrence.Related
	aggregate.Labels = occurrence.Labels
	aggregate.Annotations = occurrence.Annotations
}

// ---- 5. The reference's patch is a difference to 1970, and leaves out a last timestamp in that year's first second.

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

// ---- 6. The reference joins the parts of its keys without a separator, so that different keys may be one. evrec's are
// not: a trace ends where that would show.

// Joined keys -> the parts that they were joined of.
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

// The log holds keys of events and of aggregates.
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

// ---- 7. The reference files an answer under the key that it makes of the event, an aggregate's under one that it was
// not observed under. evrec goes by the name first. A late answer sets name and resource version, but never lowers a
// count.

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

// ---- 8. evrec's own way for an answer: by a handle, which is no use of the entry, and ends with it.

func (o *oracle) answered(r *result, event *v1.Event) {
	if o.log.holds(r.entry) {
		seen := r.entry.observation()
		seen.name, seen.resourceVersion = event.Name, event.ResourceVersion
		r.entry.setObservation(seen)
	}
}
