package timeline

import (
	"fmt"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// maxBrowseOps is how many operations are tried first: more never fit in a page.
const maxBrowseOps = 1_500_000

// Columns is the data that the script of the page draws and lists: operations, holds,
// writes, faults and the state of the nodes in one part of the run. Times are in
// microseconds; columns of one table have the same length. Every text in it has
// one line of printable characters, and no markup: the script escapes it.
type Columns struct {
	Note    string         `json:"note"` // the omitted parts; empty: none
	From    int64          `json:"from"` // of the run: the extent of the data
	Until   int64          `json:"until"`
	End     int64          `json:"end"` // of the whole run
	Shown   [2]int64       `json:"shown"`
	Key     int            `json:"key"`   // of the picture at first
	Worst   int            `json:"worst"` // index of the violation that the page explains; -1: none
	Judged  bool           `json:"judged"`
	Quorum  bool           `json:"quorum"`  // the nodes are independent masters
	Leader  string         `json:"leader"`  // the term for the deciding node: "master"
	Endless [2]string      `json:"endless"` // the label of a key without an expiry: of a lock, of permits
	KeyAt   string         `json:"keyAt"`   // the name of the rows of nodes
	Keys    []string       `json:"keys"`
	Names   map[int]string `json:"names"`  // of clients that have one instead of a number
	Colors  map[int]int    `json:"colors"` // of clients, where it is not their number
	Ops     browseOps      `json:"ops"`
	Holds   browseHolds    `json:"holds"`
	Writes  browseWrites   `json:"writes"`
	Notes   browseNotices  `json:"notices"`
	Faults  []browseFault  `json:"faults"`
	Nodes   []browseNode   `json:"nodes"`
	States  browseStates   `json:"states"`
	Found   []browseViol   `json:"violations"`
	Steps   []browseStep   `json:"steps"`
}

type browseOps struct {
	Names []string `json:"names"`
	Name  column   `json:"name"`
	Call  deltas   `json:"call"`
	Took  column   `json:"took"` // -1: no end
	// Learned is when clients learned that outcomes are unknown, after the calls, by row.
	Learned map[int]int64 `json:"learned"`
	Out     column        `json:"out"` // history.Type
	Client  column        `json:"client"`
	Key     column        `json:"key"`
	Index   deltas        `json:"index"` // of the event that invokes it
	Ended   column        `json:"ended"` // minus index; 0: no event
	Token   tokens        `json:"token"`
}

// browseHolds have their key, client, token and begin from the operation that acquired them.
type browseHolds struct {
	Ends    []string `json:"ends"`
	Op      deltas   `json:"op"` // row of browseOps
	Length  column   `json:"length"`
	Valid   column   `json:"valid"` // the end of the promise, after the begin; 0: no validity
	End     column   `json:"end"`
	Permits column   `json:"permits"`
	Mode    column   `json:"mode"` // 1: reading, 2: writing, 0: the lock has no modes
}

type browseWrites struct {
	Time     deltas `json:"time"`
	Client   column `json:"client"`
	Key      column `json:"key"`
	Token    tokens `json:"token"`
	Older    column `json:"older"` // 1: than a token that the resource had seen
	MaxSeen  tokens `json:"seen"`  // of these
	Read     column `json:"read"`
	Found    column `json:"found"` // minus read
	Accepted column `json:"accepted"`
	Index    deltas `json:"index"`
}

// browseNotices are the clients' reports without a request, and with client -1 the observations of the harness.
type browseNotices struct {
	Names  []string `json:"names"`
	Name   column   `json:"name"`
	Time   deltas   `json:"time"`
	Client column   `json:"client"`
	Key    column   `json:"key"`
	Index  deltas   `json:"index"`
}

type browseFault struct {
	Name    string         `json:"name"`
	Target  string         `json:"target"`
	From    int64          `json:"from"`
	Until   int64          `json:"until"`  // -1: not healed
	Single  bool           `json:"single"` // there was nothing to heal
	Detail  string         `json:"detail"`
	State   string         `json:"state,omitempty"` // the state while it is in force
	Effects []browseMarker `json:"effects"`
	Index   int            `json:"index"`
	Healed  int            `json:"healed"` // the event; -1: none
}

// browseNode is when a node was master, replied, and did not.
type browseNode struct {
	Name   string     `json:"name"`
	Full   string     `json:"full"` // with its address
	Master [][2]int64 `json:"master"`
	Up     [][2]int64 `json:"up"`
	Down   [][2]int64 `json:"down"`
}

// browseStates are who held which key at which node.
type browseStates struct {
	Holders []browseHolder `json:"holders"`
	Node    column         `json:"node"`
	Key     column         `json:"key"`
	From    deltas         `json:"from"`
	Length  column         `json:"length"`
	Before  column         `json:"before"` // since the sample before, 0: none without a gap
	After   column         `json:"after"`  // from its last sample to the next one, 0: none without a gap
	Holder  column         `json:"holder"`
	TTL     column         `json:"ttl"` // -1: no expiry
}

type browseHolder struct {
	Label   string `json:"label"`
	Short   string `json:"short"`
	Client  int    `json:"client"` // -1: none or several
	Earlier bool   `json:"earlier"`
	Permits bool   `json:"permits"`
}

type browseViol struct {
	Property string `json:"property"`
	Class    string `json:"class"`
	Text     string `json:"text"`
	Key      int    `json:"key"` // -1: of no key
	Clients  []int  `json:"clients"`
	Events   []int  `json:"events"`
	From     int64  `json:"from"`
	Until    int64  `json:"until"`
	Holds    bool   `json:"holds"` // it is of a property about simultaneous holds
	Pair     bool   `json:"pair"`  // it is about two holds
	Drawn    bool   `json:"drawn"` // in the picture of another one
}

// browseMarker is an event with its text.
type browseMarker struct {
	Time  int64  `json:"t"`
	Text  string `json:"text"`
	Index int    `json:"index"` // of the event; -1: none
}

// browseStep is a step of the story.
type browseStep struct {
	browseMarker
	N int `json:"n"`
}

// Browse packs as much of the run as fits in a number of bytes, around the part that
// the picture shows.
func Browse(r *evidence.Run, shown evidence.Interval, key string, room int) (string, error) {
	ops := r.History.Spans
	center := sort.Search(len(ops), func(i int) bool { return ops[i].Call >= shown.From })
	for n := min(len(ops), maxBrowseOps); ; n = n * 3 / 4 {
		first := min(max(center-n/2, 0), len(ops)-n)
		part := evidence.Interval{From: 0, Until: max(r.History.End, 1)}
		if n < len(ops) {
			part = evidence.Interval{From: ops[first].Call, Until: ops[first+max(n-1, 0)].Call}
		}
		d := NewColumns(r, part, shown, key)
		if n < len(ops) {
			d.Note = fmt.Sprintf("This page shows %s of %s, from %s to %s. All are in history.jsonl.",
				format.Number(len(d.Ops.Call)), format.Count(len(ops), "operation"), format.Instant(part.From),
				format.Instant(part.Until))
		}
		data, err := packed(d)
		if err != nil || len(data) <= room || n == 0 {
			return data, err
		}
	}
}

// NewColumns returns the data of a part of a run, for a page that begins with the picture of key in shown.
func NewColumns(r *evidence.Run, part, shown evidence.Interval, key string) *Columns {
	d := &Columns{From: Micros(part.From), Until: Micros(part.Until), End: Micros(r.History.End),
		Shown: [2]int64{Micros(shown.From), Micros(shown.Until)}, Judged: r.Judged, Quorum: r.Quorum(),
		Leader: r.MasterWord(), Endless: [2]string{r.Endless(false), r.Endless(true)}, KeyAt: keyAt(r),
		Keys: format.Texts(r.History.Keys, format.Line), Colors: map[int]int{}, Names: map[int]string{}}
	for c := range r.Color {
		if number := evidence.ClientName(c); r.History.NameProcesses(number) != number {
			d.Names[c] = format.Line(r.History.NameProcesses(number))
		}
	}
	for c, color := range r.Color {
		if c != color {
			d.Colors[c] = color
		}
	}
	keyOf := map[string]int{}
	for i, k := range r.History.Keys {
		keyOf[k] = i
	}
	d.Key = keyOf[key]
	d.holds(r, part, d.ops(r, part))
	d.writes(r, part)
	d.notices(r, part)
	d.faults(r)
	d.AddNodes(r, part, keyOf)
	d.violations(r, keyOf)
	for _, s := range r.Story.Steps {
		text := format.Line(r.History.NameProcesses(s.Text))
		d.Steps = append(d.Steps, browseStep{browseMarker{Micros(s.Time), text, s.Event}, s.N})
	}
	return d
}

// Micros is a time in microseconds, rounded so that neighbors keep their order.
func Micros(t time.Duration) int64 { return int64(t.Round(time.Microsecond) / time.Microsecond) }

// ops adds the operations in a part of the run, and operations whose holds are in it. It returns their rows.
func (d *Columns) ops(r *evidence.Run, part evidence.Interval) map[int32]int64 {
	needed := map[int32]int64{}
	for h := range evidence.Each(r.Holds) {
		if part.Overlaps(h.Drawn()) {
			needed[h.Span] = 0
		}
	}
	var all names
	o := &d.Ops
	o.Learned = map[int]int64{}
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		_, need := needed[int32(i)]
		if !need && !part.Overlaps(evidence.Interval{From: s.Call, Until: min(s.Return, r.History.End)}) {
			continue
		}
		if need {
			needed[int32(i)] = int64(len(o.Call))
		}
		took, ended := int64(-1), int64(0)
		if s.Return != history.Infinity {
			took = Micros(s.Return) - Micros(s.Call)
		} else if t := r.Completed(s); t != history.Infinity {
			o.Learned[len(o.Call)] = Micros(t) - Micros(s.Call)
		}
		if s.Ended >= 0 {
			ended = int64(s.Ended - s.Invoked)
		}
		o.Name, o.Call = append(o.Name, all.of(evidence.OpName(s.Op))), append(o.Call, Micros(s.Call))
		o.Took, o.Out = append(o.Took, took), append(o.Out, int64(s.Outcome))
		o.Client = append(o.Client, int64(r.ClientIn(s.Process)))
		o.Key, o.Token = append(o.Key, int64(s.Key)), append(o.Token, s.Token)
		o.Index, o.Ended = append(o.Index, int64(s.Invoked)), append(o.Ended, ended)
	}
	o.Names = all.list
	return needed
}

func (d *Columns) holds(r *evidence.Run, part evidence.Interval, rows map[int32]int64) {
	var ends names
	b := &d.Holds
	for h := range evidence.Each(r.Holds) {
		if !part.Overlaps(h.Drawn()) {
			continue
		}
		valid := int64(0)
		if until := h.DrawnValidity(); until > 0 {
			valid = Micros(until) - Micros(h.From)
		}
		b.Op, b.Length = append(b.Op, rows[h.Span]), append(b.Length, Micros(h.To)-Micros(h.From))
		b.Valid, b.End = append(b.Valid, valid), append(b.End, ends.of(string(h.End)))
		b.Permits, b.Mode = append(b.Permits, int64(h.Permits)), append(b.Mode, int64(r.ModeOf(h)))
	}
	b.Ends = ends.list
}

func (d *Columns) writes(r *evidence.Run, part evidence.Interval) {
	b := &d.Writes
	for t := range evidence.Each(r.History.Touches) {
		if !part.Has(t.Time) {
			continue
		}
		accepted, older := int64(0), int64(0)
		if t.Accepted {
			accepted = 1
		}
		if t.MaxSeen > t.Token {
			older = 1
			b.MaxSeen = append(b.MaxSeen, t.MaxSeen)
		}
		b.Time, b.Client = append(b.Time, Micros(t.Time)), append(b.Client, int64(r.ClientIn(t.Process)))
		b.Key, b.Token, b.Older = append(b.Key, int64(t.Key)), append(b.Token, t.Token), append(b.Older, older)
		b.Read, b.Found = append(b.Read, t.Read), append(b.Found, t.Found-t.Read)
		b.Accepted, b.Index = append(b.Accepted, accepted), append(b.Index, int64(t.Index))
	}
}

func (d *Columns) notices(r *evidence.Run, part evidence.Interval) {
	var all names
	b := &d.Notes
	for n := range evidence.Each(r.History.Notices) {
		if !part.Has(n.Time) {
			continue
		}
		b.Name, b.Time = append(b.Name, all.of(format.Line(n.F))), append(b.Time, Micros(n.Time))
		b.Client = append(b.Client, int64(r.ClientIn(n.Process)))
		b.Key, b.Index = append(b.Key, int64(n.Key)), append(b.Index, int64(n.Index))
	}
	for _, n := range r.Notes {
		if part.Has(n.Time) {
			b.Name, b.Time = append(b.Name, all.of(format.Line(evidence.NoteText(n)))), append(b.Time, Micros(n.Time))
			b.Client, b.Key, b.Index = append(b.Client, -1), append(b.Key, -1), append(b.Index, int64(n.Index))
		}
	}
	b.Names = all.list
}

func (d *Columns) faults(r *evidence.Run) {
	for f := range evidence.Each(r.Faults) {
		b := browseFault{Name: format.Line(f.Name), Target: format.Line(evidence.TargetName(f.Target)),
			From: Micros(f.Inject), Until: -1, Single: f.Single, Detail: format.Line(f.Detail), State: format.Line(f.State()),
			Index: int(f.Event), Healed: int(f.HealEvent)}
		if f.Heal != history.Infinity {
			b.Until = Micros(f.Heal)
		}
		for _, e := range f.Effects {
			b.Effects = append(b.Effects, browseMarker{Micros(e.Time), format.Line(e.Detail), int(e.Index)})
		}
		d.Faults = append(d.Faults, b)
	}
}

// violations are in the order of the table of the page.
func (d *Columns) violations(r *evidence.Run, keyOf map[string]int) {
	d.Worst = -1
	worst := r.Worst
	for res, v := range r.Violations() {
		w := r.During(v)
		b := browseViol{Property: string(res.Property), Class: string(v.Class), Key: -1,
			Text:    format.Line(r.History.NameProcesses(v.Text)),
			Clients: v.Clients, Events: v.Events, From: Micros(w.From), Until: Micros(w.Until),
			Holds: evidence.Overlaps(res.Property), Pair: evidence.Overlaps(res.Property), Drawn: evidence.IsDrawn(res)}
		if k, ok := keyOf[v.Key]; ok && v.Key != "" {
			b.Key = k
		}
		if v == worst {
			d.Worst, b.Pair = len(d.Found), overlap.Of(r, v) != nil
		}
		d.Found = append(d.Found, b)
	}
}
