package main

// Reads the entries of client-go's caches, which it does not export. Only use() counts as use of an entry. This file
// checks the fields of client-go's types, so that the program ends if another version of client-go has others.

import (
	"container/list"
	"log"
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
)

// record.eventLog
type eventLog struct {
	count           uint
	firstTimestamp  metav1.Time
	name            string
	resourceVersion string
}

// record.aggregateRecord
type aggregateRecord struct {
	localKeys     sets.Set[string]
	lastTimestamp metav1.Time
}

// The contents of an LRU cache: a map[interface{}]*list.Element, and its elements, the most recently used first.
type cache struct {
	entries reflect.Value
	order   *list.List
}

// An entry of a cache, the same until it is evicted. The element is nil if the cache has no such entry.
type entry struct {
	element *list.Element
}

func cacheOf(correlator *record.EventCorrelator, part string) cache {
	lru := reflect.ValueOf(correlator).Elem().FieldByName(part).Elem().FieldByName("cache")
	inner := lru.Elem().FieldByName("cache").Elem()
	return cache{inner.FieldByName("cache"), (*list.List)(inner.FieldByName("ll").UnsafePointer())}
}

func (c cache) entry(key string) entry {
	found := c.entries.MapIndex(reflect.ValueOf(key))
	if !found.IsValid() {
		return entry{}
	}
	return entry{(*list.Element)(found.UnsafePointer())}
}

// Whether the entry is still in the cache.
func (c cache) holds(e entry) bool {
	return e.element == c.order.Front() || e.element.Prev() != nil
}

func (c cache) use(e entry) {
	c.order.MoveToFront(e.element)
}

// The most recently used of the log's entries with a count above 0 and this name.
func (c cache) named(name string) entry {
	for element := c.order.Front(); element != nil; element = element.Next() {
		e := entry{element}
		if seen := e.observation(); seen.name == name && seen.count > 0 {
			return e
		}
	}
	return entry{}
}

func (e entry) value() *any {
	pointer := reflect.ValueOf(e.element.Value)
	field, ok := pointer.Type().Elem().FieldByName("value")
	if !ok {
		log.Fatal("an entry of client-go's caches has another shape")
	}
	return (*any)(unsafe.Add(pointer.UnsafePointer(), field.Offset))
}

func sameShape(a, b reflect.Type) bool {
	if a.NumField() != b.NumField() {
		return false
	}
	for i := range a.NumField() {
		if a.Field(i).Name != b.Field(i).Name || a.Field(i).Type != b.Field(i).Type {
			return false
		}
	}
	return true
}

// A copy of the entry's value in its own type, and the same memory as a T.
func open[T any](e entry) (reflect.Value, *T) {
	held := reflect.ValueOf(*e.value())
	if !sameShape(held.Type(), reflect.TypeFor[T]()) {
		log.Fatalf("client-go's %v has another shape", held.Type())
	}
	copied := reflect.New(held.Type())
	copied.Elem().Set(held)
	return copied.Elem(), (*T)(copied.UnsafePointer())
}

func (e entry) observation() eventLog {
	_, o := open[eventLog](e)
	return *o
}

func (e entry) setObservation(o eventLog) {
	value, p := open[eventLog](e)
	*p = o
	*e.value() = value.Interface()
}

// The set of local keys in the result is the correlator's own, not a copy.
func (e entry) aggregate() aggregateRecord {
	_, r := open[aggregateRecord](e)
	return *r
}
