package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// A request of OTLP in JSON, as far as partial reads it.
type logs struct {
	ResourceLogs []struct {
		Resource  json.RawMessage `json:"resource"`
		ScopeLogs []struct {
			Scope      json.RawMessage   `json:"scope"`
			LogRecords []json.RawMessage `json:"logRecords"`
		} `json:"scopeLogs"`
	} `json:"resourceLogs"`
}

const mostRejected = 3

// Passes a request on without the last record of each of its last resources, and answers as a receiver that rejected
// these: a partial success. The client must send JSON without compression.
func partial(e *exchange) {
	var request logs
	if err := json.NewDecoder(e.r.Body).Decode(&request); err != nil {
		http.Error(e.w, err.Error(), http.StatusBadRequest)
		return
	}
	rejected := 0
	for i := len(request.ResourceLogs) - 1; i >= 0 && rejected < mostRejected; i-- {
		scope := &request.ResourceLogs[i].ScopeLogs[0]
		scope.LogRecords = scope.LogRecords[:len(scope.LogRecords)-1]
		rejected++
	}
	body, err := json.Marshal(request)
	if err != nil {
		http.Error(e.w, err.Error(), http.StatusInternalServerError)
		return
	}
	e.r.Body, e.r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if answer := e.done(e.r.Context()); answer.code != http.StatusOK {
		answer.writeHead(e.w)
		return
	}
	e.w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(e.w, `{"partialSuccess":{"rejectedLogRecords":"%d","errorMessage":"these are too many"}}`, rejected)
}
