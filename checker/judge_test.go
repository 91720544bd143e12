package checker

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/exclusion"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

func read(t *testing.T, text string) *history.History {
	t.Helper()
	h, err := foreign.ReadText(strings.NewReader(text), "text")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// paused is a run in which only exclusion is violated, by a client that outlived its lease.
const paused = `
	clients 2
	client 0 acquire <b>orders 1.0-1.1 ok owner=a token=1 valid=1s
	client 1 acquire <b>orders 1.5-2.5 ok owner=b token=2 valid=1s
	client 0 release <b>orders 3.0-3.1 fail owner=a
	client 1 release <b>orders 3.2-3.3 ok owner=b
	nemesis pause 1.2 inject id=1 target=client:0 detail="<script>alert(1)</script>"
	nemesis pause 1.2 effect id=1
	nemesis pause 2.9 heal id=1`

// TestHonestyOfATruncatedHistory: a history that ends within the only promise has no answer that could be wrong, and
// nobody can say that a client relied on the lock after its last event.
func TestHonestyOfATruncatedHistory(t *testing.T) {
	granted := "client 0 acquire k 0.1-0.2 ok owner=a valid=5s\nclient 1 try k 0.3-"
	for end, want := range map[string]property.Outcome{
		"1 fail owner=b": property.NotApplicable, "5.5 fail owner=b": property.Holds, "9 fail owner=b": property.Holds,
		"9 fail owner=b\nclient 0 work k 0.4-8.9 ok owner=a": property.Violated,
	} {
		j := Judge(read(t, granted+end), property.Options{})
		if r := j.Result(property.Honesty); r.Outcome != want {
			t.Errorf("the history ends at %s: %s (%s), want %s", end, r.Outcome, r.Summary, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	easy := property.Options{MinContendedGrants: -1, MinFaultsWhileHeld: -1}
	with := func(change func(*property.Options)) property.Options {
		o := easy
		change(&o)
		return o
	}
	only := func(ps ...property.Name) property.Options { return with(func(o *property.Options) { o.Only = ps }) }
	require := func(ps ...property.Name) property.Options { return with(func(o *property.Options) { o.Require = ps }) }
	slack := func(ms time.Duration) property.Options {
		return with(func(o *property.Options) { o.ClockError = ms * time.Millisecond })
	}
	twice := "client 0 acquire k 1-3 ok owner=a\nclient 1 acquire k 2-4 ok owner=a\n"
	clean := "client 0 acquire k 1-2 ok\nclient 0 release k 3-4 ok\n"
	tests := []struct {
		name, text string
		o          property.Options
		want       Verdict
		class      property.Class
	}{
		{"everything is required", paused, easy, Unsafe, property.OutlivedLease},
		{"only what held is required", paused, require(property.LeaseExclusion, property.Fencing), Safe, ""},
		{"only what held is judged", paused, only(property.LeaseExclusion), Safe, ""},
		{"violated beats undecided", paused, property.Options{MinContendedGrants: 99}, Unsafe, property.OutlivedLease},
		{"too little contention", paused, property.Options{MinContendedGrants: 99,
			Require: []property.Name{property.LeaseExclusion}},
			Inconclusive, ""},
		{"clock error as long as the overlap", paused, slack(500), Safe, ""},
		{"clock error a little shorter", paused, slack(499), Unsafe, property.OutlivedLease},
		{"clean", clean, easy, Safe, ""},
		{"by the sweep alone", clean, with(func(o *property.Options) { o.Search = -1 }), Safe, ""},
		{"required but not applicable", clean, require(property.Fencing), Inconclusive, ""},
		{"no operations", "client 0 lost k 1", easy, Inconclusive, ""},
		{"no time to search", clean, with(func(o *property.Options) { o.Search = 1 }), Inconclusive, ""},
		{"two operations at once", twice, easy, Inconclusive, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := Judge(read(t, test.text), test.o)
			if j.Verdict != test.want || j.Class != test.class || j.Sentence == "" {
				t.Errorf("got %s (%q), want %s (%q): %s", j.Verdict, j.Class, test.want, test.class, j.Sentence)
			}
		})
	}
}

func TestJudgeNeverPanics(t *testing.T) {
	broken := &history.History{Spans: []history.Span{
		{Op: history.OpAcquire, Outcome: history.OK, Key: 5, Owner: 9, Ended: 1}, {Op: history.OpRelease, Owner: -1},
	}}
	j := Judge(broken, property.Options{})
	if j.Verdict != Inconclusive || len(j.Results) != len(Catalog()) || !strings.Contains(j.Sentence, "defect") {
		t.Errorf("got %s: %s", j.Verdict, j.Sentence)
	}
	for _, r := range j.Results {
		if r.Outcome != property.Undecided {
			t.Errorf("%s: %s %s", r.Property, r.Outcome, r.Summary)
		}
	}
	panics := Spec{Name: property.Order, check: func(*bounds.View, given.Options) property.Result { panic("a defect") }}
	if r := panics.safely(nil, given.Options{}); r.Outcome != property.Undecided {
		t.Errorf("a checker that panics: %s %s", r.Outcome, r.Summary)
	}
}

func TestCatalog(t *testing.T) {
	for _, s := range Catalog() {
		if got, ok := Find(s.Name); !ok || got.Doc == "" || got.Source == "" || got.check == nil {
			t.Errorf("incomplete row %+v", s)
		}
	}
	if _, ok := Find("nonsense"); ok {
		t.Error("a property called nonsense was found")
	}
}

func TestManyViolationsAreBounded(t *testing.T) {
	race.Skip(t)
	var events []history.Event
	for i := range history.Process(3000) { // no client ever releases: 4.5 million pairs
		for n, typ := range []history.Type{history.Invoke, history.OK} {
			events = append(events, history.Event{Index: int64(2*int(i) + n), Time: time.Duration(2*int(i) + n),
				Type: typ, Process: i, F: history.Acquire, Key: "k"})
		}
	}
	h, err := history.Build(events)
	if err != nil {
		t.Fatal(err)
	}
	r := Judge(h, property.Options{Keep: 7}).Result(property.Exclusion)
	if r.Outcome != property.Violated || len(r.Violations) != 7 || r.Total < exclusion.MaxPairs ||
		!strings.Contains(r.Summary, "at least") {
		t.Errorf("%s, %d of %d kept: %s", r.Outcome, len(r.Violations), r.Total, r.Summary)
	}
	if v := r.Violations[0]; v.Start != 3 {
		t.Errorf("the worst is %+v, want the earliest and longest", v)
	}
}

// TestLongKey: a key that is too long for the search is swept, and the search of its windows has the same result.
func TestLongKey(t *testing.T) {
	for _, illegal := range []bool{false, true} {
		events := longHistory(20000, 10, 1, 5)
		if illegal {
			delayRelease(t, events)
		}
		h, err := history.Build(events)
		if err != nil {
			t.Fatal(err)
		}
		r := Judge(h, property.Options{}).Result(property.Linearizable)
		want := map[bool]property.Outcome{false: property.Holds, true: property.Violated}[illegal]
		if r.Outcome != want || r.Counts["swept_keys"] != 1 || (r.Counts["searched_windows"] > 0) != illegal {
			t.Errorf("illegal %v: %s %v: %s", illegal, r.Outcome, r.Counts, r.Summary)
		}
	}
}

// delayRelease makes two holds overlap: a release in the middle moves behind the next grant.
func delayRelease(t *testing.T, events []history.Event) {
	t.Helper()
	for i := len(events) / 2; i < len(events); i++ {
		if events[i].F != history.Release || events[i].Type != history.Invoke {
			continue
		}
		p := events[i].Process
		for j := i + 1; j < len(events); j++ { // to just before its completion, which moves behind the next grant
			if events[j].F == history.Acquire && events[j].Type == history.OK && events[j].Process != p {
				moveAfter(events, i, j)
				return
			}
		}
	}
	t.Fatal("no release was found")
}

// moveAfter moves the events of i's process in (i, j] and i itself behind j.
func moveAfter(events []history.Event, i, j int) {
	p, end := events[i].Process, events[j].Time
	var rest, moved []history.Event
	for _, e := range events[i : j+1] {
		if e.Process == p {
			e.Time = end + 1
			moved = append(moved, e)
		} else {
			rest = append(rest, e)
		}
	}
	for n, e := range append(rest, moved...) {
		e.Index = int64(i + n)
		events[i+n] = e
	}
	for n := j + 1; n < len(events) && events[n].Time < end+1; n++ {
		events[n].Time = end + 1
	}
}

func TestWriteLinearization(t *testing.T) {
	h := read(t, paused)
	var page, again bytes.Buffer
	if err := WriteLinearization(&page, h, Judge(h, property.Options{})); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, want := range []string{"acquire (a) token 1", "hold lost (a)", "pause inject", "<html"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if strings.Contains(text, "<script>alert") || strings.Contains(text, `\u003cscript\u003e`) {
		t.Error("the detail of a fault reaches the page as HTML")
	}
	if err := WriteLinearization(&again, h, Judge(h, property.Options{})); err != nil ||
		!cmp.Equal(again.Len(), page.Len()) {
		t.Errorf("the same history gives another page: %v", err)
	}
	if err := WriteLinearization(&again, &history.History{}, Judgement{}); !errors.Is(err, ErrNothingToShow) {
		t.Errorf("no operations: %v", err)
	}
	long, err := history.Build(longHistory(20000, 10, 2, 5))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	if err := WriteLinearization(&small, long, Judge(long, property.Options{})); err != nil || small.Len() > 1<<20 {
		t.Errorf("a window of a long history has %d bytes: %v", small.Len(), err)
	}
}

// TestRowsOfLinearization: events other than operations, such as a loss, have no client's row, not even the row of a
// client without an operation.
func TestRowsOfLinearization(t *testing.T) {
	h := read(t, strings.Replace(paused, "clients 2", "clients 4", 1))
	var page bytes.Buffer
	if err := WriteLinearization(&page, h, Judge(h, property.Options{})); err != nil {
		t.Fatal(err)
	}
	lost := regexp.MustCompile(`"ClientId":(\d+)[^}]*"Description":"hold lost`).FindStringSubmatch(page.String())
	if lost == nil || lost[1] != "4" {
		t.Errorf("the loss has the row %v, want 4", lost)
	}
}
