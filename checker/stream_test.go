package checker

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/search"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// streamed judges events as a stream that trims after every so many, and says why the verdict may not be the whole
// history's.
func streamed(t *testing.T, events []history.Event, o property.Options, every int) (j Judgement, unsure string) {
	t.Helper()
	s := NewStream(o, 0)
	for i := range events {
		if err := s.Add(&events[i], 0); err != nil {
			t.Fatal(err)
		}
		if i%every == every-1 {
			s.look(false)
			s.trim()
		}
	}
	j = s.Judgement()
	return j, s.Unsure(j)
}

// differs returns how a stream's judgement differs from the whole history's; vague says that the stream left properties
// undecided that the other decides.
func differs(whole, stream Judgement) (diff string, vague bool) {
	for _, r := range stream.Results {
		if r.Property == property.Exercised {
			continue
		}
		switch w := whole.Result(r.Property); {
		case w.Outcome == r.Outcome && (r.Property != property.Exclusion || w.Total == r.Total):
		case r.Outcome == property.Undecided && (w.Outcome != property.Violated || r.Property == property.Permits):
			vague = true
		default:
			return fmt.Sprintf("%s is %s (%d: %s), and of the whole %s (%d: %s)", r.Property, r.Outcome, r.Total, r.Summary,
				w.Outcome, w.Total, w.Summary), vague
		}
	}
	return "", vague
}

// TestStreamOfTestdata compares every history of testdata, trimming after each event.
func TestStreamOfTestdata(t *testing.T) {
	EachOfTestdata(t, func(file, text string) {
		var o property.Options
		if _, options, is := strings.Cut("\n"+text, "\n#! "); is {
			options, _, _ = strings.Cut(options, "\n")
			delay, known := strings.CutPrefix(options, "report-delay=")
			var err error
			if o.ReportDelay, err = time.ParseDuration(delay); !known || err != nil {
				return // other options of TestHistoriesOfTestdata; of a stream only permits matter, see below
			}
		}
		if strings.Contains(text, " lapsed\n") {
			return // a stream has judged the hold before: it leaves its owner undecided
		}
		events, _, err := foreign.ReadTextEvents(strings.NewReader(text), file)
		if err != nil {
			t.Fatal(err)
		}
		compareStream(t, file, events, o, 1)
		compareStream(t, file, events, o, 3)
	})
}

// compared are the judgement of a whole history, and how its stream differs.
type compared struct {
	whole Judgement
	vague bool // see differs
	sure  bool // the stream has the verdict of the whole
}

func compareStream(t *testing.T, name string, events []history.Event, o property.Options, every int) (c compared) {
	t.Helper()
	o.Search, o.Only = -1, Streamed()
	h, err := history.Build(events)
	if err != nil {
		t.Fatal(err)
	}
	c.whole = Judge(h, o)
	j, unsure := streamed(t, events, o, every)
	diff, vague := differs(c.whole, j)
	c.vague, c.sure = vague, unsure == ""
	if c.sure && j.Verdict != c.whole.Verdict {
		diff = fmt.Sprintf("it is sure of %s: %s, and the whole is %s: %s", j.Verdict, j.Sentence, c.whole.Verdict,
			c.whole.Sentence)
	}
	contended := func(j Judgement) int64 { return j.Result(property.Exercised).Counts["contended_grants"] }
	if c.sure && j.Verdict == Safe && contended(j) > contended(c.whole) {
		diff = fmt.Sprintf("it counts %d contended grants, the whole %d", contended(j), contended(c.whole))
	}
	if diff != "" {
		t.Errorf("%s, forgetting after every %d: %s\n%s", name, every, diff, jsonLines(events))
	}
	return c
}

// jsonLines is events as JSON lines.
func jsonLines(events []history.Event) string {
	var b []byte
	for i := range events {
		b = append(events[i].AppendJSON(b), '\n')
	}
	return string(b)
}

// TestStreamOfRandom compares random histories of every kind of lock.
func TestStreamOfRandom(t *testing.T) {
	race.Skip(t)
	seeds := uint64(1500)
	if race.Short() {
		seeds = 600
	}
	convicted, acquitted, vague := make(map[property.Name]int), make(map[property.Name]int), 0
	sure := make(map[Verdict]int)
	for kind := search.PlainMutex; kind < search.Unmodelled; kind++ {
		d := newSketcher(kind)
		for seed := range seeds {
			h := d.draw(seed)
			if h.Limits = nil; kind == search.Semaphore {
				h.Limits = []int32{d.permits}
			}
			events := eventsOf(h)
			c := compareStream(t, fmt.Sprintf("%s, seed %d", kind, seed), events,
				property.Options{ClockError: time.Duration(seed / 4 % 3)}, 1+int(seed%4))
			if t.Failed() {
				return
			}
			if c.vague {
				vague++
			}
			if c.sure {
				sure[c.whole.Verdict]++
			}
			for _, r := range c.whole.Results {
				switch r.Outcome {
				case property.Violated:
					convicted[r.Property]++
				case property.Holds:
					acquitted[r.Property]++
				}
			}
		}
	}
	t.Logf("convicted %v, acquitted %v, left undecided by the stream alone %d, sure of %v", convicted, acquitted, vague,
		sure)
	if sure[Safe] < 100 || sure[Unsafe] < 100 {
		t.Errorf("the stream was sure of only %v", sure)
	}
	for _, p := range Streamed() {
		if p != property.Exercised && (convicted[p] < 100 || acquitted[p] < 100) {
			t.Errorf("%s: %d histories convicted and %d acquitted: the test shows too little", p, convicted[p], acquitted[p])
		}
	}
	if vague > 6*int(seeds)/20 { // owners that turned out to be concurrent late
		t.Errorf("the stream left %d undecided that the whole history decides", vague)
	}
}

// eventsOf is the events that a history was made of.
func eventsOf(h *history.History) []history.Event {
	times := make(map[int32]time.Duration)
	for _, u := range h.Unknown {
		times[u.Span] = u.Time
	}
	var events []history.Event
	for i := range h.Spans {
		s := &h.Spans[i]
		mode := ""
		if !s.Write {
			mode = "read"
		}
		owner := fmt.Sprint("o", s.Owner)
		asked := history.Value{Owner: owner, Lease: s.Lease, Mode: mode}
		if limit := h.Limit(s.Key); limit != 0 {
			asked.Permits, asked.Limit = int(s.Permits), int(max(0, limit))
		}
		e := history.Event{Index: int64(s.Invoked), Time: s.Call, Type: history.Invoke, Process: history.Process(i),
			F: s.Op.String(), Key: "k", Value: &asked}
		events = append(events, e)
		if s.Ended < 0 {
			continue
		}
		e.Index, e.Type, e.Held = int64(s.Ended), s.Outcome, s.Held
		if e.Time = s.Return; s.Outcome == history.Info {
			e.Time = max(s.Call, times[int32(i)])
		}
		answer := history.Value{Owner: owner, Token: s.Token, Count: int(s.Count)}
		if s.Valid != 0 && s.Valid != segment.Never {
			answer.Valid = s.Valid - s.Return
		}
		if e.Value = &answer; s.Outcome == history.Fail && !s.Busy {
			e.Error = &history.Error{Code: "other"}
		}
		events = append(events, e)
	}
	for _, n := range h.Notices {
		e := history.Event{Index: int64(n.Index), Time: n.Time, Type: history.Info, Process: n.Process, F: n.F, Key: "k"}
		e.Value = &history.Value{Owner: fmt.Sprint("o", n.Owner)}
		events = append(events, e)
	}
	slices.SortFunc(events, func(a, b history.Event) int { return int(a.Index - b.Index) })
	for i := range events {
		events[i].Index = int64(i)
	}
	return events
}

// TestStreamReportsBeforeTheEnd: two holders at once are reported while both hold the lock, and once.
func TestStreamReportsBeforeTheEnd(t *testing.T) {
	text := "client 0 acquire k 1.0-1.1 ok owner=a\nclient 1 acquire k 1.2-1.3 ok owner=b\n" +
		"client 2 acquire k 1.4- owner=c\n" +
		"client 0 release k 3.0-3.1 ok owner=a\nclient 1 release k 3.2-3.3 ok owner=b\n"
	events, _, err := foreign.ReadTextEvents(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	s := NewStream(property.Options{Only: []property.Name{property.Exclusion}}, 0)
	found := 0
	for i := range events {
		if err := s.Add(&events[i], 0); err != nil {
			t.Fatal(err)
		}
		news := s.Look()
		found += len(news)
		if len(news) > 0 && (events[i].Time != 1400*time.Millisecond || !strings.Contains(news[0].Text, "both held k")) {
			t.Errorf("times at %v: %+v", events[i].Time, news)
		}
	}
	j := s.Judgement()
	r := j.Result(property.Exclusion)
	if found != 1 || j.Verdict != Unsafe || r.Total != 1 || !strings.Contains(r.Summary, "1.70 s") {
		t.Errorf("times %d times; %s: %s", found, j.Verdict, r.Summary)
	}
}

// TestStreamMemoryIsBounded: a long run takes no more memory than a short one, and has the same verdict.
func TestStreamMemoryIsBounded(t *testing.T) {
	race.Skip(t)
	events := longHistory(200_000, 10, 3, 3)
	s := NewStream(property.Options{}, 0)
	most := 0
	for i := range events {
		if err := s.Add(&events[i], 0); err != nil {
			t.Fatal(err)
		}
		h := s.b.History()
		most = max(most, len(h.Spans), len(h.Owners), len(h.Notices))
	}
	j := s.Judgement()
	t.Logf("%s; at most %d operations or owners kept of %d", j.Sentence, most, j.Spans)
	if most > 2*streamBatch || j.Verdict != Safe || j.Spans != len(events)/2 {
		t.Errorf("%d kept, %d operations, %s: %s", most, j.Spans, j.Verdict, j.Sentence)
	}
}

// BenchmarkStream judges events as they come; B/held is the memory in use at the end.
func BenchmarkStream(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		events := longHistory(n, 50, 1, 3)
		b.Run(fmt.Sprintf("%dk", n/1000), func(b *testing.B) {
			held := uint64(0)
			for b.Loop() {
				var before, after runtime.MemStats
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&before)
				b.StartTimer()
				s := NewStream(property.Options{}, 0)
				for i := range events {
					if err := s.Add(&events[i], 0); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				held = after.HeapAlloc - before.HeapAlloc
				b.StartTimer()
				if j := s.Judgement(); j.Verdict != Safe {
					b.Fatal(j.Sentence)
				}
			}
			b.ReportMetric(float64(len(events))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(held), "B/held")
		})
	}
}

// TestStreamOfLapsedLease: a stream judges a hold before a refusal shows that its lease had ended, and then leaves its
// owner undecided.
func TestStreamOfLapsedLease(t *testing.T) {
	text := "client 0 acquire k 1-2 ok owner=a\nclient 1 acquire k 3-4 ok owner=b\nclient 0 renew k 5-6 fail owner=a " +
		"code=not-held%s\nclient 1 release k 7-8 ok owner=b\n"
	for lapsed, want := range map[string]property.Outcome{"": property.Violated, " lapsed": property.Undecided} {
		events, _, err := foreign.ReadTextEvents(strings.NewReader(fmt.Sprintf(text, lapsed)), "x")
		if err != nil {
			t.Fatal(err)
		}
		j, _ := streamed(t, events, property.Options{}, 1)
		for _, p := range []property.Name{property.Exclusion, property.LeaseExclusion} {
			if r := j.Result(p); r.Outcome != want {
				t.Errorf("%q: %s is %s: %s", lapsed, p, r.Outcome, r.Summary)
			}
		}
	}
}

// TestStreamOfLateReport: a stream judges an overlap before a report shows that a busy machine was late to end it. It
// convicts only if the report is later than that.
func TestStreamOfLateReport(t *testing.T) {
	text := "client 0 acquire k 1.0-1.1 ok owner=a lease=1s valid=900ms\nclient 1 acquire k 1.2-2.01 ok owner=b\n" +
		"client 2 acquire k 2.015-2.02 fail owner=c code=held\nclient 0 lost k %s owner=a\n" +
		"client 1 release k 3-4 ok owner=b\n"
	for lost, want := range map[string]property.Outcome{"2.03": property.Undecided, "2.08": property.Violated} {
		events, _, err := foreign.ReadTextEvents(strings.NewReader(fmt.Sprintf(text, lost)), "x")
		if err != nil {
			t.Fatal(err)
		}
		c := compareStream(t, lost, events, property.Options{ReportDelay: 50 * time.Millisecond}, 1)
		j, _ := streamed(t, events, property.Options{ReportDelay: 50 * time.Millisecond}, 1)
		if r := j.Result(property.Exclusion); r.Outcome != want || c.sure != (want == property.Violated) {
			t.Errorf("%s: %s, sure %v: %s", lost, r.Outcome, c.sure, r.Summary)
		}
	}
}
