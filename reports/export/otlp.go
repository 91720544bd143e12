package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// SpansPerRequest keeps a request far below 4 MiB, which a collector may have as its limit.
const SpansPerRequest = 2000

// The JSON encoding of an ExportTraceServiceRequest (OpenTelemetry Protocol 1.x, "JSON Protobuf Encoding"): ids in
// hexadecimal, 64-bit integers as strings.
type (
	OTLPRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []OTLPSpan `json:"spans"`
	}
	otlpScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	OTLPSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Events     []otlpEvent     `json:"events,omitempty"`
		Status     *otlpStatus     `json:"status,omitempty"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

const (
	otlpInternal = 1 // SPAN_KIND_INTERNAL
	otlpError    = 2 // STATUS_CODE_ERROR
)

// spans writes the spans of a run.
type spans struct {
	r     *evidence.Run
	w     *bufio.Writer
	epoch time.Time // of the history
	trace string
	count uint64 // of all spans so far; the last one's id
	batch []OTLPSpan
	err   error
}

// OTLP writes one request of OTLP/HTTP on each line: a span for the run, with its violations as events, and below
// it one for each operation, hold and fault.
func OTLP(r *evidence.Run, w io.Writer) error {
	id := sha256.Sum256([]byte(r.Title() + "\n" + r.Manifest.ID))
	s := &spans{r: r, w: bufio.NewWriter(w), trace: hex.EncodeToString(id[:16]), epoch: r.Manifest.Started}
	for _, phase := range r.Manifest.Phases {
		if phase.Name == "run" {
			s.epoch = s.epoch.Add(phase.Start)
		}
	}
	if r.Manifest.Started.IsZero() {
		s.epoch = time.Unix(0, 0)
	}
	s.run()
	s.operations()
	s.holds()
	s.faults()
	s.flush()
	if s.err != nil {
		return fmt.Errorf("writing the spans: %w", s.err)
	}
	return s.w.Flush()
}

func (s *spans) at(t time.Duration) string {
	return strconv.FormatInt(s.epoch.Add(t).UnixNano(), 10)
}

// add adds a span during w; the first one is the parent of all others.
func (s *spans) add(name string, w evidence.Interval, span OTLPSpan) {
	s.count++
	span.TraceID, span.SpanID, span.Kind = s.trace, fmt.Sprintf("%016x", s.count), otlpInternal
	if s.count > 1 {
		span.Parent = fmt.Sprintf("%016x", 1)
	}
	span.Name, span.Start, span.End = s.r.PlainText(name), s.at(w.From), s.at(max(w.From, w.Until))
	if s.batch = append(s.batch, span); len(s.batch) == SpansPerRequest {
		s.flush()
	}
}

// flush writes the request.
func (s *spans) flush() {
	if len(s.batch) == 0 || s.err != nil {
		return
	}
	m := &s.r.Manifest
	resource := otlpResource{Attributes: []otlpAttribute{otlpText("service.name", "lockchaos"),
		otlpText("service.version", m.Versions["chaos"]), otlpText("service.instance.id", m.ID)}}
	scope := otlpScopeSpans{Scope: otlpScope{Name: "github.com/lockchaos/lockchaos", Version: m.Versions["chaos"]},
		Spans: s.batch}
	s.err = json.NewEncoder(format.JSON(s.w)).Encode(OTLPRequest{ResourceSpans: []otlpResourceSpans{
		{Resource: resource, ScopeSpans: []otlpScopeSpans{scope}}}})
	s.batch = nil
}

func otlpText(key, value string) otlpAttribute {
	return otlpAttribute{key, map[string]any{"stringValue": value}}
}

func otlpNumber[N ~int | ~int32 | ~uint64](key string, value N) otlpAttribute {
	return otlpAttribute{key, map[string]any{"intValue": fmt.Sprint(value)}}
}

func (s *spans) run() {
	m, j := &s.r.Manifest, &s.r.Judgement
	span := OTLPSpan{Attributes: []otlpAttribute{
		otlpText("lockchaos.scenario", s.r.Title()), otlpText("lockchaos.lock", m.Lock),
		otlpText("lockchaos.backend", m.Backend), otlpText("lockchaos.topology", m.Topology.Kind),
		otlpText("lockchaos.seed", fmt.Sprint(m.Seed)), otlpText("lockchaos.verdict", string(j.Verdict)),
	}}
	if j.Verdict == checker.Unsafe {
		span.Status = &otlpStatus{otlpError, "unsafe"}
	}
	for res, v := range s.r.Violations() {
		if evidence.IsDrawn(res) {
			span.Events = append(span.Events, otlpEvent{s.at(v.Start), "violation", []otlpAttribute{
				otlpText("lockchaos.property", string(res.Property)), otlpText("lockchaos.key", s.r.PlainText(v.Key)),
				otlpText("lockchaos.text", s.r.PlainText(v.Text))}})
		}
	}
	s.add("run "+s.r.Title(), evidence.Interval{From: 0, Until: s.r.History.End}, span)
}

func (s *spans) operations() {
	h := s.r.History
	for x := range evidence.Each(h.Spans) {
		span := OTLPSpan{Attributes: []otlpAttribute{
			otlpNumber("lockchaos.client", x.Process.Client(h.Clients)), otlpText("lockchaos.key", s.r.KeyName(x.Key)),
			otlpText("lockchaos.outcome", x.Outcome.String()), otlpNumber("lockchaos.event", x.Invoked)}}
		if x.Token > 0 {
			span.Attributes = append(span.Attributes, otlpText("lockchaos.token", fmt.Sprint(x.Token)))
		}
		if x.Outcome == history.Info {
			span.Status = &otlpStatus{otlpError, "the outcome is unknown"}
		}
		s.add(evidence.OpName(x.Op)+" "+s.r.KeyName(x.Key), evidence.Interval{From: x.Call, Until: min(x.Return, h.End)},
			span)
	}
}

func (s *spans) holds() {
	for x := range evidence.Each(s.r.Holds) {
		s.add("hold "+s.r.KeyName(x.Key), evidence.Interval{From: x.From, Until: x.To}, OTLPSpan{Attributes: []otlpAttribute{
			otlpNumber("lockchaos.client", x.Client), otlpText("lockchaos.key", s.r.KeyName(x.Key)),
			otlpNumber("lockchaos.event", x.Granted)}})
	}
}

func (s *spans) faults() {
	for f := range evidence.Each(s.r.Faults) {
		span := OTLPSpan{Attributes: []otlpAttribute{otlpText("lockchaos.fault", f.Name),
			otlpText("lockchaos.target", f.Target), otlpText("lockchaos.detail", s.r.PlainText(f.Detail))}}
		for _, e := range f.Effects {
			span.Events = append(span.Events, otlpEvent{s.at(e.Time), "effect",
				[]otlpAttribute{otlpText("lockchaos.detail", s.r.PlainText(e.Detail))}})
		}
		during := evidence.Interval{From: f.Inject, Until: f.End(s.r.History.End)}
		s.add(strings.TrimSpace("fault "+f.Name+" "+evidence.TargetName(f.Target)), during, span)
	}
}
