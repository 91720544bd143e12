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
	"github.com/lockchaos/lockchaos/promise"
)

const (
	leaseWait        = 12 * time.Second // for all leases to expire, on real servers
	virtualLeaseWait = 10 * time.Minute // the same in virtual time
	leasePollEvery   = 20 * time.Millisecond
	leasePolls       = 500
	probeWait        = 2 * time.Second  // timeout of a probe's acquire
	maxUnknown       = 4                // probes of unknown outcome: a poll may be in flight when the wait ends
	waiterTimeout    = 10 * time.Second // how long a lock may keep a dead waiter (docs/explanation/checkers.md, wake-up)
	replicaWait      = 3 * time.Second  // for a replica to come back
	replicaPollEvery = 100 * time.Millisecond
	maxProbed        = 100             // keys; more would take longer than the run
	keptLong         = 2 * time.Minute // beyond the lease: keys that a server keeps for longer are not removed in time
)

// finalChecks records the leftovers at the servers after the run, and whether every lock can still be acquired. The
// permitted leftovers of a lock are in its catalog row.
func (s *stage) finalChecks(ctx context.Context) {
	keys := s.run.params.KeyNames()
	if len(keys) > maxProbed || !s.waitUntilFree(ctx, keys) {
		return
	}
	left, ok := s.leftovers(ctx)
	for _, key := range keys {
		if ok {
			s.record.Note(history.Nemesis, history.LeftoverEvent, key, &history.Value{Left: left[key]})
		}
		s.probe(ctx, key)
	}
}

// waitUntilFree waits until every hold was released or has expired, except holds without a lease, and at most until
// every lease of the workload has ended: a key that lives longer is for the checkers to judge. An acquire of unknown
// outcome counts as a hold, even if no server shows one. At a fair lock it also waits until the queue has only live
// waiters. False: the leases are too long to wait for, or a fault has set the clocks that end them, or ctx has ended.
func (s *stage) waitUntilFree(ctx context.Context, keys []string) bool {
	lease, most := s.run.params.Lease, leaseWait
	if s.run.Backend.Facts().Deterministic {
		most = virtualLeaseWait
	}
	// The lock may renew by itself, with a lease of its own; a session is longer than the lock promises.
	longest := max(lease, s.track.longestPromise())
	wait := longest + longest/4 + time.Second
	if lease == 0 { // the lock may not say how long its lease is
		wait = max(wait, leaseWait)
	}
	wait = min(wait, most)
	end := time.Now().Add(wait)
	doubt := s.track.doubtUntil(longest)
	if doubt.After(end) {
		doubt = time.Time{}
	}
	if queued := s.track.queuedUntil(lease); s.can.Has(promise.Fair) && queued.After(doubt) && lease < most {
		doubt = queued
	}
	if d := time.Until(doubt); d > 0 && !s.clock.Sleep(ctx, d.Truncate(time.Millisecond)+time.Millisecond) {
		return false
	}
	poll := max(leasePollEvery, (wait / leasePolls).Truncate(time.Millisecond))
	for s.anyLeased(ctx, keys) {
		if time.Now().After(end) {
			return wait > lease && !s.run.Scenario.Requirements().Clocks
		}
		if !s.clock.Sleep(ctx, poll) {
			return false
		}
	}
	return true
}

// anyLeased reports whether a server shows a hold that ends by itself: with its lease or with a session. ZooKeeper ends
// sessions at its ticks, up to one after their timeout, and samples of permits name no session.
func (s *stage) anyLeased(ctx context.Context, keys []string) bool {
	sessions := s.cluster.Topology().Ensemble()
	for _, n := range s.cluster.Nodes() {
		seen := s.witness.Sample(ctx, n.Name, keys)
		for _, key := range seen.Keys { // in any order: one is enough
			if seen.Role == "master" && (key.TTL >= 0 || key.Session != "" || sessions && key.Permits > 0) {
				return true
			}
		}
	}
	return false
}

// leftovers are, by lock, the keys that should not be there and will not be removed soon; false if this cannot be
// known. A master that a failover has replaced may still have its keys: where all masters are of all keys, each of them
// has to have a key.
func (s *stage) leftovers(ctx context.Context) (map[string]*history.LeftoverValue, bool) {
	inventory, ok := s.cluster.(cluster.Inventory)
	if !ok || s.run.hasProgram() { // a client of the user's own: its permitted leftovers are not known
		return nil, false
	}
	left := map[string]*history.LeftoverValue{}
	for _, key := range s.run.params.KeyNames() {
		left[key] = &history.LeftoverValue{}
	}
	kept, expire := s.keptKeys()
	masters, found := 0, map[string]int{} // by name: how many masters have the key
	for _, n := range s.cluster.Nodes() {
		if s.witness.Sample(ctx, n.Name, nil).Role != "master" {
			continue // it is behind: the release of a moment ago has not reached it, or it is down
		}
		keys, err := inventory.Keys(ctx, n.Name)
		if err != nil {
			continue // the node is down
		}
		masters++
		for name, ttl := range keys { // in any order: counted
			stays := ttl < 0 || ttl > s.run.params.Lease+keptLong
			allowed := kept[name] && (ttl >= 0 || !expire[name])
			if stays && !allowed {
				found[name]++
			}
		}
	}
	several := slices.Contains([]string{cluster.Sharded, cluster.Quorum}, s.cluster.Topology().Kind)
	for name, n := range found { // in any order: sorted below
		if key := lockOf(name, left); key != "" && (n == masters || several) {
			left[key].Keys = append(left[key].Keys, name)
		}
	}
	for _, l := range left { // in any order: each is sorted
		slices.Sort(l.Keys)
	}
	return left, true
}

// keptKeys are the keys that the locks of the run may leave at the servers, and which of them have to expire some day.
func (s *stage) keptKeys() (kept, expire map[string]bool) {
	kept, expire = map[string]bool{}, map[string]bool{}
	for _, key := range s.run.params.KeyNames() {
		for _, row := range s.run.locks {
			if row.PersistentKeys == nil {
				continue
			}
			for _, name := range row.PersistentKeys(key) {
				kept[name] = true
			}
			if row.ExpiringKeys == nil {
				continue
			}
			for _, name := range row.ExpiringKeys(key) {
				expire[name] = true
			}
		}
	}
	return kept, expire
}

// lockOf is the lock that a key at a server belongs to: its own key, or one with its name as hash tag, or a
// node below it; "" if it belongs to none.
func lockOf(name string, locks map[string]*history.LeftoverValue) string {
	if _, ok := locks[name]; ok {
		return name
	}
	_, tag, _ := strings.Cut(name, "{")
	tag, _, tagged := strings.Cut(tag, "}")
	if _, ok := locks[tag]; ok && tagged {
		return tag
	}
	for key := range locks { // in any order: no name is a node below another
		if strings.HasPrefix(name, key+"/") {
			return key
		}
	}
	return ""
}

// probe records whether a client that is alive can acquire key. A latch is not acquired.
func (s *stage) probe(ctx context.Context, key string) {
	if s.can.Has(promise.Latch) {
		return
	}
	for i, session := range s.currentSessions() {
		if !session.Alive() {
			continue
		}
		outcome, why := s.probeUntilSettled(ctx, i, key)
		s.record.Complete(history.Event{Process: history.Nemesis, F: history.ProbeEvent, Key: key}, outcome, nil, why)
		if outcome == history.OK && s.can.Has(promise.Permits) {
			s.permitsLeft(ctx, key)
		}
		return
	}
}

// permitsLeft records permits that are still taken. The probe has returned its own, and expired ones. Where two nodes
// are masters of the key, the smaller number counts: a master that a failover replaced keeps its permits until it is
// made a replica. In a Redis Cluster it cannot be distinguished from the master of other keys.
func (s *stage) permitsLeft(ctx context.Context, key string) {
	sharded := s.cluster.Topology().Kind == cluster.Sharded
	taken := -1
	for _, n := range s.cluster.Nodes() {
		seen := s.witness.Sample(ctx, n.Name, []string{key})
		permits := seen.Keys[key].Permits // 0: none is taken, or the node does not have the key
		if seen.Role == "master" && (permits > 0 || !sharded) && (taken < 0 || permits < taken) {
			taken = permits
		}
	}
	if taken > 0 {
		v := &history.Value{Left: &history.LeftoverValue{Permits: taken}}
		s.record.Note(history.Nemesis, history.LeftoverEvent, key, v)
	}
}

// noReplicas begins the error of a server that enforces min-replicas-to-write.
const noReplicas = "NOREPLICAS"

// probeUntilSettled retries until the outcome is about the lock. A grant that needs a replica is refused until the
// old master has become one, for which Sentinel takes ten seconds; that is no defect of the lock, and after
// replicaWait the outcome is unknown.
func (s *stage) probeUntilSettled(ctx context.Context, i int, key string) (outcome history.Type, why *history.Error) {
	end := time.Now().Add(replicaWait)
	for unknown := 0; ; {
		outcome, why = s.probeOnce(ctx, i, key)
		noReplica := outcome == history.Fail && (why.Code == "too-few-replicas" || strings.Contains(why.Text, noReplicas))
		switch {
		case outcome == history.Info:
			unknown++
		case !noReplica:
			return outcome, why
		}
		late := noReplica && time.Now().After(end)
		if late || unknown == maxUnknown || !s.clock.Sleep(ctx, replicaPollEvery) {
			return history.Info, why
		}
	}
}

func (s *stage) probeOnce(ctx context.Context, i int, key string) (history.Type, *history.Error) {
	ctx, cancel := context.WithTimeout(ctx, 2*probeWait)
	defer cancel()
	owner := fmt.Sprint(history.ProbeOwner, i)
	p := s.run.params
	a := client.Acquire{Key: key, Owner: owner, Wait: probeWait, Lease: p.Lease, Limit: p.Permits}
	reply, err := s.clients[i].Do(ctx, client.Request{Op: history.Acquire, Acquire: a})
	if err != nil {
		return history.Info, &history.Error{Code: history.CodeUnasked, Text: err.Error()}
	}
	if t := client.TypeOf(reply); t != history.OK {
		return t, &history.Error{Code: reply.Code, Text: reply.Error}
	}
	_, _ = s.clients[i].Do(ctx, client.Request{Op: history.Release, Acquire: client.Acquire{Key: key, Owner: owner}})
	return history.OK, nil
}
