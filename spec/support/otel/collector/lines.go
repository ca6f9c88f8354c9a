package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
)

// The exporter "lines" appends what it gets to a file. Each request becomes a line
//
//	{"request": {"records": 512, "headers": {"x-tenant": ["blue"]}}}
//
// and, before it, each record a line of OTLP's JSON, with its resource and scope, as if it had come alone. All lines are
// in the file before the receiver answers the request.
type lines struct {
	config *linesConfig
	lock   sync.Mutex
	file   *os.File
}

type linesConfig struct {
	Path string `mapstructure:"path"`
	// The names of the headers to tell of; the receiver must have include_metadata.
	Headers []string `mapstructure:"headers"`
	// Only the lines of requests.
	RequestsOnly bool `mapstructure:"requests_only"`
}

func linesFactory() exporter.Factory {
	create := func(_ context.Context, _ exporter.Settings, config component.Config) (exporter.Logs, error) {
		return &lines{config: config.(*linesConfig)}, nil
	}
	return exporter.NewFactory(component.MustNewType("lines"), func() component.Config { return &linesConfig{} },
		exporter.WithLogs(create, component.StabilityLevelDevelopment))
}

func (l *lines) Start(context.Context, component.Host) (err error) {
	l.file, err = os.OpenFile(l.config.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return err
}

func (l *lines) Shutdown(context.Context) error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

func (*lines) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{}
}

// Writes all lines at once, so that those of a collector that is killed are whole.
func (l *lines) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	var text bytes.Buffer
	if !l.config.RequestsOnly {
		if err := addRecords(&text, logs); err != nil {
			return err
		}
	}
	headers := map[string][]string{}
	for _, name := range l.config.Headers {
		headers[name] = client.FromContext(ctx).Metadata.Get(name)
	}
	told, err := json.Marshal(headers)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "{\"request\":{\"records\":%d,\"headers\":%s}}\n", logs.LogRecordCount(), told)
	l.lock.Lock()
	defer l.lock.Unlock()
	_, err = l.file.Write(text.Bytes())
	return err
}

func addRecords(text *bytes.Buffer, logs plog.Logs) error {
	var marshaler plog.JSONMarshaler
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				alone := plog.NewLogs()
				to := alone.ResourceLogs().AppendEmpty()
				resource.Resource().CopyTo(to.Resource())
				to.SetSchemaUrl(resource.SchemaUrl())
				within := to.ScopeLogs().AppendEmpty()
				scope.Scope().CopyTo(within.Scope())
				within.SetSchemaUrl(scope.SchemaUrl())
				record.CopyTo(within.LogRecords().AppendEmpty())
				line, err := marshaler.MarshalLogs(alone)
				if err != nil {
					return err
				}
				text.Write(line)
				text.WriteByte('\n')
			}
		}
	}
	return nil
}
