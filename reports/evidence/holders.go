package evidence

import (
	"fmt"
	"slices"
	"sort"
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
	Label   string // "client 3", "clients 1, 2 read", "2 of 3 permits"
	Short   string // the same for a narrow bar
	Earlier bool   // the client no longer relies on this hold
	Permits bool
}

// HeldBy decodes the state of a key in a sample: permits, readers, a writer, an
// owner, or a plain value (SETNX), whose holder follows from the time.
func (r *Run) HeldBy(key string, s *history.Sample) KeyHolder {
	k := s.Keys[key]
	switch {
	case k.Limit > 0:
		text := fmt.Sprintf("%d of %s", k.Permits, format.Count(k.Limit, "permit"))
		return KeyHolder{Client: -1, Label: text, Short: fmt.Sprint(k.Permits), Permits: true}
	case len(k.Owners) > 1:
		return r.readers(k)
	}
	h, found := r.HoldNamed(key, k.Owner)
	if !found {
		if c, known := r.ClientOf(k.Owner); known {
			return named(c, k.Mode, false)
		}
		if r.probing(key, s) {
			return KeyHolder{Client: -1, Label: "acquired by the harness after the run", Short: "harness"}
		}
		if k.Session != "" {
			return r.heldBySession(key, k, s)
		}
		if h = r.abandoned(key, s); h == nil {
			h = r.holdAround(key, s.Time)
		}
	}
	if h == nil {
		return unknownHolder()
	}
	earlier := h.To < s.Sent && h.Ended >= 0
	if earlier && !found {
		if x, is := r.unansweredAt(key, s, h); is {
			return x
		}
	}
	return named(h.Client, k.Mode, earlier)
}

// probing reports whether a key in a sample is that of the acquire with which the harness probes it after the run:
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

func unknownHolder() KeyHolder { return KeyHolder{Client: -1, Label: "unknown owner", Short: "?"} }

// named is a client with its mode.
func named(client int, mode string, earlier bool) KeyHolder {
	x := KeyHolder{Client: client, Label: ClientName(client), Short: fmt.Sprint(client), Earlier: earlier}
	switch mode {
	case "read":
		x.Label += " reads"
	case "write":
		x.Label += " writes"
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

// ownerAt is an owner's id at a key.
type ownerAt struct{ key, owner string }

// indexOwners finds the hold of every owner id in the history, and of every longer
// one in the samples: some locks append a connection or a thread to the id.
func (r *Run) indexOwners() {
	r.ownerOf, r.holdOf = map[string]int{}, map[ownerAt]int{}
	for i := range r.Holds {
		r.holdOf[ownerAt{r.KeyName(r.Holds[i].Key), r.OwnerName(r.Holds[i].Owner)}] = i
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
				r.indexOwner(ownerAt{key, seen})
			}
		}
	}
}

func (r *Run) indexOwner(seen ownerAt) {
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
		if i, ok := r.holdOf[ownerAt{seen.key, owner}]; ok {
			r.holdOf[seen] = i
		}
		return
	}
	r.holdOf[seen] = -1 // not searched again
}

// HoldNamed is the last hold of an owner whose id a server had; false if no hold has that owner.
func (r *Run) HoldNamed(key, owner string) (*Hold, bool) {
	owner, _, _ = strings.Cut(owner, " ") // others store the end of the lease after it
	if i, ok := r.holdOf[ownerAt{key, owner}]; ok && i >= 0 {
		return &r.Holds[i], true
	}
	return nil, false
}

// holdAround is the hold that a key without the name of its owner belongs to at t:
// one whose acquire was asked for and whose release was not, else the last one
// before. nil if there is none.
func (r *Run) holdAround(key string, t time.Duration) *Hold {
	n := sort.Search(len(r.Holds), func(i int) bool { return r.Holds[i].From > t })
	var last *Hold
	for i := n - 1; i >= max(n-64, 0); i-- {
		h := &r.Holds[i]
		if r.KeyName(h.Key) != key {
			continue
		}
		if last == nil {
			last = h
		}
		if h.To >= t {
			return h
		}
	}
	for i := n; i < min(n+8, len(r.Holds)); i++ { // granted at the server, and the reply is on its way
		if h := &r.Holds[i]; r.KeyName(h.Key) == key && h.Asked <= t {
			return h
		}
	}
	return last
}

// ExpiryText says when a key or, in an ensemble, the node of a lock expires.
func (r *Run) ExpiryText(k history.KeyState) string {
	if k.TTL >= 0 {
		return format.Duration(k.TTL) + " left"
	}
	return r.Endless(k.Limit > 0)
}

// Endless is how a key without an expiry of its own ends: that of an ensemble is an ephemeral node, that of etcd has a
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

// KeyAt is the name of the rows of nodes: the lock is a key or, in an ensemble, a node of its tree.
func (r *Run) KeyAt() string {
	if r.Ensemble() {
		return "LOCK AT"
	}
	return "KEY AT"
}

// Ends is how a key without an expiry ends, as a predicate of "and it".
func (r *Run) Ends() string {
	if r.ByMajority() {
		return r.Endless(false)
	}
	return "has no expiry"
}

// SameHolder compares availability and the holder of key.
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
