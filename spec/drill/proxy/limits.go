package main

import (
	"math"
	"net/http"
	"sync"
	"time"
)

// The limits of a server that admits one request at a time, or so many a second. Each new fault resets them.
type limits struct {
	seat sync.Mutex // held by the one request that is under way

	lock   sync.Mutex
	tokens float64
	since  time.Time // when there were so many tokens
}

const (
	tokensPerSecond = 50
	tokensAtMost    = 50
)

var admission limits

func (l *limits) reset() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.tokens, l.since = tokensAtMost, time.Now()
}

func (l *limits) takeToken() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	now := time.Now()
	l.tokens = math.Min(tokensAtMost, l.tokens+now.Sub(l.since).Seconds()*tokensPerSecond)
	l.since = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// Answers as a kube-apiserver that admits one writing request at a time, and takes some time for each.
func oneAtATime(e *exchange) {
	if !admission.seat.TryLock() {
		throttled(e)
		return
	}
	defer admission.seat.Unlock()
	time.Sleep(e.delay)
	e.server.ServeHTTP(e.w, e.r)
}

// Answers as a kube-apiserver with the EventRateLimit plugin.
func fiftyASecond(e *exchange) {
	if !admission.takeToken() {
		limited(e)
		return
	}
	e.server.ServeHTTP(e.w, e.r)
}

// The 429 of an overloaded API server: text, with Retry-After.
func throttled(e *exchange) {
	e.w.Header().Set("Retry-After", "1")
	http.Error(e.w, "Too many requests, please try again later.", http.StatusTooManyRequests)
}

// The 429 of the EventRateLimit plugin: a Status, without Retry-After.
func limited(e *exchange) {
	e.status(http.StatusTooManyRequests, "TooManyRequests", "limit reached")
}
