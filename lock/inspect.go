package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// State says who holds a mutex, as the server saw it.
type State struct {
	Owner string // empty: the lock is free
	Count int    // holds of the owner
	// Token is the fencing token of the grant; 0: none was minted. In [Redisson]'s layout it is the last token that was
	// minted for the lock.
	Token int64
	// Metadata is the text of [WithMetadata]; empty: none.
	Metadata string
	// Remaining is how long the lock stays held unless it is renewed; negative: forever, because its expiry was removed.
	Remaining time.Duration
	// Waiting is the number of waiters of this client; waiters of other clients are not known.
	Waiting int
}

// Inspect reports who holds the lock. On several masters that is the owner that has a majority of them. Errors are
// [ErrForeign], [ErrNoQuorum], and errors of the server or the network.
func (m *Mutex) Inspect(ctx context.Context) (State, error) {
	script := inspectScript
	if m.client.o.Layout == Redisson {
		script = redissonScript.inspect
	}
	replies, err := m.everywhere(ctx, script)
	if err != nil {
		return State{}, failed("inspect", "lock", m.name, err)
	}
	votes := make(map[string]int)
	var state State
	for _, r := range replies {
		if r.Code != wire.CodeOK || len(r.List) == 0 {
			continue // free there
		}
		owner := fmt.Sprint(r.List[0])
		if votes[owner]++; votes[owner] == len(m.client.masters)/2+1 {
			state = State{
				Owner:     owner,
				Count:     int(r.Int(1)),
				Token:     r.Int(2),
				Remaining: time.Duration(r.Int(3)) * time.Millisecond,
				Metadata:  r.Text(4),
			}
		}
	}
	if m.client.queues != nil {
		state.Waiting = m.client.queues.Waiting(m.lock().freeChannel())
	}
	return state, nil
}

// ForceRelease takes the lock from its owner, wakes waiters, and reports whether it was held. The holder is not
// notified: it learns of it at its next renewal, and may be at work until then. After [ErrUnknown] it may or may not
// have been done; it may be called again.
func (m *Mutex) ForceRelease(ctx context.Context) (bool, error) {
	script := forceScript
	if m.client.o.Layout == Redisson {
		script = redissonScript.force
	}
	replies, err := m.everywhere(ctx, script)
	held := false
	for _, r := range replies {
		held = held || r.Code == wire.CodeOK
	}
	return held, failed("force the release of", "lock", m.name, err)
}

// lock is a claim of no hold.
func (m *Mutex) lock() claim { return claim{key: m.key, layout: m.client.o.Layout} }

// everywhere runs a script that belongs to no hold on all masters and returns the replies, at least from a majority.
func (m *Mutex) everywhere(ctx context.Context, s wire.Script) ([]wire.Reply, error) {
	if err := checkName(m.key); err != nil {
		return nil, err
	}
	what := wire.Call{Script: s, Keys: []string{m.key}, Args: []any{m.lock().freeChannel()}}
	if m.client.o.Layout == Redisson {
		what.Keys = append(what.Keys, m.lock().tokenKey())
	}
	type result struct {
		reply wire.Reply
		err   error
	}
	masters := m.client.masters
	results := make(chan result, len(masters))
	for _, s := range masters {
		ask := func() {
			value, err := m.client.query(ctx, s.node, what)
			var r wire.Reply
			if err == nil {
				r, err = decode(value, 0)
			}
			results <- result{r, err}
		}
		if !m.client.bg.Start(ask) {
			return nil, ErrClosed
		}
	}
	var replies []wire.Reply
	var errs error
	for range masters {
		r := <-results
		if r.err == nil {
			replies = append(replies, r.reply)
		}
		errs = errors.Join(errs, r.err)
	}
	switch {
	case len(replies) > len(masters)/2:
		return replies, nil
	case len(masters) == 1:
		return nil, errs
	}
	return nil, fmt.Errorf("%w: %w", ErrNoQuorum, errs)
}
