package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"net"
	"net/http"
	"strconv"
	"time"
)

// One request, and what a fault may do with it.
type exchange struct {
	w      http.ResponseWriter
	r      *http.Request
	server http.Handler
	delay  time.Duration
	below  func(n int) int // a random number
	remove func() error    // deletes the event that the request is about
}

// Faults by name. Each does to a request what its comment says; those that leave the server's own answer out have the
// request done by the server half of the time, as who gets no answer cannot know.
var faults = map[string]func(*exchange){
	// 429 of an overloaded API server: text, and when to come back.
	"throttled": func(e *exchange) {
		e.w.Header().Set("Retry-After", "1")
		http.Error(e.w, "Too many requests, please try again later.", http.StatusTooManyRequests)
	},
	// 429 of the EventRateLimit plugin: a Status that does not say when.
	"limited": func(e *exchange) { e.status(http.StatusTooManyRequests, "TooManyRequests", "limit reached") },
	"internal": func(e *exchange) {
		e.perhapsDone()
		e.status(http.StatusInternalServerError, "InternalError", "etcdserver: request timed out")
	},
	// 503 of one that shuts down.
	"unavailable": func(e *exchange) {
		e.perhapsDone()
		e.w.Header().Set("Retry-After", "1")
		e.status(http.StatusServiceUnavailable, "ServiceUnavailable", "apiserver is shutting down")
	},
	// The headers, and half of the body.
	"half": func(e *exchange) {
		answer := e.done(e.r.Context())
		answer.writeHead(e.w)
		_, _ = e.w.Write(answer.body.Bytes()[:answer.body.Len()/2])
		e.w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
	// The connection is reset, and all else that is under way on it is cut off.
	"reset": func(e *exchange) {
		e.perhapsDone()
		resetConnection(connectionOf(e.r.Context()))
		panic(http.ErrAbortHandler)
	},
	// New connections show a certificate that was made for somebody else; old ones end.
	"stranger": func(e *exchange) {
		resetConnection(connectionOf(e.r.Context()))
		panic(http.ErrAbortHandler)
	},
	// The server's answer, but late; or a request that comes to it late, unless it was given up by then.
	"delay": func(e *exchange) {
		var answer *captured
		if e.below(2) == 0 {
			answer = e.done(e.r.Context())
		}
		select {
		case <-time.After(e.delay):
		case <-e.r.Context().Done():
			panic(http.ErrAbortHandler)
		}
		if answer == nil {
			answer = e.done(e.r.Context())
		}
		answer.writeHead(e.w)
		_, _ = e.w.Write(answer.body.Bytes())
	},
	// 409 to the first POST of an event: its name is somebody else's.
	"conflict": func(e *exchange) {
		e.status(http.StatusConflict, "AlreadyExists", "the event already exists")
	},
	// 404 to a PATCH: the event has gone from the server just before.
	"expired": func(e *exchange) {
		if err := e.remove(); err != nil {
			e.status(http.StatusServiceUnavailable, "ServiceUnavailable", err.Error())
			return
		}
		e.server.ServeHTTP(e.w, e.r)
	},
}

// Not "conflict": who tries again, and does not know whether the first time was successful, has to take it for his own.
var swift = []string{"throttled", "limited", "internal", "unavailable", "half", "reset", "expired"}

// The fault of that name, or nil, where it does not happen to such a request: `first` is the first POST of an event.
// "any" is one of those below.
func faultFor(name, method string, first bool, random *rand.Rand) func(*exchange) {
	if name == "any" {
		name = swift[random.Intn(len(swift))]
	}
	if (name == "conflict" && !first) || (name == "expired" && method != http.MethodPatch) {
		return nil
	}
	return faults[name]
}

func (e *exchange) status(code int, reason, message string) {
	e.w.Header().Set("Content-Type", "application/json")
	e.w.WriteHeader(code)
	fmt.Fprintf(e.w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`,
		message, reason, code)
}

// The server does it; its answer is kept.
func (e *exchange) done(ctx context.Context) *captured {
	answer := &captured{header: http.Header{}, code: http.StatusOK}
	e.server.ServeHTTP(answer, e.r.Clone(ctx))
	return answer
}

func (e *exchange) perhapsDone() {
	if e.below(2) == 0 {
		e.done(e.r.Context())
	}
}

// An answer that is kept from the client.
type captured struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (c *captured) Header() http.Header         { return c.header }
func (c *captured) WriteHeader(code int)        { c.code = code }
func (c *captured) Write(b []byte) (int, error) { return c.body.Write(b) }

func (c *captured) writeHead(w http.ResponseWriter) {
	for key, values := range c.header {
		w.Header()[key] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(c.body.Len()))
	w.WriteHeader(c.code)
}

// ---- connections ----

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

func connectionOf(ctx context.Context) net.Conn {
	return ctx.Value(connectionKey{}).(net.Conn)
}

// Without a goodbye of TLS, HTTP/2 or TCP.
func resetConnection(c net.Conn) {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapped.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func known(name string) bool {
	return name == "any" || name == "idle" || faults[name] != nil
}
