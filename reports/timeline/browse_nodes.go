package timeline

import (
	"maps"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// AddNodes adds when each node was master and available, and who held which key there.
func (d *Columns) AddNodes(r *evidence.Run, part evidence.Interval, keyOf map[string]int) {
	s := browsing{r: r, d: d, part: part, keyOf: keyOf, index: map[evidence.KeyHolder]int64{}}
	for i, node := range r.Witness.Nodes {
		b := browseNode{Name: format.Line(node), Full: format.Line(r.Witness.Name(node))}
		for _, st := range r.Witness.States(node, part, evidence.SameRole) {
			w := [2]int64{Micros(st.From), Micros(st.Until)}
			if evidence.IsMaster(&st.First) {
				b.Master = append(b.Master, w)
			}
		}
		for _, st := range r.Witness.States(node, part, func(a, b *history.Sample) bool { return a.Up == b.Up }) {
			w := [2]int64{Micros(st.From), Micros(st.Until)}
			if st.First.Up {
				b.Up = append(b.Up, w)
			} else {
				b.Down = append(b.Down, w)
			}
		}
		d.Nodes = append(d.Nodes, b)
		s.node(int64(i), node)
	}
}

// browsing joins samples of one node into the states of its keys. It reads every
// sample once, so its time does not grow with the number of keys.
type browsing struct {
	r     *evidence.Run
	d     *Columns
	part  evidence.Interval
	keyOf map[string]int
	index map[evidence.KeyHolder]int64 // into browseStates.Holders
	open  map[string]openState
}

// openState is a state that the next sample may continue.
type openState struct {
	row  int // in browseStates
	who  evidence.KeyHolder
	next int // the sample that would continue it
}

func (b *browsing) node(number int64, node string) {
	b.open = map[string]openState{}
	samples := b.r.Witness.Samples[node]
	for i := range samples {
		s := &samples[i]
		if s.Time > b.part.Until {
			break
		}
		end, before := s.Time, int64(0)
		if i+1 < len(samples) && samples[i+1].Time-s.Time <= b.r.Witness.Gap {
			end = samples[i+1].Time
		}
		if i > 0 && s.Time-samples[i-1].Time <= b.r.Witness.Gap {
			before = Micros(s.Time) - Micros(samples[i-1].Time)
		}
		if end < b.part.From || !s.Up {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(s.Keys)) {
			b.sample(number, key, i, before, evidence.Interval{From: s.Time, Until: end}, s)
		}
	}
}

// sample adds the state of a key in a sample, or continues the one before.
func (b *browsing) sample(node int64, key string, i int, before int64, w evidence.Interval, s *history.Sample) {
	k, ok := b.keyOf[key]
	if !ok {
		return
	}
	t := &b.d.States
	who := b.r.HeldBy(key, s)
	after := Micros(w.Until) - Micros(s.Time)
	next := i + 1
	if w.Until == w.From {
		next = -1 // a gap follows
	}
	if o, ok := b.open[key]; ok && o.next == i && o.who == who {
		t.Length[o.row], t.After[o.row] = Micros(w.Until)-t.From[o.row], after
		o.next = next
		b.open[key] = o
		return
	}
	b.open[key] = openState{row: len(t.From), who: who, next: next}
	ttl := int64(-1)
	if left := s.Keys[key].TTL; left >= 0 {
		ttl = Micros(left)
	}
	t.Node, t.Key, t.From = append(t.Node, node), append(t.Key, int64(k)), append(t.From, Micros(w.From))
	t.Length, t.Holder = append(t.Length, Micros(w.Until)-Micros(w.From)), append(t.Holder, b.holder(who))
	t.TTL, t.Before, t.After = append(t.TTL, ttl), append(t.Before, before), append(t.After, after)
}

func (b *browsing) holder(who evidence.KeyHolder) int64 {
	who.Value = "" // several values of one client have one label
	i, ok := b.index[who]
	if !ok {
		i = int64(len(b.d.States.Holders))
		b.index[who] = i
		b.d.States.Holders = append(b.d.States.Holders, browseHolder{Label: format.Line(who.Label),
			Short: format.Line(who.Short), Client: who.Client, Earlier: who.Earlier,
			Permits: who.Permits})
	}
	return i
}
