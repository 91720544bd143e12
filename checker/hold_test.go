package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/liveholds"
	"github.com/lockchaos/lockchaos/internal/search"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// foldedHold is a hold as both folds find it.
type foldedHold struct {
	Key, Owner     string
	Client         int
	Reader         bool
	Granted, Ended int64
	Valid          time.Duration
}

// liveFold feeds events to liveholds, and records which holds are there after each.
func liveFold(events []history.Event, clients int) []foldedHold {
	l := liveholds.New(clients)
	var all []foldedHold
	type id struct {
		key     string
		granted int64
	}
	open := make(map[id]int)
	for i := range events {
		e := &events[i]
		l.Add(e)
		there := make(map[id]bool)
		for _, key := range l.Keys() {
			for _, h := range l.Of(key) {
				at := id{key, h.Granted}
				there[at] = true
				if _, known := open[at]; !known {
					open[at] = len(all)
					all = append(all, foldedHold{Key: key, Owner: h.Owner, Client: h.Client, Reader: h.Reader,
						Granted: h.Granted, Ended: -1})
				}
				all[open[at]].Valid = h.Valid
			}
		}
		for at, n := range open {
			if !there[at] && all[n].Ended < 0 {
				all[n].Ended = e.Index
			}
		}
	}
	return all
}

// compareFolds compares the holds that both folds find in the same events. It returns the number of operations.
func compareFolds(t *testing.T, name string, events []history.Event) int {
	t.Helper()
	h, err := history.Build(events)
	if err != nil {
		t.Fatal(err)
	}
	live := make(map[string]foldedHold)
	for _, f := range liveFold(events, h.Clients) {
		live[fmt.Sprint(f.Key, f.Owner, f.Granted)] = f
	}
	clients := make(map[int32]map[int]bool) // of an owner; when one of several crashes, see liveholds.Holds
	for i := range h.Spans {
		s := &h.Spans[i]
		if clients[s.Owner] == nil {
			clients[s.Owner] = make(map[int]bool)
		}
		clients[s.Owner][s.Process.Client(h.Clients)] = true
	}
	crash := slices.ContainsFunc(h.Notices, func(n history.Notice) bool { return n.F == history.Crash })
	for _, b := range FindHolds(h, property.Options{}) {
		want := foldedHold{Key: h.Keys[b.Key], Owner: h.Owners[b.Owner], Client: b.Client, Reader: b.Reader,
			Granted: int64(b.Granted), Ended: int64(b.Ended), Valid: b.Promises[len(b.Promises)-1].Until}
		at := fmt.Sprint(want.Key, want.Owner, want.Granted)
		got := live[at]
		delete(live, at)
		if b.Uncertain || crash && len(clients[b.Owner]) > 1 {
			continue
		}
		if b.End == property.ReleaseRefused { // the live fold ends the hold with the reply, or before
			n := slices.IndexFunc(h.Spans, func(s history.Span) bool { return s.Invoked == b.Ended })
			if reply := int64(h.Spans[n].Ended); want.Ended <= got.Ended && got.Ended <= reply {
				want.Ended = got.Ended
			}
		}
		if b.Lease == property.LeaseFromGrant || b.Lease == property.LeaseFromServer { // the live fold does not correct it
			want.Valid = got.Valid
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the fold of the whole history and the live one differ (-whole +live): %s\n%s", name, diff,
				jsonLines(events))
			return 0
		}
	}
	forced := slices.ContainsFunc(h.Spans, func(s history.Span) bool { // the live fold takes it to have ended the hold
		return s.Op == history.OpForceRelease && s.Outcome == history.Info
	})
	for _, f := range live {
		if forced {
			break
		}
		if of, _ := ledger.Orders(h); of[slices.Index(h.Owners, f.Owner)] != ledger.OrdUnknown {
			t.Errorf("%s: only the live fold has %+v\n%s", name, f, jsonLines(events))
		}
	}
	return len(h.Spans)
}

// TestBothFoldsFindTheSameHolds feeds the histories of testdata, and random ones of every kind of lock, to both
// folds.
func TestBothFoldsFindTheSameHolds(t *testing.T) {
	race.Skip(t)
	EachOfTestdata(t, func(file, text string) {
		events, _, err := foreign.ReadTextEvents(strings.NewReader(text), file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, " lapsed\n") { // only a later refusal shows that the lease had ended
			compareFolds(t, file, events)
		}
	})
	for seed := range uint64(random(20_000)) {
		if compareFolds(t, fmt.Sprint("seed ", seed), randomEvents(seed)); t.Failed() {
			return
		}
	}
	for kind := search.PlainMutex; kind < search.Unmodelled; kind++ {
		d, some := newSketcher(kind), 0
		for seed := range uint64(random(3000)) {
			h := d.draw(seed)
			if h.Limits = nil; kind == search.Semaphore {
				h.Limits = []int32{d.permits}
			}
			if some += compareFolds(t, fmt.Sprintf("%s, seed %d", kind, seed), eventsOf(h)); t.Failed() {
				return
			}
		}
		if some < 3000 {
			t.Errorf("%s: %d operations in all: the test shows too little", kind, some)
		}
	}
}

// randomEvents are random operations of clients, including all that end a hold or extend its promise.
func randomEvents(seed uint64) []history.Event {
	r := rand.New(rand.NewPCG(seed, 10))
	permits, modes := seed%3 == 0, seed%3 == 1 // liveholds does not support both modes and failed releases together
	fs := []string{history.Acquire, history.Acquire, history.Try, history.Release, history.Release, history.Renew}
	var events []history.Event
	add := func(e history.Event) {
		e.Index, e.Time = int64(len(events)), time.Duration(len(events))
		events = append(events, e)
	}
	open := make(map[history.Process]history.Event)
	for range 40 {
		p := history.Process(r.IntN(3))
		v := history.Value{Owner: fmt.Sprint("o", p, r.IntN(8)/7)}
		if modes && r.IntN(2) == 0 {
			v.Mode = "read"
		}
		if permits {
			v.Permits, v.Limit = 1+r.IntN(3), 5
		}
		e, busy := open[p]
		switch delete(open, p); {
		case !busy && r.IntN(8) == 0:
			f := []string{history.Lost, history.Renewed, history.Renewed, history.Crash}[r.IntN(4)]
			add(history.Event{Type: history.Info, Process: p, F: f, Key: "k",
				Value: &history.Value{Owner: v.Owner, Valid: time.Duration(r.IntN(9)), Count: r.IntN(3),
					Mode: v.Mode, Age: time.Duration(r.IntN(9))}})
		case !busy:
			e = history.Event{Type: history.Invoke, Process: p, F: fs[r.IntN(len(fs))], Key: "k", Value: &v}
			add(e)
			open[p] = e
		default:
			e.Type = []history.Type{history.OK, history.OK, history.OK, history.Fail, history.Info}[r.IntN(5)]
			e.Held = e.Type == history.Fail && !modes && !permits && r.IntN(2) == 0
			e.Value = &history.Value{Valid: time.Duration(r.IntN(9))}
			add(e)
		}
	}
	return events
}

// holdsIn are the holds of a history in text form.
func holdsIn(t *testing.T, text string) []Hold {
	t.Helper()
	h, err := foreign.ReadText(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return FindHolds(h, property.Options{})
}

// TestRefusedRenewalEndsTheHold: the owner learns from the refusal that it no longer holds the lock.
func TestRefusedRenewalEndsTheHold(t *testing.T) {
	holds := holdsIn(t, "client 0 acquire k 1.0-1.1 ok owner=a\n"+
		"client 0 renew k 2.0-2.1 fail owner=a\n"+
		"client 1 acquire k 3.0-3.1 ok owner=b\n")
	if len(holds) != 2 || holds[0].End != property.RenewalRefused || holds[0].Until != 2100*time.Millisecond {
		t.Errorf("%+v", holds)
	}
}

// TestRefusedInnerReleaseEndsTheHold: the servers no longer know the hold, so that no level of it is left.
func TestRefusedInnerReleaseEndsTheHold(t *testing.T) {
	holds := holdsIn(t, "client 0 acquire k 1.0-1.1 ok owner=a\n"+
		"client 0 acquire k 1.2-1.3 ok owner=a\n"+
		"client 0 release k 2.0-2.1 fail owner=a\n")
	if len(holds) != 1 || holds[0].End != property.ReleaseRefused || holds[0].Until != 2*time.Second {
		t.Errorf("%+v", holds)
	}
}

// TestAcquireAfterRefusedRelease: a release fails and leaves the lock held, its owner acquires the lock again and then
// crashes. That ends both levels, and is legal for a reentrant lock.
func TestAcquireAfterRefusedRelease(t *testing.T) {
	h := read(t, "clients 2\nclient 0 acquire k 1.0-1.1 ok owner=a\nclient 0 release k 1.2-1.3 fail owner=a\n"+
		"client 0 acquire k 1.4-1.5 ok owner=a\nclient 0 crash k 2.0\nclient 1 acquire k 2.5-2.6 ok owner=b\n")
	h.Spans[1].Held = true
	j := Judge(h, property.Options{})
	if r := j.Result(property.Linearizable); r.Outcome != property.Holds {
		t.Errorf("%s: %s", r.Outcome, r.Summary)
	}
	for _, hold := range FindHolds(h, property.Options{})[:2] {
		want, until := property.ReleaseRefused, 1200*time.Millisecond
		if hold.From > until {
			want, until = property.Crashed, 2*time.Second
		}
		if hold.End != want || hold.Until != until {
			t.Errorf("hold from %v: %s at %v, want %s at %v", hold.From, hold.End, hold.Until, want, until)
		}
	}
}

// TestHoldsOfAQuorumAsJudged: a forced release of a quorum, whose outcome is unknown, leaves the same holds uncertain
// in the report as in the verdict.
func TestHoldsOfAQuorumAsJudged(t *testing.T) {
	h := read(t, "clients 3\nclient 0 acquire k 1.0-1.1 ok owner=a lease=9s valid=9.9s\n"+
		"client 0 force-release k 1.4-3.0 info\nclient 2 acquire k 1.5-2.0 ok owner=c lease=9s valid=10.5s\n")
	for mayBeDown, want := range []bool{false, true} {
		j := Judge(h, property.Options{MayBeDown: mayBeDown})
		if r := j.Result(property.Exclusion); (r.Outcome == property.Undecided) != want {
			t.Errorf("%d may be down: exclusion %s", mayBeDown, r.Outcome)
		}
		uncertain := slices.ContainsFunc(FindHolds(h, j.HoldOptions()), func(h Hold) bool { return h.Uncertain })
		if uncertain != want {
			t.Errorf("%d may be down: uncertain holds: %v, want %v", mayBeDown, uncertain, want)
		}
	}
}
