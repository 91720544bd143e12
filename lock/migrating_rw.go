package lock

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// acquireMigrating decides by the hash alone. Leases that have ended, and writers that keep readers out, are in other
// keys, which are looked up before; the lease of this hold is kept in the hash (rw_hold.lua).
func (s *rwStore) acquireMigrating(ctx context.Context, c claim) (grant, error) {
	sent := time.Now()
	if err := s.node.refuseReleased(ctx, c.tombstoneKey()); err != nil {
		return grant{}, err
	}
	adopted, ended, err := s.endedHolds(ctx, c)
	keptOut := wire.Reply{Value: -1}
	if err == nil && s.mode == "r" {
		keptOut, err = s.node.onKey(ctx, leasesScript, intentsKey(c), "last")
	}
	if err != nil {
		return grant{}, err
	}
	args := []any{
		c.id, c.lease, c.owner, flags(c.nonReentrant, wait.NotifyNone), s.mode, 0, c.tombstoneKey(), keptOut.Int(0), adopted,
	}
	value, err := s.node.DoSafe(ctx, wire.Call{
		Script: s.node.kinds.rw.movingAcquire, Keys: []string{c.key}, Args: append(args, ended...),
	})
	g, err := decodeGrant(value, err, sent)
	if err != nil {
		return g, err
	}
	if !g.ok {
		g.ttl = pollUnsubscribed
		if s.mode == "w" && c.waiterTTL > 0 {
			_, err = s.node.onKey(ctx, leasesScript, intentsKey(c), "add", c.id, c.waiterTTL)
		}
		return g, err
	}
	return s.described(ctx, c, g)
}

// endedHolds returns the holds whose leases have ended by the set of leases, and how often deadlines in the hash have
// been moved to it. The set expires with the last lease in it: without it, all holds that were in the hash before have
// ended, except holds whose deadline is there too.
func (s *rwStore) endedHolds(ctx context.Context, c claim) (adopted int64, ended []any, err error) {
	holds, err := s.node.onKey(ctx, leasesScript, c.key, "holds")
	if err != nil {
		return 0, nil, err
	}
	leases, err := s.node.onKey(ctx, leasesScript, leasesKey(c), "ended")
	if err != nil {
		return 0, nil, err
	}
	if leases.Int(0) == 0 {
		return holds.Int(0), holds.List[1:], nil
	}
	return holds.Int(0), leases.List[1:], nil
}

// described is a grant with the additions of describe.
func (s *rwStore) described(ctx context.Context, c claim, g grant) (grant, error) {
	err := s.describe(ctx, c, &g)
	return g, afterGrant(err)
}

// describe gives a grant its fencing token, a reader the token of the last writer. A writer that has waited no longer
// keeps readers out.
func (s *rwStore) describe(ctx context.Context, c claim, g *grant) error {
	if s.mode == "r" {
		r, err := s.node.onKey(ctx, lastTokenScript, c.tokenKey())
		g.token = r.Int(0)
		return err
	}
	var err error
	if c.waiterTTL > 0 {
		_, err = s.node.Do(ctx, wire.Call{Command: []any{"zrem", intentsKey(c), c.id}})
	}
	if err == nil && g.token == 0 {
		g.token, err = s.node.mint(ctx, c)
	}
	return err
}

func (s *rwStore) releaseMigrating(ctx context.Context, c claim) (int, error) {
	left, err := s.node.releaseOnce(ctx, c.tombstoneKey(), s.tombstoneTTL, plainRecord(), func() (int, error) {
		return decodeRelease(s.node.Do(ctx, wire.Call{
			Script: s.node.kinds.rw.movingRelease, Keys: []string{c.key}, Args: []any{c.id, c.owner},
		}))
	})
	if err != nil {
		return left, err
	}
	for _, key := range []string{leasesKey(c), intentsKey(c)} { // remaining entries expire
		_, _ = s.node.Do(ctx, wire.Call{Command: []any{"zrem", key, c.id}})
	}
	s.node.notify(ctx, readChannel(c.key), "*")
	s.node.notify(ctx, writeChannel(c.key), "0")
	return left, nil
}
