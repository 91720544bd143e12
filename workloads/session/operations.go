package session

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// This file has the operations of a [Session] on a latch, and on a lock as a whole.

// Arm sets the count of a latch.
func (s *Session) Arm(ctx context.Context, key string, count int) Answer {
	return s.perform(ctx, client.Request{Op: history.Arm, Acquire: client.Acquire{Key: key}, Count: count})
}

// CountDown counts a generation of a latch down for a participant; generation 0 is the present one. An empty
// participant is a new one: only the history has a name for it.
func (s *Session) CountDown(ctx context.Context, key, participant string, generation uint64) Answer {
	a := client.Acquire{Key: key, Owner: participant}
	r := client.Request{Op: history.CountDown, Acquire: a, Token: generation}
	v := valueOf(r)
	if participant == "" {
		v.Owner = s.NewOwner()
	}
	return s.do(ctx, r, v)
}

// Await waits until a generation of a latch is open; generation 0 is the present one.
func (s *Session) Await(ctx context.Context, key string, generation uint64, wait time.Duration) Answer {
	a := client.Acquire{Key: key, Wait: wait}
	return s.perform(ctx, client.Request{Op: history.Await, Acquire: a, Token: generation})
}

// Delete removes a latch.
func (s *Session) Delete(ctx context.Context, key string) Answer {
	return s.perform(ctx, client.Request{Op: history.Delete, Acquire: client.Acquire{Key: key}})
}

// Resize sets the number of permits of a semaphore.
func (s *Session) Resize(ctx context.Context, key string, permits int) Answer {
	return s.perform(ctx, client.Request{Op: history.Resize, Acquire: client.Acquire{Key: key, Limit: permits}})
}

// ForceRelease takes a lock from all who hold it.
func (s *Session) ForceRelease(ctx context.Context, key string) Answer {
	return s.perform(ctx, client.Request{Op: history.ForceRelease, Acquire: client.Acquire{Key: key}})
}

// ForceReleasePermits takes some of the permits of h from its owner.
func (s *Session) ForceReleasePermits(ctx context.Context, h Hold, permits int) Answer {
	a := client.Acquire{Key: h.Key, Owner: h.Owner, Permits: permits}
	return s.perform(ctx, client.Request{Op: history.ForceRelease, Acquire: a})
}

// ChangePermits adds permits to a semaphore, or removes them if by is negative.
func (s *Session) ChangePermits(ctx context.Context, key string, by int) Answer {
	op := history.AddPermits
	if by < 0 {
		op, by = history.DropPermits, -by
	}
	return s.perform(ctx, client.Request{Op: op, Acquire: client.Acquire{Key: key, Permits: by}})
}

// Drain requests all permits that are free, of a.Limit.
func (s *Session) Drain(ctx context.Context, a client.Acquire) (Hold, Answer) {
	a.Permits, a.Wait = a.Limit, 0
	return s.send(ctx, client.Request{Op: history.Try, Acquire: a, Drain: true})
}

// Guard presents the token of h to the resource that the lock guards (promise guard).
func (s *Session) Guard(ctx context.Context, h Hold) Answer {
	a := client.Acquire{Key: h.Key, Owner: h.Owner}
	return s.perform(ctx, client.Request{Op: history.Guard, Acquire: a, Token: h.Token})
}

// InspectOwner asks for the holds of the owner of h at its key.
func (s *Session) InspectOwner(ctx context.Context, h Hold) Answer {
	return s.perform(ctx, client.Request{Op: history.InspectOwner, Acquire: client.Acquire{Key: h.Key, Owner: h.Owner}})
}

// CountWaiters asks how many acquires wait in the queue of a lock.
func (s *Session) CountWaiters(ctx context.Context, key string) Answer {
	return s.perform(ctx, client.Request{Op: history.CountWaiters, Acquire: client.Acquire{Key: key}})
}

// Reopen closes the lock object of the client and opens another one. It is recorded under a key that the client uses,
// and concerns all.
func (s *Session) Reopen(ctx context.Context, key string) Answer {
	return s.perform(ctx, client.Request{Op: history.Reopen, Acquire: client.Acquire{Key: key}})
}

// AcquireUntilClosed acquires a lock. If that takes longer than after, the client closes its lock object meanwhile.
func (s *Session) AcquireUntilClosed(ctx context.Context, a client.Acquire, after time.Duration) (Hold, history.Type) {
	h, answer := s.send(ctx, client.Request{Op: history.Acquire, Acquire: a, Close: after})
	return h, answer.Outcome
}

// Inspect asks who holds a lock, or for the state of a latch.
func (s *Session) Inspect(ctx context.Context, key string) Answer {
	return s.perform(ctx, client.Request{Op: history.Inspect, Acquire: client.Acquire{Key: key}})
}
