package lock

import (
	"context"
	_ "embed" // the scripts are part of the program
	"fmt"
	"time"
)

//go:embed script/fair_force.lua
var fairForceSource string

//go:embed script/fair_queue_of.lua
var fairQueueOfSource string

// Queue is the owners that wait for the lock, the next one first, as the server
// saw it; those presumed dead are left out. Errors are [ErrForeign], [ErrOneMaster],
// and what the server or the network said.
func (m *FairMutex) Queue(ctx context.Context) ([]string, error) {
	value, err := m.run(ctx, newScript(mintSource+fairQueueSource+fairQueueOfSource))
	if err != nil {
		return nil, wrapErr("list who waits for", m.name, err)
	}
	list, ok := value.([]any)
	if !ok {
		return nil, wrapErr("list who waits for", m.name, fmt.Errorf("the server answered %v, want a list", value))
	}
	owners := make([]string, len(list))
	for i, v := range list {
		owners[i] = fmt.Sprint(v)
	}
	return owners, nil
}

// ForceRelease takes the lock from whoever has it and hands it over to the first
// who waits. It reports whether anybody had it. The holder is not asked: it finds
// out at its next renewal, and may be at work until then. After [ErrUnknown] it
// may or may not have been done.
func (m *FairMutex) ForceRelease(ctx context.Context) (bool, error) {
	value, err := m.run(ctx, newScript(mintSource+fairQueueSource+fairForceSource))
	return value == int64(1), wrapErr("force the release of", m.name, err)
}

func (m *FairMutex) run(ctx context.Context, s script) (any, error) {
	c := claim{name: m.name}
	return m.client.runOn(ctx, c, call{script: s, keys: fairKeys(c)})
}

// RWState is who has a [RW], as the server saw it.
type RWState struct {
	Writer  string         // the owner that writes; empty: nobody
	Writes  int            // its holds
	Readers map[string]int // holds for reading of each owner; empty: nobody reads
	// Intents is how many writers wait and keep readers away.
	Intents int
	// Token is the last fencing number; 0: none is known.
	Token uint64
	// Remaining is until when the last hold ends unless it is renewed; 0: the lock is free.
	Remaining time.Duration
}

// Inspect says who has the lock. Errors are [ErrForeign], [ErrOneMaster], and
// what the server or the network said.
func (l *RW) Inspect(ctx context.Context) (RWState, error) {
	value, err := l.run(ctx, func(s *rwScripts) script { return s.inspect })
	if err != nil {
		return RWState{}, wrapErr("inspect", l.name, err)
	}
	list, ok := value.([]any)
	if !ok || len(list) < 3 {
		return RWState{}, wrapErr("inspect", l.name, fmt.Errorf("the server answered %v, want a list", value))
	}
	n, err := integers(list[:3], 3)
	if err != nil {
		return RWState{}, wrapErr("inspect", l.name, err)
	}
	state := RWState{
		Remaining: time.Duration(n[0]) * time.Millisecond,
		Token:     uint64(n[1]),
		Intents:   int(n[2]),
		Readers:   make(map[string]int),
	}
	for _, v := range list[3:] {
		state.add(fmt.Sprint(v))
	}
	return state, nil
}

// add counts a hold: r or w, a blank, and the owner.
func (s *RWState) add(hold string) {
	if len(hold) < 2 {
		return
	}
	if hold[0] == 'w' {
		s.Writer = hold[2:]
		s.Writes++
		return
	}
	s.Readers[hold[2:]]++
}

// ForceRelease takes the lock from all who have it and reports whether anybody
// had it. Holders are not asked: they find out at their next renewal, and may be
// at work until then. After [ErrUnknown] it may or may not have been done.
func (l *RW) ForceRelease(ctx context.Context) (bool, error) {
	value, err := l.run(ctx, func(s *rwScripts) script { return s.force })
	return value == int64(1), wrapErr("force the release of", l.name, err)
}

func (l *RW) run(ctx context.Context, which func(*rwScripts) script) (any, error) {
	if !l.client.single {
		return nil, ErrOneMaster
	}
	c := claim{name: l.name}
	return l.client.runOn(ctx, c, call{script: which(l.client.readers.scripts), keys: rwKeys(c)})
}

// runOn runs a script that belongs to no hold.
func (c *Client) runOn(ctx context.Context, cl claim, what call) (any, error) {
	if !c.single {
		return nil, ErrOneMaster
	}
	if err := checkName(cl.name); err != nil {
		return nil, err
	}
	what.whole = true
	for i := 1; ; i++ {
		value, err := c.node.do(ctx, what)
		if err == nil || i == tries || outcomeOf(err) != notExecuted || !c.pause(ctx, c.backoff()) {
			return value, err
		}
	}
}
