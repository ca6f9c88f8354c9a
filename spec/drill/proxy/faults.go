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

// One request, and the means that a fault has.
type exchange struct {
	w      http.ResponseWriter
	r      *http.Request
	server http.Handler
	delay  time.Duration
	below  func(n int) int // a random number
	remove func() error    // deletes the event that the request is about
}

// Faults by name. A fault that withholds the server's answer lets the server carry out the request half of the time, as
// a client without an answer cannot know which.
var faults = map[string]func(*exchange){
	// 429 in two forms, and servers with limits: see limits.go.
	"throttled":      throttled,
	"limited":        limited,
	"one-at-a-time":  oneAtATime,
	"fifty-a-second": fiftyASecond,
	"internal": func(e *exchange) {
		e.perhapsDone()
		e.status(http.StatusInternalServerError, "InternalError", "etcdserver: request timed out")
	},
	// 503 of a server that shuts down.
	"unavailable": func(e *exchange) {
		e.perhapsDone()
		e.w.Header().Set("Retry-After", "1")
		e.status(http.StatusServiceUnavailable, "ServiceUnavailable", "apiserver is shutting down")
	},
	// Only the headers and half of the body of the answer.
	"half": func(e *exchange) {
		answer := e.done(e.r.Context())
		answer.writeHead(e.w)
		_, _ = e.w.Write(answer.body.Bytes()[:answer.body.Len()/2])
		e.w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
	// The connection is reset, which cuts off all other requests on it too.
	"reset": func(e *exchange) {
		e.perhapsDone()
		resetConnection(connectionOf(e.r.Context()))
		panic(http.ErrAbortHandler)
	},
	// New connections show a certificate of another authority (see proxy.certificate); old connections end.
	"stranger": func(e *exchange) {
		resetConnection(connectionOf(e.r.Context()))
		panic(http.ErrAbortHandler)
	},
	// The answer comes late; or the request reaches the server late, unless the client has given up by then.
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
	// 409 to the first POST of an event, as if the name belonged to another event.
	"conflict": func(e *exchange) {
		e.status(http.StatusConflict, "AlreadyExists", "the event already exists")
	},
	// 404 to a PATCH, as the event is deleted just before.
	"expired": func(e *exchange) {
		if err := e.remove(); err != nil {
			e.status(http.StatusBadRequest, "BadRequest", err.Error()) // a rejected event fails the drill
			return
		}
		e.server.ServeHTTP(e.w, e.r)
	},
	// A receiver of OTLP takes a part of a request, see partial.go.
	"partial": partial,
}

// The faults of "any". Without "conflict", as a client that retries a POST without an answer must take a 409 for a
// success.
var swift = []string{"throttled", "limited", "internal", "unavailable", "half", "reset", "expired"}

// The fault of that name, or nil if it does not apply to such a request. `first` says that it is the first POST of an
// event. "any" is one of `swift`.
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

// Has the server carry out the request, and returns the answer.
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

// An answer that the client does not get, or gets later.
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

// Closes a connection without a goodbye of TLS, HTTP/2 or TCP.
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
