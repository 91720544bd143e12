// Package diagram draws the nodes and the clients of a run at one instant: which node is master, down or cut off, whose
// record each one has, and which client believes that it holds the lock. It shows what the history and the samples
// have, and "not sampled" where they have nothing. The script of the page moves the drawing to other instants.
package diagram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

const (
	maxNodes   = 9 // cards of nodes
	maxClients = 6 // cards of clients
)

// Scene has the data that the drawings of one lock share.
type Scene struct {
	r         *evidence.Run
	key       string
	nodes     []string
	sentinels []string
	clients   []int
	on        map[string][]*evidence.Fault // by the target
	links     []*evidence.Fault            // on a link of two
	loose     []*evidence.Fault            // on something without a card
}

// New is the scene of a lock. The given clients have cards, then other clients of the run, up to maxClients.
func New(r *evidence.Run, key string, clients []int) *Scene {
	s := &Scene{r: r, key: key, nodes: r.Witness.Nodes, on: map[string][]*evidence.Fault{}}
	s.nodes = s.nodes[:min(len(s.nodes), maxNodes)]
	if r.Manifest.Topology.Kind == cluster.Sentinel {
		for i := range cmp.Or(r.Manifest.Topology.Sentinels, 3) {
			s.sentinels = append(s.sentinels, fmt.Sprintf("s%d", i+1))
		}
	}
	s.clients = slices.Clone(clients[:min(len(clients), maxClients)])
	for _, c := range r.PerClient() {
		if len(s.clients) < maxClients && !slices.Contains(s.clients, c.Client) {
			s.clients = append(s.clients, c.Client)
		}
	}
	for f := range evidence.Each(r.Faults) {
		s.add(f)
	}
	return s
}

// add files a fault under the cards on which it is shown.
func (s *Scene) add(f *evidence.Fault) {
	if strings.Contains(f.Target, ">") {
		s.links = append(s.links, f)
		return
	}
	targets := strings.Split(f.Target, "+")
	for _, target := range targets {
		if !evidence.IsClient(target) && !s.has(target) {
			s.loose = append(s.loose, f)
			return
		}
	}
	for _, target := range targets {
		s.on[target] = append(s.on[target], f)
	}
}

// has reports whether a target has a card.
func (s *Scene) has(target string) bool {
	if c, is := cluster.ClientNumber(target); is {
		return slices.Contains(s.clients, c)
	}
	return slices.Contains(s.nodes, target) || slices.Contains(s.sentinels, target)
}

// Frame is the scene at one instant.
type Frame struct {
	Nodes     []Card
	Sentinels []Card
	Clients   []Card
	Links     []Link
	Loose     []string // faults in force on something without a card
	why       string   // no sample shows records
}

// Card is a node or a client at one instant.
type Card struct {
	Name   string
	Client int    // -1: a node
	State  string // "down", "paused", "cut off", "not sampled"; "": none of them
	Role   string // of a node, as sampled
	Record string // of the lock at a node, as sampled; what a client believes
	Owner  int    // the client that the record names; -1: none or several
	Change bool   // the next sample has another record
	Faults string // the names of the faults in force
}

// Link is a pair of cards that a fault keeps apart.
type Link struct{ From, To, Text string }

// moment is t as the script of the page compares it, in microseconds: everything in the same microsecond counts as
// before it.
func moment(t time.Duration) time.Duration {
	const unit = time.Microsecond
	return t.Round(unit) + unit/2 - 1
}

// At is the scene at t.
func (s *Scene) At(t time.Duration) *Frame {
	t = moment(t)
	f := &Frame{why: s.r.Unsampled()}
	for _, name := range s.nodes {
		f.Nodes = append(f.Nodes, s.node(name, t, true))
	}
	for _, name := range s.sentinels {
		f.Sentinels = append(f.Sentinels, s.mark(Card{Name: name, Client: -1, Owner: -1}, name, t))
	}
	beliefs := s.beliefs(t)
	for _, c := range s.clients {
		card := s.client(c, t)
		card.Record = beliefs[c].text()
		f.Clients = append(f.Clients, card)
	}
	for _, l := range s.links {
		from, to, _ := strings.Cut(l.Target, ">")
		switch {
		case !inForce(l, t):
		case separates(l) && s.has(from) && s.has(to):
			f.Links = append(f.Links, Link{from, to, looseText(l)})
		default:
			f.Loose = append(f.Loose, looseText(l))
		}
	}
	for _, l := range s.loose {
		if inForce(l, t) {
			f.Loose = append(f.Loose, looseText(l))
		}
	}
	return f
}

// separates reports whether a fault on a link is drawn as its interruption.
func separates(f *evidence.Fault) bool { return f.CutsOff() || f.KeepsFromReplicas() }

// looseText is a fault in force, in the sentence under the drawing.
func looseText(f *evidence.Fault) string {
	if text := stateOf(f); text != "" {
		return evidence.Subject(f.Target) + " " + text
	}
	return evidence.Subject(f.Target) + ": " + f.Name
}

// inForce reports whether a fault that took effect at some time is in force at t.
func inForce(f *evidence.Fault, t time.Duration) bool {
	from, until := during(f)
	return from <= t && t < until
}

// during is the time in which a fault was in force, empty if it took no effect. Traffic is cut from the injection on: a
// recorded effect only shows that some of it was held.
func during(f *evidence.Fault) (from, until time.Duration) {
	from, until = f.EffectTime(), f.Heal
	switch {
	case len(f.Effects) == 0:
		return 0, 0
	case f.CutsOff():
		from = f.Inject
	case f.Class == history.FaultPauses && f.HealEvent >= 0:
		until = f.Healed().Time
	}
	return from, until
}

// stateOf is the state of the target of a fault, in a word or two; "" if there is no word for it but the fault's name.
func stateOf(f *evidence.Fault) string {
	switch {
	case f.EndsProcess() && evidence.IsClient(f.Target):
		return dead
	case f.EndsProcess():
		return down
	case f.Does(history.FaultPauses, history.ObjectProcess):
		return paused
	case f.CutsOff() && strings.HasPrefix(f.Verb, "was "):
		return strings.TrimPrefix(f.Verb, "was ")
	case f.CutsOff():
		return "cut off"
	}
	return ""
}

// mark adds the faults in force on a target to its card.
func (s *Scene) mark(c Card, target string, t time.Duration) Card {
	var states, names []string
	add := func(list []string, text string) []string {
		if text == "" || slices.Contains(list, text) {
			return list
		}
		return append(list, text)
	}
	for _, f := range s.on[target] {
		if inForce(f, t) {
			states, names = add(states, stateOf(f)), add(names, f.Name)
		}
	}
	c.State, c.Faults = strings.Join(states, ", "), strings.Join(names, ", ")
	return c
}

// node is a node, with or without its record of the lock.
func (s *Scene) node(name string, t time.Duration, record bool) Card {
	c := s.mark(Card{Name: name, Client: -1, Owner: -1}, name, t)
	last := s.r.Witness.Latest(name, t)
	switch {
	case has(c.State, down) && !s.backSince(name, last):
		return c
	case last == nil:
		c.State = join(c.State, unsampled)
	case !last.Up && c.State == "":
		c.State = silent
	case last.Up:
		c.Role = s.role(last)
		if record && s.r.Unsampled() == "" {
			s.record(&c, last, t)
		}
	}
	return c
}

// States of cards, and texts of records.
const (
	down      = "down"
	dead      = "dead" // a client
	paused    = "paused"
	silent    = "does not reply"
	unsampled = "not sampled"
	absent    = "absent"
	idle      = "idle" // a client without a request
)

// has reports whether a state is among those of a card.
func has(states, state string) bool { return slices.Contains(strings.Split(states, ", "), state) }

func join(states, state string) string {
	if states == "" {
		return state
	}
	return states + ", " + state
}

// backSince reports whether a sample shows a node up after the last fault that ended its process.
func (s *Scene) backSince(name string, last *history.Sample) bool {
	f := evidence.LastOf(s.on[name], func(f **evidence.Fault) bool { return (*f).EndsProcess() })
	return last != nil && last.Up && f != nil && last.Sent > (*f).EffectTime()
}

func (s *Scene) role(x *history.Sample) string {
	switch {
	case x.Role == "master":
		return s.r.MasterWord()
	case x.Role == "slave" && s.r.ByMajority():
		return "follower"
	case x.Role == "slave":
		return "replica"
	}
	return x.Role
}

// record adds the record of the lock, as the last sample shows it, to the card of a node. If the next sample has
// another one, the change may have been before or after t.
func (s *Scene) record(c *Card, last *history.Sample, t time.Duration) {
	text, owner := s.holder(last)
	c.Owner, c.Record = owner, s.Word()+": "+text
	if text == absent {
		c.Record = s.Word() + " " + absent
	}
	next := s.r.Witness.During(c.Name, t+1, last.Time+s.r.Witness.Gap)
	if len(next) == 0 || !next[0].Up {
		return
	}
	if later, its := s.holder(&next[0]); later != text {
		c.Record, c.Owner, c.Change = s.Word()+": "+text+" → "+later, its, true
	}
}

func (s *Scene) holder(x *history.Sample) (text string, client int) {
	if _, held := x.Keys[s.key]; !held {
		return absent, -1
	}
	who := s.r.HeldBy(s.key, x)
	return who.Label, who.Client
}

// Word is the word for the record of a lock at a node.
func (s *Scene) Word() string {
	if s.r.Ensemble() {
		return "lock"
	}
	return "key"
}

// client is a client without its belief.
func (s *Scene) client(c int, t time.Duration) Card {
	card := s.mark(Card{Name: evidence.ClientName(c), Client: c, Owner: -1}, cluster.ClientName(c), t)
	if s.crashed(c, t) && card.State == "" {
		card.State = dead
	}
	return card
}

// crashed reports whether a client ended before t and has not called since.
func (s *Scene) crashed(client int, t time.Duration) bool {
	end := evidence.LastOf(s.r.History.Notices, func(n *history.Notice) bool {
		return n.F == history.Crash && s.r.ClientIn(n.Process) == client && n.Time <= t
	})
	if end == nil {
		return false
	}
	return evidence.FirstOf(s.r.History.Spans, func(x *history.Span) bool {
		return s.r.ClientIn(x.Process) == client && x.Call > end.Time && x.Call <= t
	}) == nil && evidence.FirstOf(s.on[cluster.ClientName(client)], func(f **evidence.Fault) bool {
		return (*f).EndsProcess() && (*f).Heal > end.Time && (*f).Heal <= t
	}) == nil
}

// belief is what a client believes about the lock, as its operations show.
type belief struct {
	holds, waits, releases bool
	unanswered             bool // the outcome of its last request is unknown: the time at which it gave up is not recorded
	over                   bool // the validity of the hold has ended
	permits                int
}

func (b belief) text() string {
	var text string
	switch {
	case b.holds && b.permits == 1:
		text = "believes it holds a permit"
	case b.holds && b.permits > 1:
		text = "believes it holds permits"
	case b.holds:
		text = "believes it holds"
	case b.releases:
		return "releases"
	case b.waits:
		return "waits"
	case b.unanswered:
		return "asked, outcome unknown"
	default:
		return idle
	}
	if b.over {
		text += ", validity over"
	}
	return text
}

func (s *Scene) beliefs(t time.Duration) map[int]belief {
	all := map[int]belief{}
	for h := range evidence.Each(s.r.Holds) {
		if s.r.KeyName(h.Key) != s.key || h.From > t || t >= h.To && h.End != checker.StillHeld {
			continue
		}
		b := all[h.Client]
		b.holds, b.permits = true, b.permits+int(h.Permits)
		b.over = h.DrawnValidity() > 0 && h.DrawnValidity() <= t
		all[h.Client] = b
	}
	for x := range evidence.Each(s.r.History.Spans) {
		if s.r.KeyName(x.Key) != s.key || x.Call > t {
			continue
		}
		c := s.r.ClientIn(x.Process)
		b, takes, ends := all[c], evidence.Taking(x), x.Op.String() == history.Release
		b.unanswered = x.Outcome == history.Info && (takes || ends)
		if t < x.Return && !b.unanswered {
			b.waits, b.releases = b.waits || takes, b.releases || ends
		}
		all[c] = b
	}
	return all
}
