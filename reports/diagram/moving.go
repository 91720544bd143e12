package diagram

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// files are the script, which draws other instants with the data of [Scene.Data] and of the timeline, and the style.
//
//go:embed diagram.js diagram.css
var files embed.FS

// Assets are the script and the style of the drawing.
func Assets() (script, style []byte, err error) {
	script, err = files.ReadFile("diagram.js")
	if err != nil {
		return nil, nil, fmt.Errorf("reading the script of the diagram: %w", err)
	}
	if style, err = files.ReadFile("diagram.css"); err != nil {
		return nil, nil, fmt.Errorf("reading the style of the diagram: %w", err)
	}
	return script, style, nil
}

// moving is the data of the script. Times are in microseconds.
type moving struct {
	Word      string             `json:"word"`
	Why       string             `json:"why"` // no sample shows records; empty: some do
	Nodes     []track            `json:"nodes"`
	Sentinels []track            `json:"sentinels"`
	Rest      string             `json:"rest"`    // nodes and clients without a card
	Clients   map[string][]since `json:"clients"` // only those that have a state at some time
	Faults    []stretch          `json:"faults"`  // on links, and on targets without a card
}

type track struct {
	Name   string  `json:"name"`
	States []since `json:"states"`
}

// since is the state of a card from an instant until the next one.
type since struct {
	From   int64  `json:"t"`
	State  string `json:"s,omitempty"`
	Role   string `json:"r,omitempty"`
	Faults string `json:"f,omitempty"`
}

// stretch is a fault in force. From and To are the ends of a link that is drawn as cut or, with Late, as slow. On are
// the clients whose cards show the fault, if they have cards.
type stretch struct {
	A    int64    `json:"a"`
	B    int64    `json:"b"` // -1: no end
	Text string   `json:"text"`
	From string   `json:"from,omitempty"`
	To   string   `json:"to,omitempty"`
	Late bool     `json:"late,omitempty"`
	On   []string `json:"on,omitempty"`
}

// Data is the scene at every instant, as JSON without markup. Records and beliefs are not in it, but in the data of the
// timeline.
func (s *Scene) Data() (string, error) {
	m := moving{Word: s.r.Word(), Why: s.r.Unsampled(), Rest: s.rest, Clients: map[string][]since{}}
	for _, node := range s.nodes {
		at := append(s.faultTimes(node), s.sampleTimes(node)...)
		m.Nodes = append(m.Nodes, track{node, states(at, func(t time.Duration) Card { return s.node(node, t, false) })})
	}
	for _, name := range s.sentinels {
		m.Sentinels = append(m.Sentinels, track{name, states(s.faultTimes(name), func(t time.Duration) Card {
			return s.mark(Card{}, name, t)
		})})
	}
	for _, c := range s.disturbed() {
		name := cluster.ClientName(c)
		m.Clients[name] = states(append(s.faultTimes(name), s.crashTimes(c)...), func(t time.Duration) Card {
			return s.client(c, t)
		})
	}
	for _, f := range s.links {
		x := s.stretch(f)
		if from, to, _ := strings.Cut(f.Target, ">"); separates(f) {
			x.From, x.To, x.Late = from, to, !f.CutsOff()
		}
		m.Faults = append(m.Faults, x)
	}
	for _, f := range s.loose {
		m.Faults = append(m.Faults, s.stretch(f))
	}
	for _, f := range s.alone {
		x := s.stretch(f)
		x.On = strings.Split(f.Target, "+")
		m.Faults = append(m.Faults, x)
	}
	m.Faults = slices.DeleteFunc(m.Faults, func(x stretch) bool { return x.A == x.B })
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encoding the data of the diagram: %w", err)
	}
	return string(text), nil
}

// stretch is a fault while it is in force; empty if it took no effect.
func (s *Scene) stretch(f *evidence.Fault) stretch {
	x := stretch{Text: format.Line(looseText(f))}
	if from, until := during(f); until > from {
		x.A, x.B = timeline.Micros(from), -1
		if until != history.Infinity {
			x.B = timeline.Micros(until)
		}
	}
	return x
}

// states are the states of a card at the instants at which it may have changed, without equal neighbors.
func states(at []time.Duration, card func(time.Duration) Card) []since {
	var all []since
	at = append(at, 0)
	slices.Sort(at)
	for _, t := range slices.Compact(at) {
		if t < 0 || t == history.Infinity {
			continue
		}
		c := card(moment(t))
		x := since{timeline.Micros(t), format.Line(c.State), format.Line(c.Role), format.Line(c.Faults)}
		if n := len(all); n > 0 {
			if last := all[n-1]; last.State == x.State && last.Role == x.Role && last.Faults == x.Faults {
				continue
			}
			if all[n-1].From == x.From {
				all = all[:n-1]
			}
		}
		all = append(all, x)
	}
	return all
}

func (s *Scene) faultTimes(target string) (at []time.Duration) {
	for _, f := range s.on[target] {
		from, until := during(f)
		at = append(at, from, until)
	}
	return at
}

// sampleTimes are the times at which the availability or the role of a node changed, or its samples paused.
func (s *Scene) sampleTimes(node string) (at []time.Duration) {
	w := &s.r.Witness
	for _, x := range w.States(node, evidence.Interval{Until: history.Infinity}, evidence.SameRole) {
		end := x.Last.Time + w.Gap
		at = append(at, x.First.Time, end-time.Microsecond, end, end+time.Microsecond)
	}
	for _, f := range s.on[node] { // the first sample that shows a node up although a fault ended it
		if x := evidence.FirstOf(w.During(node, f.EffectTime(), f.Heal), func(x *history.Sample) bool {
			return x.Up && x.Sent > f.EffectTime()
		}); x != nil {
			at = append(at, x.Time)
		}
	}
	return at
}

// disturbed are the clients on which there were faults, and those that crashed.
func (s *Scene) disturbed() []int {
	all := map[int]bool{}
	for target := range s.on {
		if c, is := cluster.ClientNumber(target); is {
			all[c] = true
		}
	}
	for _, n := range s.r.History.Notices {
		if n.F == history.Crash {
			all[s.r.ClientIn(n.Process)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// crashTimes are the times at which a client crashed, or called again after a crash.
func (s *Scene) crashTimes(client int) (at []time.Duration) {
	for _, n := range s.r.History.Notices {
		if n.F != history.Crash || s.r.ClientIn(n.Process) != client {
			continue
		}
		at = append(at, n.Time)
		if x := evidence.FirstOf(s.r.History.Spans, func(x *history.Span) bool {
			return s.r.ClientIn(x.Process) == client && x.Call > n.Time
		}); x != nil {
			at = append(at, x.Call)
		}
	}
	return at
}
