package main

// Series: client-go's tools/events in a bubble of fake time, as series_runner.c runs a series sink of evrec's. A bubble's
// time begins at 2000-01-01T00:00:00Z; both loops of client-go's broadcaster begin then.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

const (
	finishTime  = 6 * time.Minute
	refreshTime = 30 * time.Minute // a multiple of finishTime
)

// A line of a trace of series: options, which begin a new trace, if ID is 0; else a step.
type seriesLine struct {
	MaxSeries int `json:"max_series"`

	ID     int          `json:"id"`
	T      int64        `json:"t,string"`
	Event  *seriesEvent `json:"event"`
	Forget int          `json:"forget"`
	Flush  bool         `json:"flush"`
	Reject *bool        `json:"reject"`
}

// seriesEvent is an event as a trace records it.
type seriesEvent struct {
	Type       string              `json:"type"`
	Reason     string              `json:"reason"`
	Action     string              `json:"action"`
	Note       string              `json:"note"`
	Controller string              `json:"reportingController"`
	Instance   string              `json:"reportingInstance"`
	Regarding  v1.ObjectReference  `json:"regarding"`
	Related    *v1.ObjectReference `json:"related"`
}

type seriesAnswer struct {
	Requests []*request `json:"requests,omitempty"`
	Cases    []string   `json:"cases,omitempty"`
}

// The state of the trace that is being run.
type seriesOracle struct {
	options     *seriesLine
	start       time.Time
	cancel      func()
	broadcaster events.EventBroadcaster
	recorders   map[[2]string]events.EventRecorder
	cache       seriesCache
	server      *server
}

// Runs the traces on standard input. A bubble needs a test.
func seriesMain() {
	klog.SetLogger(logr.Discard()) // client-go logs rejected creates
	stdout := os.Stdout
	os.Stdout = os.Stderr // on which the test reports
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "series", F: func(t *testing.T) {
		out := bufio.NewWriterSize(stdout, 1<<20)
		runTraces(t, bufio.NewReaderSize(os.Stdin, 1<<20), out)
		if err := out.Flush(); err != nil {
			log.Fatal(err)
		}
	}}}, nil, nil)
}

func runTraces(t *testing.T, in *bufio.Reader, out io.Writer) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var trace []*seriesLine
	end := func() {
		if len(trace) == 0 {
			return
		}
		synctest.Test(t, func(*testing.T) {
			o := newSeriesOracle(trace[0])
			for i, l := range trace {
				var answer any = struct{}{}
				if i > 0 {
					answer = o.step(l)
				}
				if err := encoder.Encode(answer); err != nil {
					log.Fatal(err)
				}
			}
			o.end()
		})
		trace = nil
	}
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		var l seriesLine
		if err := json.Unmarshal(text, &l); err != nil {
			log.Fatal(err)
		}
		if l.ID == 0 {
			end()
		}
		trace = append(trace, &l)
	}
	end()
}

func newSeriesOracle(options *seriesLine) *seriesOracle {
	o := &seriesOracle{
		options:   options,
		start:     time.Now(),
		recorders: map[[2]string]events.EventRecorder{},
	}
	o.server = newServer(o.start)
	o.broadcaster = events.NewBroadcaster(o.server)
	o.cache = seriesCacheOf(o.broadcaster)
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	if err := o.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		log.Fatal(err)
	}
	synctest.Wait()
	return o
}

func (o *seriesOracle) end() {
	o.cancel()
	synctest.Wait()
	o.broadcaster.Shutdown()
}

func (o *seriesOracle) step(l *seriesLine) any {
	o.server.begin(l.ID)
	o.advance(o.start.Add(time.Duration(l.T)))
	switch {
	case l.Event != nil:
		o.record(l.Event)
	case l.Forget != 0:
		o.server.forget(l.Forget)
	case l.Reject != nil:
		o.server.rejects = *l.Reject
	case l.Flush:
		o.flush()
	}
	o.server.settle(o.cache)
	return seriesAnswer{o.server.sorted(), o.server.cases}
}

// Advances the clock to t. The loops of the broadcaster run at every tick on the way, and before what happens at t.
func (o *seriesOracle) advance(t time.Time) {
	for now := time.Now(); now.Before(t); now = time.Now() {
		next := now.Add(finishTime - now.Sub(o.start)%finishTime)
		if next.After(t) {
			next = t
		}
		if next.Sub(o.start)%finishTime == 0 {
			o.beforeTick(next)
		}
		time.Sleep(next.Sub(now))
		synctest.Wait()
		o.server.settle(o.cache)
	}
}

// Names the cases of a tick.
func (o *seriesOracle) beforeTick(tick time.Time) {
	s := o.server
	heartbeat := tick.Sub(o.start)%refreshTime == 0
	for _, event := range o.cache.all() {
		gone, news := tick.Sub(lastSeen(event)), event.Series != nil && s.hasNews(event)
		over := gone > finishTime
		s.when(gone == finishTime, "at_finish_time")
		s.when(gone == finishTime+1, "just_past_finish_time")
		s.when(over && event.Series == nil, "single_forgotten")
		s.when(over && news, "finished_with_news")
		s.when(over && news && heartbeat, "finished_at_heartbeat")
		s.when(over && event.Series != nil && !news, "finished_without_news")
		s.when(!over && heartbeat && news, "heartbeat")
		s.when(!over && heartbeat && event.Series != nil && !news, "no_news")
	}
}

func (o *seriesOracle) record(e *seriesEvent) {
	e.likeEvrec()
	o.evict(e)
	o.server.noted(e)
	o.server.recording = true
	var related runtime.Object // an interface that holds a nil pointer is a related object
	if e.Related != nil {
		related = e.Related
	}
	o.recorder(e).Eventf(&e.Regarding, related, e.Type, e.Reason, e.Action, "%s", e.Note)
	synctest.Wait()
	o.createAgain(e)
	o.server.recording = false
}

func (o *seriesOracle) recorder(e *seriesEvent) events.EventRecorder {
	source := [2]string{e.Controller, e.Instance}
	r, ok := o.recorders[source]
	if !ok {
		r = o.broadcaster.NewRecorder(runtime.NewScheme(), e.Controller)
		setInstance(r, e.Instance)
		o.recorders[source] = r
	}
	return r
}
