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
	loose     []*evidence.Fault            // on something that never has a card
	alone     []*evidence.Fault            // on clients, which may have no card
	rest      string                       // the number of nodes and clients without a card; empty: all have one
}

// New is the scene of a lock. The given clients have cards, then other clients of the run, up to maxClients.
func New(r *evidence.Run, key string, clients []int) *Scene {
	s := &Scene{r: r, key: key, nodes: r.Witness.Nodes, on: map[string][]*evidence.Fault{}}
	var more []string
	if n := len(s.nodes) - maxNodes; n > 0 {
		s.nodes, more = s.nodes[:maxNodes], append(more, fmt.Sprintf("%d more nodes", n))
	}
	if r.Manifest.Topology.Kind == cluster.Sentinel {
		for i := range cmp.Or(r.Manifest.Topology.Sentinels, 3) {
			s.sentinels = append(s.sentinels, fmt.Sprintf("s%d", i+1))
		}
	}
	s.clients = slices.Clone(clients)
	for _, c := range r.PerClient() {
		if !slices.Contains(s.clients, c.Client) {
			s.clients = append(s.clients, c.Client)
		}
	}
	if n := len(s.clients) - maxClients; n > 0 {
		s.clients, more = s.clients[:maxClients], append(more, fmt.Sprintf("%d more clients", n))
	}
	if len(more) > 0 {
		s.rest = evidence.List(more) + " not drawn"
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
	targets, clients := strings.Split(f.Target, "+"), true
	for _, target := range targets {
		if !evidence.IsClient(target) && !s.has(target) {
			s.loose = append(s.loose, f)
			return
		}
		clients = clients && evidence.IsClient(target)
	}
	for _, target := range targets {
		s.on[target] = append(s.on[target], f)
	}
	if clients {
		s.alone = append(s.alone, f)
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
	rest      string   // see Scene
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
type Link struct {
	From, To, Text string
	Late           bool // messages come late: it is not cut
}

// moment is t as the script of the page compares it, in microseconds: everything in the same microsecond counts as
// before it.
func moment(t time.Duration) time.Duration {
	const unit = time.Microsecond
	return t.Round(unit) + unit/2 - 1
}

// At is the scene at t.
func (s *Scene) At(t time.Duration) *Frame {
	t = moment(t)
	f := &Frame{why: s.r.Unsampled(), rest: s.rest}
	for _, name := range s.nodes {
		f.Nodes = append(f.Nodes, s.node(name, t, true))
	}
	for _, name := range s.sentinels {
		f.Sentinels = append(f.Sentinels, s.mark(Card{Name: name, Client: -1, Owner: -1}, name, t))
	}
	beliefs := s.beliefs(t)
	for _, c := range s.clients {
		card := s.client(c, t)
		if card.Record = beliefs[c].text(); card.Record == idle && has(card.State, dead) {
			card.Record = ""
		}
		f.Clients = append(f.Clients, card)
	}
	for _, l := range s.links {
		from, to, _ := strings.Cut(l.Target, ">")
		switch {
		case !inForce(l, t):
		case separates(l) && s.has(from) && s.has(to):
			f.Links = append(f.Links, Link{from, to, looseText(l), !l.CutsOff()})
		default:
			f.Loose = append(f.Loose, looseText(l))
		}
	}
	for _, l := range s.loose {
		if inForce(l, t) {
			f.Loose = append(f.Loose, looseText(l))
		}
	}
	for _, l := range s.alone {
		if inForce(l, t) && !s.hasAll(l) {
			f.Loose = append(f.Loose, looseText(l))
		}
	}
	return f
}

// hasAll reports whether all targets of a fault have cards.
func (s *Scene) hasAll(f *evidence.Fault) bool {
	return !slices.ContainsFunc(strings.Split(f.Target, "+"), func(target string) bool { return !s.has(target) })
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
	case has(c.State, down) && !s.backSince(name, t, last):
		return c
	case last == nil:
		c.State = join(c.State, unsampled)
	case !last.Up && c.State == "":
		c.State = silent
	case last.Up:
		c.State, c.Role = without(c.State, down), s.role(last)
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
	idle      = "no request" // of a client, for this lock
)

// has reports whether a state is among those of a card.
func has(states, state string) bool { return slices.Contains(strings.Split(states, ", "), state) }

// without are the states of a card but for one.
func without(states, state string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(states, ", "), func(s string) bool { return s == state }), ", ")
}

func join(states, state string) string {
	if states == "" {
		return state
	}
	return states + ", " + state
}

// backSince reports whether a sample shows a node up after the last fault by t that ended its process.
func (s *Scene) backSince(name string, t time.Duration, last *history.Sample) bool {
	f := evidence.LastOf(s.on[name], func(f **evidence.Fault) bool { return (*f).EndsProcess() && (*f).EffectTime() <= t })
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
	c.Owner, c.Record = owner, s.r.Word()+": "+text
	if text == absent {
		c.Record = s.r.Word() + " " + absent
	}
	next := s.r.Witness.During(c.Name, t+1, last.Time+s.r.Witness.Gap)
	if len(next) == 0 || !next[0].Up {
		return
	}
	if later, its := s.holder(&next[0]); later != text {
		c.Record, c.Owner, c.Change = s.r.Word()+": "+text+" → "+later, its, true
	}
}

func (s *Scene) holder(x *history.Sample) (text string, client int) {
	if _, held := x.Keys[s.key]; !held {
		return absent, -1
	}
	who := s.r.HeldBy(s.key, x)
	return who.Label, who.Client
}

// client is a client without its belief.
func (s *Scene) client(c int, t time.Duration) Card {
	card := s.mark(Card{Name: evidence.ClientName(c), Client: c, Owner: -1}, cluster.ClientName(c), t)
	if s.crashed(c, t) && card.State == "" {
		card.State = dead
	}
	return card
}
