package faults

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Healing waits for a command that is under way, in virtual time too, and no
// command follows it.
func TestStrokeIsHealedWhileAServerIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := newStroke("n1", func(context.Context) (string, bool, error) {
			asked++
			pass(time.Second)
			return "", false, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		bitten := make(chan error, 1)
		go func() {
			_, err := s.Bite(ctx)
			bitten <- err
		}()
		pass(500 * time.Millisecond)
		began := time.Now()
		if _, err := s.Heal(t.Context()); err != nil || time.Since(began) != 500*time.Millisecond {
			t.Errorf("healed after %v: %v, want half a second and no error", time.Since(began), err)
		}
		pass(10 * time.Second)
		if asked != 1 {
			t.Errorf("asked %d times, want once: it was healed", asked)
		}
		cancel()
		if err := <-bitten; err == nil {
			t.Error("it bit although nothing was ever done")
		}
	})
}

// A stroke whose server never answers is not waited for longer than the healing may take.
func TestStrokeThatIsStuckIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStroke("n1", func(ctx context.Context) (string, bool, error) {
			<-ctx.Done()
			return "", false, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = s.Bite(ctx) }()
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
func pass(d time.Duration) {
	// not a wait in real time: the clock jumps
	time.Sleep(d)
}
