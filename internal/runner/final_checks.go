package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// How the end of a run is looked at. Watchdogs' leases are longer than anybody
// wants to wait: after restWait the look is left out, and says nothing.
const (
	leaseWait        = 12 * time.Second // for every lease to run out
	leasePollEvery   = 20 * time.Millisecond
	probeWait        = 2 * time.Second // for the harness's own acquire
	maxUnknown       = 3               // that may have an unknown outcome
	replicaWait      = 3 * time.Second // for a replica to come back
	replicaPollEvery = 100 * time.Millisecond
	maxProbed        = 100 // keys; more would make the end longer than the run
)

// rest looks at the cluster when everything is over: what was left behind, and
// whether every lock can still be had. What a lock may keep is in its row.
func (s *stage) finalChecks(ctx context.Context) {
	keys := s.run.params.KeyNames()
	if len(keys) > maxProbed || !s.waitUntilFree(ctx, keys) {
		return
	}
	left, looked := s.leftovers(ctx)
	for _, key := range keys {
		if looked {
			s.record.Note(history.Nemesis, history.LeftoverEvent, key, &history.Value{Left: left[key]})
		}
		s.probe(ctx, key)
	}
}

// calmAtLast waits until no master has a lock on any of keys that could still
// come free by itself: every hold was given back or has run out, or never will,
// because it has no lease. False: it did not come to that, or ctx ended.
func (s *stage) waitUntilFree(ctx context.Context, keys []string) bool {
	end := time.Now().Add(min(leaseWait, s.run.params.Lease+time.Second))
	for {
		if !s.anyLeased(ctx, keys) {
			return true
		}
		if time.Now().After(end) || !sleep(ctx, leasePollEvery) {
			return false
		}
	}
}

func (s *stage) anyLeased(ctx context.Context, keys []string) bool {
	for _, n := range s.cluster.Nodes() {
		seen := s.witness.sampler.Sample(ctx, n.Name, keys)
		for _, key := range seen.Keys { // order does not matter: one is enough
			if seen.Role == "master" && key.TTL >= 0 {
				return true
			}
		}
	}
	return false
}

// leftBehind lists, by lock, the keys that no time to live will remove. False
// if nobody could look.
func (s *stage) leftovers(ctx context.Context) (map[string]*history.LeftoverValue, bool) {
	inventory, ok := s.cluster.(cluster.Inventory)
	if !ok || s.run.lock.Open == nil { // a client of the user's own: what it may keep is not known
		return nil, false
	}
	left := map[string]*history.LeftoverValue{}
	kept := map[string]bool{}
	for _, key := range s.run.params.KeyNames() {
		left[key] = &history.LeftoverValue{}
		if s.run.lock.PersistentKeys == nil {
			continue
		}
		for _, name := range s.run.lock.PersistentKeys(key) {
			kept[name] = true
		}
	}
	for _, n := range s.cluster.Nodes() {
		keys, err := inventory.Keys(ctx, n.Name)
		if err != nil {
			continue // a node that is away has left nothing that anybody could find
		}
		for name, ttl := range keys { // order does not matter: sorted below
			if key := lockOf(name, left); ttl < 0 && key != "" && !kept[name] && !slices.Contains(left[key].Keys, name) {
				left[key].Keys = append(left[key].Keys, name)
			}
		}
	}
	for _, l := range left { // order does not matter: each is sorted by itself
		slices.Sort(l.Keys)
	}
	return left, true
}

// ownerOf is the lock that a key at a server belongs to: its own key, or one
// with its name as hash tag; "" if it is none of ours.
func lockOf(name string, locks map[string]*history.LeftoverValue) string {
	if _, ok := locks[name]; ok {
		return name
	}
	for key := range locks { // order does not matter: hash tags differ
		if tag := "{" + key + "}"; len(name) > len(tag) && name[:len(tag)] == tag {
			return key
		}
	}
	return ""
}

// probe acquires key once through a client that is alive, and gives it back.
func (s *stage) probe(ctx context.Context, key string) {
	for i, session := range s.sessions {
		if !session.Alive() {
			continue
		}
		outcome, why := s.probeUntilSettled(ctx, i, key)
		s.record.Complete(history.Event{Process: history.Nemesis, F: history.ProbeEvent, Key: key}, outcome, nil, why)
		return
	}
}

// noReplicas begins the refusal of a server with min-replicas-to-write.
const noReplicas = "NOREPLICAS"

// settled asks until the answer is about the lock. Who runs out of time cannot
// know. A grant that has to be at a replica is refused until the old master is
// one, which Sentinel takes ten seconds for: that says nothing of the lock, and is
// not waited for to the end.
func (s *stage) probeUntilSettled(ctx context.Context, i int, key string) (outcome history.Type, why *history.Error) {
	end := time.Now().Add(replicaWait)
	for unknown := 0; ; {
		outcome, why = s.probeOnce(ctx, i, key)
		lone := outcome == history.Fail && (why.Code == "too-few-replicas" || strings.Contains(why.Text, noReplicas))
		switch {
		case outcome == history.Info:
			if unknown++; unknown == maxUnknown {
				return outcome, why
			}
		case !lone:
			return outcome, why
		}
		if time.Now().After(end) || !sleep(ctx, replicaPollEvery) {
			return history.Info, why
		}
	}
}

func (s *stage) probeOnce(ctx context.Context, i int, key string) (history.Type, *history.Error) {
	ctx, cancel := context.WithTimeout(ctx, 2*probeWait)
	defer cancel()
	owner := fmt.Sprintf("probe-%d", i)
	p := s.run.params
	a := client.Acquire{Key: key, Owner: owner, Wait: probeWait, Lease: p.Lease, Limit: p.Permits}
	reply, err := s.clients[i].Do(ctx, client.Request{Op: history.Acquire, Acquire: a})
	if err != nil {
		return history.Info, &history.Error{Code: "client-error", Text: err.Error()}
	}
	if t := client.TypeOf(reply); t != history.OK {
		return t, &history.Error{Code: reply.Code, Text: reply.Error}
	}
	_, _ = s.clients[i].Do(ctx, client.Request{Op: history.Release, Acquire: client.Acquire{Key: key, Owner: owner}})
	return history.OK, nil
}
