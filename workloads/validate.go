package workloads

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Validate reports a value of p that is out of bounds or does not fit its kind. p has its defaults.
func Validate(p workload.Params) error {
	row, err := Lookup(p.Kind)
	if err != nil {
		return err
	}
	if p.Clients < 1 || p.Clients > workload.MaxClients {
		return outOfBounds("clients", p.Clients, workload.MaxClients)
	}
	if p.Keys < 1 || p.Keys > workload.MaxKeys {
		return outOfBounds("keys", p.Keys, workload.MaxKeys)
	}
	if err := errors.Join(validatePermits(p), validateWriters(p), validateSequences(row, p)); err != nil {
		return err
	}
	if min(p.Hold, p.Jitter, p.Think, p.Term, p.Lease, p.Wait, p.Ramp) < 0 {
		return fmt.Errorf("workload: durations must not be negative")
	}
	if longest := max(p.Hold, p.Jitter, p.Think, p.Term, p.Lease, p.Wait, p.Ramp); longest > workload.MaxDuration {
		return fmt.Errorf("workload: %v is longer than the limit of %v", longest, workload.MaxDuration)
	}
	if p.Lease > 0 && p.Lease < time.Millisecond {
		return fmt.Errorf("workload: a lease of %v is shorter than a millisecond, the resolution of Redis", p.Lease)
	}
	return nil
}

func validatePermits(p workload.Params) error {
	switch {
	case p.AnyLock() && (p.Permits < 1 || p.Permits > workload.MaxPermits):
		return outOfBounds("permits", p.Permits, workload.MaxPermits)
	case p.AnyLock():
		return nil
	case p.Kind != workload.Semaphore && p.Permits != 0:
		return fmt.Errorf("workload: %s has no permits; only %s, %s and %s have", p.Kind, workload.Semaphore,
			workload.Mixed, workload.Waiters)
	case p.Kind != workload.Semaphore:
		return nil
	case p.Permits < 1 || p.Permits > workload.MaxPermits:
		return outOfBounds("permits", p.Permits, workload.MaxPermits)
	case p.Fenced:
		return fmt.Errorf("workload: %s has no fenced resource, because several clients may use it at once", p.Kind)
	}
	return nil
}

func validateWriters(p workload.Params) error {
	switch {
	case p.Kind != workload.ReadersWriter && p.Writers != 0:
		return fmt.Errorf("workload: %s has no clients that only write; only %s has", p.Kind, workload.ReadersWriter)
	case p.Writers < 0 || p.Writers > p.Clients:
		return outOfBounds("writers", p.Writers, p.Clients)
	}
	return nil
}

// validateSequences refuses a sequence that the workload does not have.
func validateSequences(row workload.Spec, p workload.Params) error {
	switch {
	case p.Sequences == "":
		return nil
	case row.CheckSequences == nil:
		return fmt.Errorf("workload: %s has no sequences; only %s and %s have them", p.Kind, workload.Mixed, workload.Latch)
	}
	return row.CheckSequences(p)
}

func outOfBounds(what string, n, most int) error {
	return fmt.Errorf("workload: %s must be between 1 and %s, not %d", what, format.Number(most), n)
}
