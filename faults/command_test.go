package faults

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Healing waits for a command in flight, in virtual time too, and no command follows it.
func TestCommandIsHealedWhileInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := newCommand("n1", func(context.Context) (string, bool, error) {
			calls++
			pass(time.Second)
			return "", false, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		observed := make(chan error, 1)
		go func() {
			_, err := s.Observe(ctx)
			observed <- err
		}()
		pass(500 * time.Millisecond)
		began := time.Now()
		if _, err := s.Heal(t.Context()); err != nil || time.Since(began) != 500*time.Millisecond {
			t.Errorf("healed after %v: %v, want half a second and no error", time.Since(began), err)
		}
		pass(10 * time.Second)
		if calls != 1 {
			t.Errorf("executed %d times, want once: it was healed", calls)
		}
		cancel()
		if err := <-observed; err == nil {
			t.Error("an effect was observed although nothing was done")
		}
	})
}

// Healing gives up on a command whose server never replies.
func TestHealingOfAStuckCommandTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCommand("n1", func(ctx context.Context) (string, bool, error) {
			<-ctx.Done()
			return "", false, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = s.Observe(ctx) }()
		synctest.Wait()
		healing, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if how, err := s.Heal(healing); err == nil {
			t.Errorf("healed: %q, want an error", how)
		}
		cancel()
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }
