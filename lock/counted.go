package lock

import (
	"context"
	_ "embed" // the scripts are part of the program
	"fmt"
	"time"
)

// The kinds that count - semaphores and latches - are one hash at the name
// itself, whose field kind says which it is, and companions under its hash tag.
// They live on one master: counters on several drift apart.

//go:embed script/counted.lua
var countedSource string

//go:embed script/semaphore_set.lua
var semaphoreSetSource string

//go:embed script/semaphore_acquire.lua
var semaphoreAcquireSource string

//go:embed script/semaphore_release.lua
var semaphoreReleaseSource string

//go:embed script/semaphore_state.lua
var semaphoreStateSource string

//go:embed script/permits_acquire.lua
var permitsAcquireSource string

//go:embed script/permits_release.lua
var permitsReleaseSource string

//go:embed script/permits_renew.lua
var permitsRenewSource string

//go:embed script/latch_arm.lua
var latchArmSource string

//go:embed script/latch_count.lua
var latchCountSource string

//go:embed script/latch_state.lua
var latchStateSource string

//go:embed script/latch_delete.lua
var latchDeleteSource string

// counted are the scripts of the kinds that count.
var counted = struct {
	set, acquire, release, state          script // semaphores; set and state are for both kinds
	lease, giveBack, renew                script // leased permits
	arm, countDown, latchState, deleteOne script // latches
}{
	set:        newCounted(semaphoreSetSource),
	acquire:    newCounted(semaphoreAcquireSource),
	release:    newCounted(semaphoreReleaseSource),
	state:      newCounted(semaphoreStateSource),
	lease:      newCounted(permitsAcquireSource),
	giveBack:   newCounted(permitsReleaseSource),
	renew:      newCounted(permitsRenewSource),
	arm:        newCounted(latchArmSource),
	countDown:  newCounted(latchCountSource),
	latchState: newCounted(latchStateSource),
	deleteOne:  newCounted(latchDeleteSource),
}

func newCounted(source string) script { return newScript(countedSource + source) }

// maxCount is the greatest number of permits and the greatest count: far more
// than is of use, and far less than what a Lua number holds exactly.
const maxCount = 1<<31 - 1

// checkCount refuses numbers outside of low and maxCount.
func checkCount(n, low int) error {
	if n < low || n > maxCount {
		return fmt.Errorf("%w: %d: give %d to %d", ErrPermits, n, low, maxCount)
	}
	return nil
}

// checkCounted refuses what cannot be at one master under this name.
func (c *Client) checkCounted(name string) error {
	if c.node == nil {
		return ErrOneMaster
	}
	return checkName(name)
}

// counts runs a script whose answer is n integers.
func (c *Client) counts(ctx context.Context, n int, run call) ([]int64, error) {
	value, err := c.node.do(ctx, run)
	if err != nil {
		return nil, crossSlot(err)
	}
	return integers(value, n)
}

// keeps is counts for a script whose change is to be on replicas, if that is
// asked for: its answer begins with 1 if it has changed, or had changed, anything.
func (c *Client) keeps(ctx context.Context, n int, run call) ([]int64, error) {
	value, err := c.node.take(ctx, run)
	if err != nil {
		return nil, crossSlot(err)
	}
	return integers(value, n)
}

// insist asks until there is an answer, or ctx or the client's timeout is over.
// What it asks must be answered alike, however often it is asked.
func (c *Client) retry(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	maybe := false
	var last error
	for {
		err := ask(ctx)
		if err != nil && last != nil && ctx.Err() != nil {
			err = last // a question that was cut short says less than the answer before it
		}
		last = err
		if err == nil || outcomeOf(err) == rejected && !maybe {
			return err
		}
		// What too few replicas have is asked for again: the answer is the same, and
		// WAIT waits for all that was written before.
		maybe = maybe || outcomeOf(err) == unknown || outcomeOf(err) == underReplicated
		if outcomeOf(err) != rejected && c.pause(ctx, c.backoff()) {
			continue
		}
		if maybe {
			err = &requestError{unknown, err}
		}
		return err
	}
}

// undo takes back what may have been done, even if ctx has ended, and returns
// why, marked with [ErrUnknown] unless it is certain that nothing is left.
func (c *Client) undo(ctx context.Context, why error, back func(ctx context.Context) error) error {
	why = definiteError{why}
	undone := make(chan error, 1)
	if !c.bg.start(func() { undone <- c.retry(context.WithoutCancel(ctx), back) }) {
		return fmt.Errorf("%w: %w", ErrUnknown, why)
	}
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	select {
	case err := <-undone:
		if err == nil {
			return why
		}
	case <-timer.C:
	}
	return fmt.Errorf("%w: %w", ErrUnknown, why)
}
