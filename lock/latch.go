package lock

import (
	"cmp"
	"context"
	"errors"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Latch lets its waiters pass when it has been counted down to zero. After that it may be armed again; each arming
// starts a generation, and a waiter waits for the generation that it finds. A latch that does not exist is not open:
// the server may have lost it. It is kept on one master. Several goroutines may use it.
//
// A latch named start is the hash start:
//
//	kind             "latch"
//	count            how often it is still to be counted down; 0: it is open, and stays so
//	gen              generation: when it was armed, in µs of the server's clock
//	since            first of the generations that followed each other without a deletion
//	d:<participant>  one field for each that has counted it down
//	                 and, after the slot of a cluster has migrated, replies to requests, until they expire
//
//	{start}:tombstone:<id>  short-lived: the reply to a request, in case it arrives again
//	{start}:open            the channel on which changes are published
//
// It has no expiry: [Latch.Delete] removes it.
type Latch struct{ named }

// Latch is the count-down latch of that name. It sends no request and needs no closing.
func (c *Client) Latch(name string) *Latch { return &Latch{c.named(name, nil)} }

// LatchState is the state of a latch.
type LatchState struct {
	Count      int    // 0: it is open
	Generation uint64 // never 0
}

// CountDownOptions are the options of one count. With the zero value, each call counts.
type CountDownOptions struct {
	// Participant identifies who counts: it is counted once per generation, however often it calls. Empty: a new
	// participant.
	Participant string
	// Generation is the generation to count down; 0 is the current one. A generation that has already opened is left
	// unchanged.
	Generation uint64
}

// TrySetCount arms a latch that is open or does not exist, with a count of n, at least one, and returns its generation.
// Its error is [ErrArmed] if it is still counting.
func (l *Latch) TrySetCount(ctx context.Context, n int) (generation uint64, err error) {
	started := l.client.startTime()
	if err = checkCount(n, 1, maxCount); err == nil {
		var r wire.Reply
		r, err = l.change(ctx, l.client.kinds().latch.arm, n)
		switch {
		case err == nil && r.Code == codeRefused:
			err = ErrArmed
		case err == nil:
			generation = uint64(r.Int(0))
		}
	}
	l.emit(ctx, Armed, "", started, err)
	return generation, failed("arm", "latch", l.name, err)
}

// CountDown counts the latch down by one and returns its new state. Its error is [ErrAbsent] if it does not exist,
// [ErrRearmed] if the requested generation was deleted.
func (l *Latch) CountDown(ctx context.Context, o CountDownOptions) (LatchState, error) {
	if o.Participant == "" {
		o.Participant = l.client.random.ID()
	}
	started := l.client.startTime()
	r, err := l.change(ctx, l.client.kinds().latch.count, o.Participant, o.Generation)
	err = cmp.Or(err, codeError(r))
	l.emit(ctx, Counted, o.Participant, started, err)
	return latchState(r, err), failed("count down", "latch", l.name, err)
}

// State is the state of the latch; [ErrAbsent] if it does not exist.
func (l *Latch) State(ctx context.Context) (LatchState, error) {
	err := l.client.checkCounted(l.key)
	var r wire.Reply
	if err == nil {
		r, err = l.client.request(ctx, l.stateCall(0), 2, false)
	}
	err = cmp.Or(err, codeError(r))
	return latchState(r, err), failed("inspect", "latch", l.name, err)
}

// latchState reads the reply to a request for the state, unless that failed with err.
func latchState(r wire.Reply, err error) LatchState {
	if err != nil {
		return LatchState{}
	}
	return LatchState{Count: int(r.Int(0)), Generation: uint64(r.Int(1))}
}

// Wait waits until the latch is open, for the generation that it finds. Its error is [ErrAbsent] if the latch does not
// exist, or is deleted meanwhile, [ErrRearmed] if it was deleted and armed again, and the end of ctx.
func (l *Latch) Wait(ctx context.Context) error { return l.WaitGeneration(ctx, 0) }

// WaitGeneration is Wait for one generation, as TrySetCount and CountDown returned it; 0 is the current one. It returns
// at once if the generation was open before the latch was armed again.
func (l *Latch) WaitGeneration(ctx context.Context, generation uint64) error {
	if err := l.client.checkCounted(l.key); err != nil {
		return failed("wait for", "latch", l.name, err)
	}
	started := l.client.startTime()
	w := &waitLoop{client: l.client, name: l.name, mode: independent, channel: openChannel(l.key)}
	err := w.run(ctx, requestFunc(func(ctx context.Context) (turn, error) {
		r, err := l.client.node.Ask(ctx, l.stateCall(generation), 2)
		if err = cmp.Or(err, codeError(r)); err != nil {
			return turn{}, err
		}
		generation = uint64(r.Int(1)) // later ones do not matter
		return turn{done: r.Code == wire.CodeOK, ttl: -1, why: errCounting}, nil
	}))
	l.emit(ctx, Passed, "", started, err)
	return failed("wait for", "latch", l.name, err)
}

var errCounting = errors.New("it is not open")

// Delete removes the latch, if it exists. Its waiters get [ErrAbsent].
func (l *Latch) Delete(ctx context.Context) error {
	_, err := l.change(ctx, l.client.kinds().latch.remove)
	return failed("delete", "latch", l.name, err)
}

func openChannel(key string) string { return tagged(key, "open") }

// stateCall asks for the state of a generation.
func (l *Latch) stateCall(generation uint64) wire.Call {
	return wire.Call{Script: l.client.kinds().latch.state, Keys: []string{l.key}, Args: []any{generation}}
}

// change runs a script that changes the latch.
func (l *Latch) change(ctx context.Context, s wire.Script, args ...any) (wire.Reply, error) {
	if err := l.client.checkCounted(l.key); err != nil {
		return wire.Reply{}, err
	}
	return l.client.request(ctx, wire.Call{
		Script:  s,
		Keys:    []string{l.key, tombstoneKey(l.key, l.client.random.ID())},
		Args:    append(append([]any{l.client.o.tombstoneTTL()}, args...), openChannel(l.key)),
		Counted: true,
	}, 0, true)
}
