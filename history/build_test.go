package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
)

func readText(t *testing.T, text string) *history.History {
	t.Helper()
	h, err := foreign.ReadText(strings.NewReader(text), "text")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestBuildPairs(t *testing.T) {
	h := readText(t, `
		clients 3
		client 0 acquire orders 1.0-1.1 ok owner=a lease=5s token=7 valid=2s count=1
		client 1 acquire orders 1.05- info owner=b
		client 2 try orders 1.2-1.3 fail code=held
		client 0 renewed orders 2.0 valid=3s
		client 0 touch orders 2.1 ok token=7 read=4 found=4 seen=6
		client 0 crash 2.5
		nemesis kill 2.2 effect id=1 target=n1 detail="exited"
	`)
	s := time.Second
	want := &history.History{
		Spans: []history.Span{
			{Call: s, Return: 1100 * time.Millisecond, Valid: 3100 * time.Millisecond, Lease: 5 * s, Token: 7, Invoked: 0,
				Ended: 2, Count: 1, Permits: 1, Op: history.OpAcquire, Outcome: history.OK, Write: true},
			{Call: 1050 * time.Millisecond, Return: history.Infinity, Invoked: 1, Ended: -1, Process: 1, Owner: 1,
				Permits: 1, Op: history.OpAcquire, Outcome: history.Info, Write: true},
			{Call: 1200 * time.Millisecond, Return: 1300 * time.Millisecond, Invoked: 3, Ended: 4, Process: 2, Owner: 2,
				Permits: 1, Op: history.OpTry, Outcome: history.Fail, Write: true, Busy: true},
		},
		Notices: []history.Notice{
			{Time: 2 * s, Valid: 5 * s, Index: 5, F: "renewed"},
			{Time: 2500 * time.Millisecond, Index: 8, Key: 1, Owner: 3, F: "crash"},
		},
		Touches: []history.Touched{{TouchValue: history.TouchValue{Read: 4, Found: 4, MaxSeen: 6},
			Time: 2100 * time.Millisecond, Token: 7, Index: 6, Accepted: true}},
		Faults: []history.Fault{{
			FaultValue: history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "n1", Detail: "exited"}, Name: "kill", Time: 2200 * time.Millisecond, Index: 7}},
		Keys: []string{"orders", ""}, Owners: []string{"a", "b", "process 2", "process 0"},
		Clients: 3, End: 2500 * time.Millisecond, Events: 9,
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// TestBuildFaults: the later events of a fault have the class, the object and the verb of its injection.
func TestBuildFaults(t *testing.T) {
	h := readText(t, `
		nemesis kill 1 inject id=1 target=n1 class=kills object=process verb="was killed"
		nemesis kill 2 effect id=1 target=n1
		nemesis silent 3 note target=n1
		nemesis kill 4 heal id=1 target=n1
		nemesis kill 5 heal id=2 target=n2
	`)
	for i, known := range []bool{true, true, false, true, false} {
		f := h.Faults[i]
		if got := f.Class == history.FaultKills && f.Object == history.ObjectProcess && f.Verb == "was killed"; got != known {
			t.Errorf("event %d has class %q, object %q and verb %q", i, f.Class, f.Object, f.Verb)
		}
	}
}

// TestBuildLateNotices: a notice counts from when it was sent, and an undone grant and a reply that did not come in
// time are marked.
func TestBuildLateNotices(t *testing.T) {
	h := readText(t, `
		clients 3
		client 0 acquire orders 1.0-1.1 ok owner=a lease=5s
		client 1 acquire orders 1.0-2.5 fail owner=b undone code=too-few-replicas
		client 2 acquire orders 1.0-6.0 info owner=c code=client-timeout
		nemesis harness-stalled 6.5 note lasted=2s
		client 0 renewed orders 6.5 owner=a valid=1s age=2s
		client 0 lost orders 7.0 owner=a age=9s
	`)
	at := []time.Duration{h.Notices[0].Time, h.Notices[0].Valid, h.Notices[1].Time, h.Faults[0].Lasted}
	want := []time.Duration{4500 * time.Millisecond, 7500 * time.Millisecond, 0, 2 * time.Second}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	if !h.Spans[1].Undone || h.Spans[0].Undone || len(h.Unknown) != 1 || !h.Unknown[0].Timeout {
		t.Errorf("spans %+v, unknown %+v", h.Spans, h.Unknown)
	}
}

func TestBuildProblems(t *testing.T) {
	acquire := func(index, at int64, typ history.Type, p history.Process) history.Event {
		return history.Event{Index: index, Time: time.Duration(at), Type: typ, Process: p, F: history.Acquire, Key: "k"}
	}
	tests := []struct {
		name     string
		events   []history.Event
		problems []string // prefixes
		open     int      // spans of unknown outcome
	}{
		{"clean", []history.Event{acquire(0, 1, history.Invoke, 0), acquire(1, 2, history.OK, 0)}, nil, 0},
		{"completion alone", []history.Event{acquire(0, 1, history.OK, 0)},
			[]string{"process 0 completes acquire without an invocation"}, 0},
		{"two open", []history.Event{acquire(0, 1, history.Invoke, 0), acquire(1, 2, history.Invoke, 0)},
			[]string{"process 0 invokes acquire while its operation of event 0 has no completion"}, 2},
		{"time decreases", []history.Event{acquire(0, 5, history.Invoke, 0), acquire(1, 2, history.OK, 0)},
			[]string{"time decreases by 3 ns"}, 0},
		{"index twice", []history.Event{acquire(4, 1, history.Invoke, 0), acquire(4, 2, history.OK, 0)},
			[]string{"index 4 is not greater"}, 0},
		{"unknown phase", []history.Event{{Time: 1, Type: history.Info, Process: history.Nemesis, F: "kill",
			Value: &history.Value{Fault: &history.FaultValue{ID: 1, Phase: "injected"}}}},
			[]string{`fault kill has an unknown phase "injected"; read as a note`}, 0},
		{"no completion", []history.Event{acquire(0, 1, history.Invoke, 0)}, nil, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, err := history.Build(test.events)
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Problems) != len(test.problems) {
				t.Fatalf("problems: %v", h.Problems)
			}
			for i, p := range h.Problems {
				if !strings.HasPrefix(p.Text, test.problems[i]) {
					t.Errorf("problem %q, want %q", p.Text, test.problems[i])
				}
			}
			open := 0
			for _, s := range h.Spans {
				if s.Outcome == history.Info {
					open++
				}
				if s.Return < s.Call {
					t.Errorf("span ends before it starts: %+v", s)
				}
			}
			if open != test.open {
				t.Errorf("%d spans open, want %d", open, test.open)
			}
		})
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var events []history.Event
	for i := range 5000 {
		events = append(events, history.Event{Index: int64(i), Type: history.OK, F: history.Release})
	}
	h, err := history.Build(events)
	if err != nil || len(h.Problems) != 1 ||
		h.Problems[0].Text != "process 0 completes release without an invocation; ignored (and 4999 more like it)" {
		t.Errorf("err %v, problems %v", err, h.Problems)
	}
}

// TestDecreasingTimesAreCounted: a clock that often goes back is one line, with the most that it went back.
func TestDecreasingTimesAreCounted(t *testing.T) {
	var list []history.Event
	for i, at := range []time.Duration{50, 40, 60, 30, 70} {
		list = append(list, history.Event{Index: int64(i), Time: at, Type: history.Info, F: "x"})
	}
	h, err := history.Build(list)
	const want = "time decreases 2 times, by up to 30 ns; replaced by that of the previous event"
	if err != nil || len(h.Problems) != 1 || h.Problems[0].Text != want || h.Problems[0].Index != 1 {
		t.Errorf("err %v, problems %v", err, h.Problems)
	}
}

func TestTextErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"hello", "text:1: a line of the text format begins with client, nemesis, clients, probe, leftover, witness or " +
			`received, not "hello"`},
		{"\nclient x acquire k 1-2 ok", `text:2: expected a process number, got "x"`},
		{"client 1 acquire k one-2 ok", `text:1: expected a time in seconds, or with a unit, got "one"`},
		{"client 1 acquire k 2-1 ok", "text:1: 2-1: operation ends before it starts"},
		{"client 1 acquire k 1-2 perhaps", `text:1: type "perhaps": expected invoke, ok, fail or info`},
		{"client 1 acquire k 1-2 ok tokn=3", `text:1: unknown field "tokn"`},
		{`nemesis kill 1 effect detail="x`, "text:1: missing closing quotation mark"},
		{"nemesis kill 1 effect color=red", `text:1: unknown field "color" of a fault; it has id, target, detail, affects, class, object, verb and lasted`},
	}
	for _, test := range tests {
		_, err := foreign.ReadText(strings.NewReader(test.text), "text")
		if err == nil || err.Error() != test.want {
			t.Errorf("%q: got %v, want %s", test.text, err, test.want)
		}
	}
}

func TestClient(t *testing.T) {
	if got := history.Process(8).Client(5); got != 3 {
		t.Errorf("process 8 of 5 clients is client %d, want 3", got)
	}
	if got := history.Process(8).Client(0); got != 8 {
		t.Errorf("process 8 of an unknown number of clients is client %d, want 8", got)
	}
}
