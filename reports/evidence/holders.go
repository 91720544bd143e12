package evidence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// KeyHolder is who holds a key at a node, as the timeline labels it.
type KeyHolder struct {
	Client  int    // -1: several, or unknown
	Value   string // of the key; empty: it has none, or several
	Label   string // "client 3", "client 3 · count 2", "clients 1, 2 read", "2 of 3 permits"
	Short   string // the same for a narrow bar
	Earlier bool   // the client no longer relies on this hold
	Permits bool
}

// HeldBy decodes the state of a key in a sample: permits, readers, a writer, an owner, or a value that names nobody,
// whose owner follows from the time at which it appeared.
func (r *Run) HeldBy(key string, s *history.Sample) KeyHolder {
	k := s.Keys[key]
	switch {
	case k.Limit > 0:
		text := fmt.Sprintf("%d of %s", k.Permits, format.Count(k.Limit, "permit"))
		return KeyHolder{Client: -1, Label: text, Short: fmt.Sprint(k.Permits), Permits: true}
	case len(k.Owners) > 1:
		return r.readers(k)
	case r.probing(key, s):
		return KeyHolder{Client: -1, Label: "acquired by the harness after the run", Short: "harness"}
	}
	client, h := r.ownerAt(key, k, s.Time)
	switch {
	case client >= 0:
		return named(client, k, h != nil && h.To < s.Sent && h.Ended >= 0)
	case k.Session != "":
		return r.heldBySession(key, k, s)
	}
	return unknownHolder(k)
}

// ownerAt is the client to which the value of a key belongs, and its hold; -1: it is not known, nil: it has none.
func (r *Run) ownerAt(key string, k history.KeyState, t time.Duration) (client int, h *Hold) {
	if span, client := r.Kept.Whose(key, k.Owner, t); client >= 0 {
		return client, r.HoldOf(span)
	}
	if h, found := r.HoldNamed(key, k.Owner); found {
		return h.Client, h
	}
	if c, known := r.ClientOf(k.Owner); known {
		return c, nil
	}
	return -1, nil
}

// probing reports whether a key in a sample belongs to the acquire with which the harness probes it after the run:
// nobody else had left it.
func (r *Run) probing(key string, s *history.Sample) bool {
	if strings.Contains(s.Keys[key].Owner, history.ProbeOwner) {
		return true
	}
	noted := slices.ContainsFunc(r.History.Leftovers, func(l history.Leftover) bool {
		return r.KeyName(l.Key) == key && l.Time <= s.Time && len(l.Keys) == 0
	})
	return noted && slices.ContainsFunc(r.History.Probes, func(p history.Probe) bool {
		return r.KeyName(p.Key) == key && s.Sent <= p.Time && p.Outcome == history.OK
	})
}

func unknownHolder(k history.KeyState) KeyHolder {
	x := KeyHolder{Client: -1, Value: kept.Bare(k.Owner), Label: "unknown owner", Short: "?"}
	if k.Owner != "" {
		x.Label = "unknown value"
	}
	return x
}

// named is a client with its mode and its hold count, if it holds the lock more than once.
func named(client int, k history.KeyState, earlier bool) KeyHolder {
	x := KeyHolder{Client: client, Value: kept.Bare(k.Owner), Label: ClientName(client), Short: fmt.Sprint(client),
		Earlier: earlier}
	switch k.Mode {
	case "read":
		x.Label += " reads"
	case "write":
		x.Label += " writes"
	}
	if k.Count > 1 {
		x.Label += fmt.Sprintf(" · count %d", k.Count)
	}
	if earlier {
		x.Label += " (earlier hold)"
	}
	return x
}

// readers are several owners that share a lock.
func (r *Run) readers(k history.KeyState) KeyHolder {
	var clients []int
	unknown := 0
	for _, o := range k.Owners {
		if c, ok := r.ClientOf(o); ok {
			clients = append(clients, c)
		} else {
			unknown++
		}
	}
	slices.Sort(clients)
	text := "clients"
	for i, c := range clients {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d", c)
	}
	if unknown > 0 {
		text += fmt.Sprintf(" and %s", format.Count(unknown, "unknown owner"))
	}
	return KeyHolder{Client: -1, Label: text + " read", Short: format.Count(len(k.Owners), "reader")}
}

// ownerKey is an owner's id at a key.
type ownerKey struct{ key, owner string }

// indexOwners finds the hold of every owner id in the history, and of every longer
// one in the samples: some locks append a connection or a thread to the id.
func (r *Run) indexOwners() {
	r.ownerOf, r.holdOf, r.holdBy = map[string]int{}, map[ownerKey]int{}, map[int32]int{}
	for i := range r.Holds {
		r.holdBy[r.Holds[i].Span] = i
		r.holdOf[ownerKey{r.KeyName(r.Holds[i].Key), r.OwnerName(r.Holds[i].Owner)}] = i
	}
	for s := range Each(r.History.Spans) {
		r.ownerOf[r.OwnerName(s.Owner)] = r.ClientIn(s.Process)
	}
	if len(r.History.Owners) > kept.MaxSearched {
		return
	}
	for i := range r.Samples {
		for key, k := range r.Samples[i].Keys { // in any order: each is looked up by itself
			for _, seen := range append(k.Owners, k.Owner) {
				r.indexOwner(ownerKey{key, seen})
			}
		}
	}
}

func (r *Run) indexOwner(seen ownerKey) {
	if _, known := r.ownerOf[seen.owner]; known {
		return
	}
	if _, known := r.holdOf[seen]; known {
		return
	}
	for _, owner := range r.History.Owners {
		if !sameOwner(seen.owner, owner) {
			continue
		}
		if c, ok := r.ownerOf[owner]; ok {
			r.ownerOf[seen.owner] = c
		}
		if i, ok := r.holdOf[ownerKey{seen.key, owner}]; ok {
			r.holdOf[seen] = i
		}
		return
	}
	r.holdOf[seen] = -1 // not searched again
}

// HoldNamed is the last hold of an owner whose id a server had; false if no hold has that owner.
func (r *Run) HoldNamed(key, owner string) (*Hold, bool) {
	if i, ok := r.holdOf[ownerKey{key, kept.Bare(owner)}]; ok && i >= 0 {
		return &r.Holds[i], true
	}
	return nil, false
}

// ExpiryText says when a key or, in an ensemble, the node of a lock expires.
func (r *Run) ExpiryText(k history.KeyState) string {
	if k.TTL >= 0 {
		return format.Duration(k.TTL) + " left"
	}
	return r.Endless(k.Limit > 0)
}

// Endless is how a key without an expiry of its own ends: in an ensemble it is an ephemeral node, in etcd it has a
// lease. Permits end one by one, if they have leases.
func (r *Run) Endless(permits bool) string {
	each := ""
	if permits {
		each = "each "
	}
	switch r.Manifest.Topology.Kind {
	case cluster.ZooKeeper:
		return each + "ends with its session"
	case cluster.Etcd:
		return each + "ends with its lease"
	}
	leased := func(h Hold) bool { return h.Permits > 0 && h.ValidUntil() > 0 }
	if permits && slices.ContainsFunc(r.Holds, leased) {
		return each + "ends with its lease"
	}
	return "no expiry"
}

// ClientOf is the client of an owner id that a server had.
func (r *Run) ClientOf(owner string) (int, bool) {
	c, ok := r.ownerOf[owner]
	return c, ok
}

// Word is the word for a lock at the servers: a key of Redis or etcd, else a lock.
func (r *Run) Word() string {
	if t := r.Manifest.Topology; r.Ensemble() || t.Database() || t.Kind == cluster.Command {
		return "lock"
	}
	return "key"
}

// Ends is how a key without an expiry ends, as a predicate of "and it".
func (r *Run) Ends() string {
	if r.ByMajority() {
		return r.Endless(false)
	}
	return "has no expiry"
}

// SameHolder compares availability, and the holder and the value of key.
func (r *Run) SameHolder(key string) func(a, b *history.Sample) bool {
	return func(a, b *history.Sample) bool {
		_, x := a.Keys[key]
		_, y := b.Keys[key]
		if a.Up != b.Up || x != y {
			return false
		}
		return !x || r.HeldBy(key, a) == r.HeldBy(key, b)
	}
}

// KeptWithoutExpiry is the last sample of an interval in which a master has the key without an expiry, if every sample
// as master of the interval has it; nil if there is none.
func (r *Run) KeptWithoutExpiry(key string, w Interval) *history.Sample {
	var kept *history.Sample
	for _, node := range r.Witness.Nodes {
		samples := r.Witness.During(node, w.From, w.Until)
		without := FirstOf(samples, func(x *history.Sample) bool {
			k, held := x.Keys[key]
			return IsMaster(x) && (!held || k.TTL >= 0)
		})
		last := LastOf(samples, IsMaster)
		if without == nil && last != nil && (kept == nil || last.Time > kept.Time) {
			kept = last
		}
	}
	return kept
}

// KeptBy is the last sample of an interval in which a node has the key without an expiry, if the key was this client's
// in each sample of the interval; nil if there is none.
func (r *Run) KeptBy(client int, key string, w Interval) (kept *history.Sample) {
	for _, node := range r.Witness.Nodes {
		var last *history.Sample
		for x := range Each(r.Witness.During(node, w.From, w.Until)) {
			k, held := x.Keys[key]
			if held && k.TTL < 0 && r.HeldBy(key, x).Client == client {
				last = x
			} else if last != nil {
				last = nil
				break
			}
		}
		if last != nil && (kept == nil || last.Time > kept.Time) {
			kept = last
		}
	}
	return kept
}
