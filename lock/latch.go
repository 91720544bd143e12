package lock

import (
	"context"
	"errors"
)

// Latch lets its waiters pass when it was counted down to zero. It may be armed
// again then; each arming is a generation, and a waiter waits for the one it
// came to. A latch that is not there is not open: it may have been lost. It is
// kept on one master. Several goroutines may use it.
//
// A latch named start is the hash start:
//
//	kind             "latch"
//	count            how often it is to be counted down still; 0: it is open, and stays so
//	gen              generation: when it was armed, in µs of the server's clock
//	since            first of the generations that followed each other without a deletion
//	d:<participant>  one field for each that has counted it down
//
//	{start}:tombstone:<id>  short-lived: what was answered to a request, should it come again
//	{start}:open        the channel that says that the latch has changed
//
// It has no expiry: [Latch.Delete] removes it.
type Latch struct {
	client *Client
	name   string
}

// Latch is the count-down latch of that name. It costs nothing and needs no closing.
func (c *Client) Latch(name string) *Latch { return &Latch{client: c, name: name} }

// LatchState is how a latch stands.
type LatchState struct {
	Count      int    // 0: it is open
	Generation uint64 // never 0
}

// CountDownOptions of one count. The zero value counts once for each call.
type CountDownOptions struct {
	// Participant is who counts: the same one is counted once in a generation,
	// however often it calls. Empty is somebody new.
	Participant string
	// Generation is the one that is meant; 0 is the present one. One that has
	// opened already is left as it is.
	Generation uint64
}

// TrySetCount arms a latch that is open or not there, with a count of n, at least
// one, and returns its generation. Its error is [ErrArmed] if it is counting still.
func (l *Latch) TrySetCount(ctx context.Context, n int) (generation uint64, err error) {
	begun := l.client.startTime()
	if err = checkCount(n, 1); err == nil {
		var got []int64
		got, err = l.change(ctx, counted.arm, 2, n, l.client.o.tombstoneTTL())
		switch {
		case err == nil && got[0] == 0:
			err = ErrArmed
		case err == nil:
			generation = uint64(got[1])
		}
	}
	l.emit(Armed, "", begun, err)
	return generation, failed("arm", "latch", l.name, err)
}

// CountDown counts the latch down by one and says how it stands then. Its error is
// [ErrAbsent] if there is none, [ErrRearmed] if the generation that is meant
// was deleted.
func (l *Latch) CountDown(ctx context.Context, o CountDownOptions) (LatchState, error) {
	if o.Participant == "" {
		o.Participant = l.client.random.id()
	}
	begun := l.client.startTime()
	got, err := l.change(ctx, counted.countDown, 3, o.Participant, o.Generation, l.client.o.tombstoneTTL())
	if err == nil {
		err = latchError(got[0])
	}
	l.emit(Counted, o.Participant, begun, err)
	if err != nil {
		return LatchState{}, failed("count down", "latch", l.name, err)
	}
	return LatchState{Count: int(got[1]), Generation: uint64(got[2])}, nil
}

// State is how the latch stands; [ErrAbsent] if it is not there.
func (l *Latch) State(ctx context.Context) (s LatchState, err error) {
	if err = l.client.checkCounted(l.name); err == nil {
		err = l.client.retry(ctx, func(ctx context.Context) error {
			got, err := l.look(ctx, 0)
			if err == nil {
				s = LatchState{Count: int(got[1]), Generation: uint64(got[2])}
			}
			return err
		})
	}
	return s, failed("look at", "latch", l.name, err)
}

// Wait waits until the latch is open, for the generation that it finds. Its
// error is [ErrAbsent] if there is none, or it is deleted meanwhile,
// [ErrRearmed] if it was deleted and armed again, and the end of ctx.
func (l *Latch) Wait(ctx context.Context) error { return l.WaitGeneration(ctx, 0) }

// WaitGeneration is Wait for one generation, as TrySetCount and CountDown
// returned it; 0 is the one that it finds. It returns at once if that one was open
// before the latch was armed again.
func (l *Latch) WaitGeneration(ctx context.Context, generation uint64) error {
	if err := l.client.checkCounted(l.name); err != nil {
		return failed("wait for", "latch", l.name, err)
	}
	begun := l.client.startTime()
	err := l.client.await(ctx, tagged(l.name, "open"), func(ctx context.Context) (turn, error) {
		got, err := l.look(ctx, generation)
		if err != nil {
			return turn{}, err
		}
		generation = uint64(got[2]) // whatever comes later, this is the one
		if got[0] == 1 {
			return turn{done: true}, nil
		}
		return turn{why: errCounting}, nil
	})
	l.emit(Passed, "", begun, err)
	return failed("wait for", "latch", l.name, err)
}

var errCounting = errors.New("it is not open")

// Delete removes the latch, if it is there. Its waiters get [ErrAbsent].
func (l *Latch) Delete(ctx context.Context) error {
	_, err := l.change(ctx, counted.deleteOne, 1, l.client.o.tombstoneTTL())
	return failed("delete", "latch", l.name, err)
}

// look asks how a generation stands.
func (l *Latch) look(ctx context.Context, generation uint64) ([]int64, error) {
	got, err := l.client.counts(ctx, 3, call{
		script: counted.latchState,
		keys:   []string{l.name},
		args:   []any{generation},
	})
	if err == nil {
		err = latchError(got[0])
	}
	return got, err
}

// change runs a script that changes the latch, under one id for all its tries.
func (l *Latch) change(ctx context.Context, s script, n int, args ...any) (got []int64, err error) {
	if err := l.client.checkCounted(l.name); err != nil {
		return nil, err
	}
	id := l.client.random.id()
	err = l.client.retry(ctx, func(ctx context.Context) (err error) {
		got, err = l.client.keeps(ctx, n, call{
			script: s,
			keys:   []string{l.name, tagged(l.name, "tombstone:"+id), tagged(l.name, "open")},
			args:   args,
		})
		return err
	})
	return got, err
}

// latchError is what a negative answer of a script means.
func latchError(code int64) error {
	switch code {
	case -2:
		return &requestError{rejected, ErrAbsent}
	case -4:
		return &requestError{rejected, ErrRearmed}
	}
	return nil
}
