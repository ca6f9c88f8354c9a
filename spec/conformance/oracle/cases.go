package main

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"
)

// The cases that the steps of a trace reach. An answer lists those of its step. They are not compared: run.lua counts
// them, so that it notices if the random traces no longer reach a case.
type cases struct {
	list             []string // of the current step
	last             int64
	events, groups   map[string]bool // every key that the log and the aggregator ever held
	buckets          *lru.Cache      // as large as the spam filter's: key -> whether it refused the last event
	bucketsEver      map[string]bool
	forgottenLocally map[string]bool // aggregate key, local key
}

func newCases(size int) cases {
	return cases{
		events:           map[string]bool{},
		groups:           map[string]bool{},
		buckets:          lru.New(size),
		bucketsEver:      map[string]bool{},
		forgottenLocally: map[string]bool{},
	}
}

func (c *cases) when(is bool, name string) {
	if is {
		c.list = append(c.list, name)
	}
}

func (c *cases) begin(t int64) {
	c.list = nil
	c.when(c.last > t, "clock_back")
	c.last = t
}

func (c *cases) beforeEvent(o *oracle, e *v1.Event) {
	key, local := o.aggregateKeys(e)
	found := o.aggregates.entry(key)
	if found.element == nil {
		c.when(c.groups[key], "aggregate_evicted")
	} else {
		interval := time.Duration(o.options.MaxIntervalInSeconds) * time.Second
		gone := o.clock.Now().Sub(found.aggregate().lastTimestamp.Time)
		c.when(gone > interval, "interval_over")
		c.when(gone == interval, "at_interval")
		c.when(gone == interval+1, "just_past_interval")
		c.when(gone <= interval && c.forgottenLocally[key+"\x00"+local], "local_key_forgotten")
	}
	c.groups[key] = true
}

func (c *cases) localKeyForgotten(key, local string) {
	c.forgottenLocally[key+"\x00"+local] = true
}

func (c *cases) afterEvent(o *oracle, key string, seen eventLog, r *record.EventCorrelateResult) {
	isNew := !o.now.combined && r.Patch == nil && !r.Skip
	c.when(isNew && c.events[key], "event_evicted")
	c.when(o.now.combined && r.Patch != nil, "aggregate_counted")
	c.when(r.Skip && seen.count > 1, "skipped_and_counted")
	c.events[key] = true
	refused, held := c.buckets.Get(o.now.spamKey)
	c.when(!held && c.bucketsEver[o.now.spamKey], "bucket_evicted")
	c.when(held && refused.(bool) && !r.Skip, "token_again")
	c.bucketsEver[o.now.spamKey] = true
	c.buckets.Add(o.now.spamKey, r.Skip)
}

// An answer made a new entry, as its event's entry was evicted or never existed.
func (c *cases) updated(key string) {
	c.when(true, "answer_makes_entry")
	c.events[key] = true
}

func (c *cases) answer(o *oracle, r *result, byHandle bool) {
	gone := !o.log.holds(r.entry)
	c.when(gone, "answer_to_evicted")
	c.when(!gone && r.entry.observation().count > uint(r.event.Count), "late_answer")
	c.when(r.combined, "answer_to_aggregate")
	c.when(byHandle, "answer_by_handle")
}
