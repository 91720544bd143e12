package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

// arm sets the count of a latch that is open or does not exist.
func (l *library) arm(ctx context.Context, key string, count int) (client.Grant, error) {
	generation, err := l.lock.Latch(key).TrySetCount(ctx, count)
	return client.Grant{Token: generation, Count: count}, err
}

// countDown counts a latch down by one.
func (l *library) countDown(ctx context.Context, key, participant string, generation uint64) (client.Grant, error) {
	o := lock.CountDownOptions{Participant: participant, Generation: generation}
	state, err := l.lock.Latch(key).CountDown(ctx, o)
	if err == nil && generation != 0 && state.Generation != generation {
		return client.Grant{}, contradiction("a count-down of generation %d returned the state of generation %d", generation,
			state.Generation)
	}
	return client.Grant{Token: state.Generation, Count: state.Count}, err
}

// await waits until a latch is open.
func (l *library) await(ctx context.Context, key string, generation uint64) error {
	err := l.lock.Latch(key).WaitGeneration(ctx, generation)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", native.ErrNotOpen, err)
	}
	return err
}

// deleteLatch removes a latch.
func (l *library) deleteLatch(ctx context.Context, key string) error {
	return l.lock.Latch(key).Delete(ctx)
}

// latchState reports the generation and the count of a latch.
func (l *library) latchState(ctx context.Context, key string) (client.Grant, error) {
	state, err := l.lock.Latch(key).State(ctx)
	return client.Grant{Token: state.Generation, Count: state.Count}, err
}
