package lock

import (
	"context"
	_ "embed" // the scripts are part of the program
	"errors"
	"fmt"
	"time"
)

//go:embed script/inspect.lua
var inspectSource string

//go:embed script/force.lua
var forceSource string

// State is who has a mutex, as the server saw it.
type State struct {
	Owner string // empty: the lock is free
	Count int    // holds of the owner
	// Token is the fencing number of the grant; 0: none was minted.
	Token uint64
	// Remaining is until when the lock ends unless it is renewed; negative: no
	// end is known, since somebody removed the expiry.
	Remaining time.Duration
	// Waiting is how many wait in this client; those of others are not known.
	Waiting int
}

// Inspect says who has the lock. On several masters that is who has a majority
// of them. Errors are [ErrForeign], [ErrNoQuorum], and what the server or the
// network said.
func (m *Mutex) Inspect(ctx context.Context) (State, error) {
	votes, err := m.everywhere(ctx, inspectSource)
	if err != nil {
		return State{}, wrapErr("inspect", m.name, err)
	}
	have := make(map[string]int)
	var state State
	for _, v := range votes {
		list, _ := v.([]any)
		if len(list) != 4 {
			continue // free there
		}
		owner, _ := list[0].(string)
		if have[owner]++; have[owner] == len(m.client.masters)/2+1 {
			state = State{
				Owner:     owner,
				Count:     int(integer(list[1])),
				Token:     uint64(integer(list[2])),
				Remaining: time.Duration(integer(list[3])) * time.Millisecond,
			}
		}
	}
	if m.client.queues != nil {
		state.Waiting = m.client.queues.waiting(claim{name: m.name}.freeChannel())
	}
	return state, nil
}

// ForceRelease takes the lock from whoever has it, wakes who waits, and reports
// whether anybody had it. The holder is not asked: it finds out at its next
// renewal, and may be at work until then. After [ErrUnknown] it may or may not
// have been done; it may be called again.
func (m *Mutex) ForceRelease(ctx context.Context) (bool, error) {
	votes, err := m.everywhere(ctx, forceSource)
	had := false
	for _, v := range votes {
		had = had || v == int64(1)
	}
	return had, wrapErr("force the release of", m.name, err)
}

// everywhere runs a script that belongs to no hold on all masters and returns
// the answers, at least those of a majority.
func (m *Mutex) everywhere(ctx context.Context, source string) ([]any, error) {
	if err := checkName(m.name); err != nil {
		return nil, err
	}
	cl := claim{name: m.name}
	what := call{script: newScript(source), keys: []string{m.name, cl.freeChannel()}, whole: true}
	answers := make(chan answer, len(m.client.masters))
	for _, s := range m.client.masters {
		ask := func() {
			value, err := s.node.insist(ctx, m.client, what)
			answers <- answer{value, err}
		}
		if !m.client.bg.start(ask) {
			return nil, ErrClosed
		}
	}
	var values []any
	var errs error
	for range m.client.masters {
		a := <-answers
		if a.err == nil {
			values = append(values, a.value)
		}
		errs = errors.Join(errs, a.err)
	}
	switch {
	case len(values) > len(m.client.masters)/2:
		return values, nil
	case len(m.client.masters) == 1:
		return nil, errs
	}
	return nil, fmt.Errorf("%w: %w", ErrNoQuorum, errs)
}

// insist is do, a few times if it was certainly not done.
func (n *node) insist(ctx context.Context, c *Client, what call) (any, error) {
	for i := 1; ; i++ {
		value, err := n.do(ctx, what)
		if err == nil || i == tries || outcomeOf(err) != notExecuted || !c.pause(ctx, c.backoff()) {
			return value, err
		}
	}
}
