package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A request to the server, as a step's answer has it.
type request struct {
	At     int64          `json:"at,string"` // ns since the start
	Verb   string         `json:"verb"`
	Name   string         `json:"name"`
	Body   map[string]any `json:"body"`
	State  string         `json:"state,omitempty"` // of the series
	Status int            `json:"status"`

	made int // the step that made the event
	of   string
}

// An events.EventSink that stores events, and logs the requests.
type server struct {
	start     time.Time
	step      int
	made      map[string]int   // an event's name: the step that recorded it first
	stored    map[string]bool  // by name
	written   map[string]int32 // by name: the count that was last written, or rejected
	rejects   bool             // creates
	notes     map[seriesKey]string
	drops     drops
	log       []*request // of the current step
	settled   int        // how many of these have their state
	telling   bool       // a patch is logged though it changes nothing
	recording bool       // an event is being recorded
	cases     []string
}

func newServer(start time.Time) *server {
	return &server{
		start:   start,
		made:    map[string]int{},
		stored:  map[string]bool{},
		written: map[string]int32{},
		notes:   map[seriesKey]string{},
		drops:   newDrops(),
	}
}

func (s *server) begin(step int) {
	s.step, s.log, s.settled, s.cases = step, nil, 0, nil
}

func (s *server) when(is bool, name string) {
	if is {
		s.cases = append(s.cases, name)
	}
}

// Deletes the event that a step made, as the API server does when its time to live is over.
func (s *server) forget(step int) {
	for name, made := range s.made {
		if made == step {
			s.when(s.stored[name], "forgotten_by_server")
			delete(s.stored, name)
		}
	}
}

// An event's JSON without its name, and without fields that are null or empty.
func bodyOf(text []byte) map[string]any {
	body := map[string]any{}
	if err := json.Unmarshal(text, &body); err != nil {
		log.Fatal(err)
	}
	prune(body)
	return body
}

func prune(object map[string]any) {
	for key, value := range object {
		inner, ok := value.(map[string]any)
		if ok {
			prune(inner)
		}
		if value == nil || ok && len(inner) == 0 {
			delete(object, key)
		}
	}
}

func (s *server) add(verb string, event *eventsv1.Event, text []byte, status int) {
	body := bodyOf(text)
	if metadata, ok := body["metadata"].(map[string]any); ok {
		delete(metadata, "name")
	}
	if instance, ok := body["reportingInstance"].(string); ok {
		body["reportingInstance"] = strings.TrimSuffix(instance, hostname())
	}
	made := s.made[event.Name]
	s.log = append(s.log, &request{
		At:     time.Since(s.start).Nanoseconds(),
		Verb:   verb,
		Name:   fmt.Sprintf("made at %d", made),
		Body:   body,
		Status: status,
		made:   made,
		of:     event.Name,
	})
	if event.Series != nil && status != 404 {
		s.written[event.Name] = event.Series.Count
	}
}

func (s *server) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if s.stored[event.Name] {
		log.Fatalf("%s was made twice", event.Name)
	}
	s.when(event.Series == nil, "created")
	s.when(event.Series != nil && !s.recording, "recreated")
	s.when(event.Series != nil && s.recording, "created_again")
	event = s.lastNote(event)
	if event.Series == nil {
		s.made[event.Name] = s.step
	}
	text, err := json.Marshal(event)
	if err != nil {
		log.Fatal(err)
	}
	if s.rejects {
		s.add("create", event, text, 400)
		s.dropped(event)
		return nil, errors.NewBadRequest("rejected")
	}
	s.stored[event.Name] = true
	s.add("create", event, text, 201)
	s.drops.taken(event)
	return event.DeepCopy(), nil
}

func (s *server) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	log.Fatal("client-go updates no event")
	return nil, nil
}

func (s *server) Patch(_ context.Context, event *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	if s.changesNothing(event) {
		return event.DeepCopy(), nil
	}
	notFound := errors.NewNotFound(schema.GroupResource{Group: eventsv1.GroupName, Resource: "events"}, event.Name)
	if s.drops.has(event) {
		if s.recording && !s.drops.over(event) || !s.hasNews(event) {
			return event.DeepCopy(), nil
		}
		return nil, notFound
	}
	news := s.hasNews(event)
	if !s.stored[event.Name] {
		s.add("patch", event, patch, 404)
		if !news {
			return event.DeepCopy(), nil
		}
		return nil, notFound
	}
	s.when(event.Series.Count == 2 && s.written[event.Name] == 0, "begun")
	s.add("patch", event, patch, 200)
	return event.DeepCopy(), nil
}

// Sets the state of the requests since the last call: a series is finished once the cache has forgotten it.
func (s *server) settle(cache seriesCache) {
	if s.settled == len(s.log) {
		return
	}
	names := cache.names()
	for _, r := range s.log[s.settled:] {
		if _, ok := r.Body["series"]; ok && names[r.of] {
			r.State = "Ongoing"
		} else if ok {
			r.State = "Finished"
		}
	}
	s.settled = len(s.log)
}

// The requests by time and event, as client-go's cache has no order.
func (s *server) sorted() []*request {
	slices.SortStableFunc(s.log, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.made, b.made))
	})
	return s.log
}
