package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
)

// readAll is every event of a text.
func readAll(t *testing.T, text string) []history.Event {
	t.Helper()
	var events []history.Event
	_, err := history.Scan(strings.NewReader(text), "text", func(e *history.Event, _ int) error {
		events = append(events, e.Clone())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// anyEvent draws an event that a recorder could write.
func anyEvent(r *rand.Rand, index int64) history.Event {
	names := []string{"", "orders", "a\"b", "ключ", "<&>", "tab\there", "plain-42"}
	name := func() string { return names[r.IntN(len(names))] }
	e := history.Event{
		Index: index, Time: time.Duration(r.Int64N(1e15)), Type: history.Type(1 + r.IntN(4)),
		Process: history.Process(r.IntN(5) - 1), F: "f" + name(), Key: name(),
	}
	if r.IntN(2) == 0 {
		e.Value = &history.Value{
			Owner: name(), Token: r.Uint64() >> r.IntN(64), Valid: time.Duration(r.Int64()) >> r.IntN(64), Count: r.IntN(3),
			Lease: time.Duration(r.IntN(2)), Wait: -time.Duration(r.IntN(2)), Work: time.Duration(r.IntN(2)),
			Close: time.Duration(r.IntN(2)),
			Mode:  name(), Permits: r.IntN(2), Age: time.Duration(r.IntN(2)), Undone: r.IntN(2) == 0,
		}
		if r.IntN(2) == 0 {
			e.Value.Touch = &history.TouchValue{Read: -r.Int64(), Found: r.Int64(), MaxSeen: r.Uint64(), Fenced: r.IntN(2) == 0}
		}
		if r.IntN(2) == 0 {
			e.Value.Fault = &history.FaultValue{ID: r.IntN(3), Phase: history.TookEffect, Target: name(), Detail: name(),
				Lasted: time.Duration(r.IntN(2)), Affects: name(), Class: name(), Object: name(), Verb: name()}
		}
	}
	if r.IntN(3) == 0 {
		e.Error = &history.Error{Code: name(), Text: name()}
	}
	return e
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var want []history.Event
	var ours, standard bytes.Buffer
	for i := range int64(2000) {
		e := anyEvent(r, i)
		want = append(want, e)
		ours.Write(append(e.AppendJSON(nil), '\n'))
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		standard.Write(append(line, '\n'))
	}
	if diff := cmp.Diff(want, readAll(t, ours.String())); diff != "" {
		t.Errorf("written by AppendJSON (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, readAll(t, standard.String())); diff != "" {
		t.Errorf("written by encoding/json (-want +got):\n%s", diff)
	}
}

func TestRecorderWritesTheDocumentedLine(t *testing.T) {
	var out bytes.Buffer
	r := history.NewRecorder(&out, func() time.Duration { return 3208502930 })
	inv := r.Invoke(3, history.Acquire, "orders", nil)
	r.Complete(inv, history.OK, &history.Value{Token: 42, Valid: 1950 * time.Millisecond, Count: 1}, nil)
	r.Complete(inv, history.Info, nil, &history.Error{Code: "timeout", Text: "no answer"})
	r.Note(history.Nemesis, "kill", "", &history.Value{Fault: &history.FaultValue{ID: 1, Phase: history.TookEffect}})
	want := `{"index":0,"time":3208502930,"type":"invoke","process":3,"f":"acquire","key":"orders"}
{"index":1,"time":3208502930,"type":"ok","process":3,"f":"acquire","key":"orders",` +
		`"value":{"token":42,"valid_ns":1950000000,"count":1}}
{"index":2,"time":3208502930,"type":"info","process":3,"f":"acquire","key":"orders","error":["timeout","no answer"]}
{"index":3,"time":3208502930,"type":"info","process":"nemesis","f":"kill","value":{"fault":{"id":1,"phase":"effect"}}}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestRecorderKeepsOrder(t *testing.T) {
	var out bytes.Buffer
	var seen []history.Event
	start := time.Now()
	r := history.NewRecorder(&out, func() time.Duration { return time.Since(start) })
	r.OnEvent = func(e history.Event) { seen = append(seen, e) }
	var wg sync.WaitGroup
	for p := range history.Process(8) {
		wg.Go(func() {
			for range 200 {
				inv := r.Invoke(p, history.Acquire, "k", nil)
				r.Complete(inv, history.OK, nil, nil)
			}
		})
	}
	wg.Wait()
	got := readAll(t, out.String())
	if diff := cmp.Diff(seen, got); diff != "" {
		t.Fatalf("what was seen and what was written differ (-seen +written):\n%s", diff)
	}
	h, err := history.Build(got)
	if err != nil || len(h.Problems) > 0 || len(h.Spans) != 1600 || len(seen) != 3200 {
		t.Fatalf("err %v, problems %v, %d spans, %d events", err, h.Problems, len(h.Spans), len(seen))
	}
}

// fullDisk takes some bytes and then no more.
type fullDisk struct {
	room int
	got  bytes.Buffer
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	d.got.Write(b[:n])
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func TestRecorderStopsAtFullDisk(t *testing.T) {
	disk := &fullDisk{room: 100}
	r := history.NewRecorder(disk, func() time.Duration { return 0 })
	seen := 0
	r.OnEvent = func(history.Event) { seen++ }
	for range 3 {
		r.Invoke(1, history.Acquire, "orders", nil)
		disk.room += 5 // room again does not help: the text after a torn line would be lost with it
	}
	if !errors.Is(r.Err(), errFull) || seen != 3 {
		t.Fatalf("err %v after %d events", r.Err(), seen)
	}
	h, err := history.ReadAll(strings.NewReader(disk.got.String()), "full")
	if err != nil || len(h.Spans) != 1 || len(h.Problems) != 1 || h.Problems[0].Line != 2 {
		t.Fatalf("err %v, history %+v", err, h)
	}
}
