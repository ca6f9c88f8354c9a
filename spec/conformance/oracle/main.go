// The oracle runs traces through client-go's event correlator, as trace_runner.c runs them through evrec's. It reads
// traces on standard input and writes one line for every line that it reads. README.md defines the format of both. If
// evrec differs from client-go on purpose, differences.go makes the oracle answer as evrec does.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	v1 "k8s.io/api/core/v1"
)

// A line of a trace: options, which begin a new trace, if ID is 0; else a step.
type line struct {
	LRUCacheSize         int     `json:"lru_cache_size"`
	BurstSize            int     `json:"burst_size"`
	QPS                  float64 `json:"qps"`
	MaxEvents            int     `json:"max_events"`
	MaxIntervalInSeconds int     `json:"max_interval_in_seconds"`
	KeyFunc              bool    `json:"key_func"`
	MessageFunc          bool    `json:"message_func"`
	SpamKeyFunc          bool    `json:"spam_key_func"`

	ID              int       `json:"id"`
	T               int64     `json:"t,string"`
	Event           *v1.Event `json:"event"`
	Update          *v1.Event `json:"update"`
	Answer          int       `json:"answer"`
	Name            string    `json:"name"`
	ResourceVersion string    `json:"resourceVersion"`
	Handle          bool      `json:"handle"`
}

// The answer to an event. A skipped event has no fields after FirstTimestamp but Cases.
type eventAnswer struct {
	Skip            bool            `json:"skip"`
	Why             string          `json:"why"`
	Name            string          `json:"name"`
	Count           int32           `json:"count"`
	ResourceVersion string          `json:"resourceVersion"`
	FirstTimestamp  *string         `json:"firstTimestamp"`
	LastTimestamp   **string        `json:"lastTimestamp,omitempty"`
	Message         *string         `json:"message,omitempty"`
	Patch           json.RawMessage `json:"patch,omitempty"`
	Kept            []string        `json:"kept,omitempty"`
	Cases           []string        `json:"cases,omitempty"`
}

// The answer to a step that is a server's answer or an update.
type updateAnswer struct {
	Cases []string `json:"cases,omitempty"`
}

// The answer that ends the comparison of a trace: two of client-go's joined keys are equal.
type collision struct {
	Collision bool `json:"collision"`
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("oracle: ")
	if len(os.Args) == 2 && os.Args[1] == "series" {
		seriesMain()
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var o *oracle
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			log.Fatal(err)
		}
		var answer any = struct{}{}
		if l.ID == 0 {
			o = newOracle(&l)
		} else {
			answer = o.step(&l)
		}
		if err := encoder.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}
