package main

// Reads and changes those parts of client-go's tools/events that it does not export. If another version of client-go
// has other fields, reflect panics.

import (
	"reflect"
	"unsafe"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

// The map of a broadcaster from its keys to events.
type seriesCache struct {
	entries reflect.Value
}

// A field of what `object` points to, which may be set though it is not exported.
func fieldOf(object reflect.Value, name string) reflect.Value {
	field := object.Elem().FieldByName(name)
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

func seriesCacheOf(b events.EventBroadcaster) seriesCache {
	return seriesCache{fieldOf(reflect.ValueOf(b), "eventCache")}
}

func (c seriesCache) len() int {
	return c.entries.Len()
}

// The events of the cache, not copied.
func (c seriesCache) all() []*eventsv1.Event {
	out := make([]*eventsv1.Event, 0, c.len())
	for each := c.entries.MapRange(); each.Next(); {
		out = append(out, each.Value().Interface().(*eventsv1.Event))
	}
	return out
}

func (c seriesCache) names() map[string]bool {
	out := map[string]bool{}
	for _, event := range c.all() {
		out[event.Name] = true
	}
	return out
}

func (c seriesCache) remove(event *eventsv1.Event) {
	for each := c.entries.MapRange(); each.Next(); {
		if each.Value().Interface().(*eventsv1.Event) == event {
			c.entries.SetMapIndex(each.Key(), reflect.Value{})
			return
		}
	}
}

func setInstance(r events.EventRecorder, instance string) {
	fieldOf(fieldOf(reflect.ValueOf(r), "recorderImpl"), "reportingInstance").SetString(instance)
}
