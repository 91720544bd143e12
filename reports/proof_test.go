package reports

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// raw is the content of a run directory, read without the code that made the sentence.
type raw struct {
	t       *testing.T
	events  map[int]history.Event
	samples map[string]history.Sample // by node and time
	yaml    string
	nodes   int
}

func readRaw(t *testing.T, r *Run) raw {
	t.Helper()
	d := raw{t: t, events: map[int]history.Event{}, samples: map[string]history.Sample{}, yaml: r.Manifest.YAML,
		nodes: len(r.Manifest.Nodes)}
	lines := func(name string, read func([]byte) error) {
		f, err := os.Open(r.Dir.File(name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			if err := read(s.Bytes()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	lines(rundir.HistoryFile, func(line []byte) error {
		var e history.Event
		err := json.Unmarshal(line, &e)
		d.events[int(e.Index)] = e
		return err
	})
	lines(rundir.WitnessFile, func(line []byte) error {
		var s history.Sample
		err := json.Unmarshal(line, &s)
		d.samples[fmt.Sprint(s.Node, s.Time)] = s
		return err
	})
	return d
}

// checkProofs checks that every number of the headline has a proof, and that each
// proof follows from the recorded event or sample that it names.
func checkProofs(t *testing.T, r *Run) {
	t.Helper()
	d := readRaw(t, r)
	rest := r.Story.Sentence
	for _, name := range []string{"`[^`]*`", `[Cc]lient \d+`, `\b[ns]\d+\b`} {
		rest = regexp.MustCompile(name).ReplaceAllString(rest, "")
	}
	proofs := slices.Clone(r.Story.Proofs)
	slices.SortStableFunc(proofs, func(a, b evidence.Proof) int { return cmp.Compare(len(b.Text), len(a.Text)) })
	for _, p := range proofs {
		if !strings.Contains(rest, p.Text) {
			t.Errorf("the headline does not have %q, or less often than it is proved", p.Text)
		}
		rest = strings.Replace(rest, p.Text, "", 1)
		if err := d.check(p); err != nil {
			t.Errorf("%s %q: %v", p.Kind, p.Text, err)
		}
	}
	if n := regexp.MustCompile(`\d[\d.]*`).FindString(rest); n != "" {
		t.Errorf("no proof of %s", n)
	}
	if t.Failed() {
		t.Log(r.Story.Sentence)
	}
}

func (d raw) check(p evidence.Proof) error {
	want := ""
	first := evidence.Point{}
	if len(p.From) > 0 {
		first = p.From[0]
	}
	switch p.Kind {
	case evidence.ProofInstant:
		want = format.Instant(d.at(first))
	case evidence.ProofElapsed:
		want = format.Duration(d.at(p.From[1]) - d.at(first))
	case evidence.ProofToken:
		v := d.value(first)
		if want = fmt.Sprintf("token %d", v.Token); want != p.Text && v.Touch != nil {
			want = fmt.Sprintf("token %d", v.Touch.MaxSeen)
		}
	case evidence.ProofCount:
		want = fmt.Sprint(d.count(first))
	case evidence.ProofQuote:
		if f := d.value(first).Fault; f == nil || !strings.Contains(f.Detail, p.Text) {
			return fmt.Errorf("not in %+v", f)
		}
		return nil
	case evidence.ProofNodes:
		seen := map[string]bool{}
		for _, at := range p.From {
			d.at(at)
			seen[at.Node] = true
		}
		want = fmt.Sprintf("%d of %d nodes", len(seen), d.nodes)
	case evidence.ProofSetting:
		number, _, _ := strings.Cut(p.Text, " ")
		if !strings.Contains(d.yaml, ": "+number+"\n") {
			return fmt.Errorf("not in the scenario")
		}
		return nil
	}
	if want != p.Text {
		return fmt.Errorf("it is %q", want)
	}
	return nil
}

// at is the time of a point.
func (d raw) at(p evidence.Point) time.Duration {
	if p.Event < 0 && p.Until {
		s := d.samples[fmt.Sprint(p.Node, p.Sample)]
		return s.Time + s.Keys[p.Key].TTL
	}
	if p.Event < 0 {
		s, ok := d.samples[fmt.Sprint(p.Node, p.Time)]
		if !ok {
			d.t.Errorf("no sample of %s at %v", p.Node, p.Time)
		}
		return s.Time
	}
	e, ok := d.events[p.Event]
	if !ok {
		d.t.Errorf("no event %d", p.Event)
	}
	if v := d.value(p); p.Until && e.Type == history.Invoke {
		return e.Time + v.Lease
	} else if p.Until {
		return e.Time + v.Valid
	} else if e.F == history.Lost {
		return e.Time - v.Age // recorded later than the client knew
	}
	return e.Time
}

func (d raw) value(p evidence.Point) history.Value {
	if v := d.events[p.Event].Value; v != nil {
		return *v
	}
	return history.Value{}
}

// count is the hold count of a sample, or the permits that an event asks for.
func (d raw) count(p evidence.Point) int {
	if p.Event >= 0 {
		return d.value(p).Permits
	}
	for _, k := range d.samples[fmt.Sprint(p.Node, p.Time)].Keys {
		return k.Count
	}
	return 0
}

// TestPlainHeadlineIsProved: the headline about a violation without a known cause is the text of the checker. Its times
// are the times of the events that the violation names.
func TestPlainHeadlineIsProved(t *testing.T) {
	for _, name := range []string{"wake-up-not-woken", "wake-up-timed-out", "wake-up-undone"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../checker/testdata/" + name + ".history")
			if err != nil {
				t.Fatal(err)
			}
			events, _, _ := strings.Cut(string(text), "----")
			h, err := foreign.ReadText(strings.NewReader(events), name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := FromHistory(name, h, checker.Judge(h, checker.Options{}),
				nil, func(map[int]bool) (map[int]string, error) { return nil, nil })
			if err != nil {
				t.Fatal(err)
			}
			rest := r.Story.Sentence
			for _, p := range r.Story.Proofs {
				rest = strings.Replace(rest, p.Text, "", 1)
			}
			if n := regexp.MustCompile(`[\d.]+ (s|ms|µs)\b`).FindString(rest); n != "" || len(r.Story.Proofs) < 3 {
				t.Errorf("%s\nof %d proofs there is none of %q", r.Story.Sentence, len(r.Story.Proofs), n)
			}
		})
	}
}

// TestProve: a time that only happens to be that between two points is not proved.
func TestProve(t *testing.T) {
	ops := [][]evidence.Point{{evidence.EventAt(1, ms(1000)), evidence.EventAt(2, ms(1100))},
		{evidence.EventAt(3, ms(1200)), evidence.EventAt(4, ms(5000))}, {evidence.EventAt(5, ms(1500)),
			evidence.EventAt(6, ms(2100))}}
	for text, want := range map[string][]string{
		"it took 3.80 s, and 600 ms":            {"3.80 s", "600 ms"},
		"for 3.90 s (1.100 s to 5.000 s)":       {"3.90 s", "1.100 s", "5.000 s"},
		"more than 1.00 s later":                nil, // from the first reply to the last
		"at 1.100 s, and until 5.000 s: 3.90 s": {"1.100 s", "5.000 s"},
	} {
		var got []string
		for _, p := range evidence.Prove(text, ops).Proofs {
			got = append(got, p.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: proved are %q, want %q", text, got, want)
		}
	}
}
