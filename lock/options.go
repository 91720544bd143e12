package lock

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Options of a [Client]. The zero value is a good start.
type Options struct {
	// Lease is the lease of holds acquired without [WithLease]; the watchdog renews it, three times per lease, until
	// the hold ends. 0 is 30 s; at least 10 ms.
	Lease time.Duration
	// PollMax is how long the first waiter sleeps at most before it retries, in case the message that the lock is free
	// was lost; the second sleeps up to twice as long, and so on. 0 is 1 s; less than 1 ms is 1 ms.
	PollMax time.Duration
	// Timeout bounds work that must be done even if the caller's context has ended: a release, and the undoing of an
	// acquire of unknown outcome. 0 is 5 s.
	Timeout time.Duration
	// NodeTimeout bounds one request to one of several masters. 0 is a twentieth of
	// the lease, at least 50 ms and at most 500 ms.
	NodeTimeout time.Duration
	// Replicas is how many replicas must have a grant before it counts; 0 is none, AllReplicas is every connected one,
	// at least one. If too few of them have the grant within ReplicaTimeout, it is undone, and the error is
	// [ErrTooFewReplicas]. This applies to everything that one script acquires: mutexes, fair and readers-writer locks,
	// multi-locks, and permits. Changes that are not grants and are not undone (the total of a semaphore, the counts of a
	// latch) are retried until Timeout, and then the error is also [ErrUnknown]. Redis does not promise that the promoted
	// replica has acknowledged (redisson#5256); only waiting for all of them is safe, and only as long as none of them
	// restarts empty. Renewals do not wait.
	Replicas int
	// ReplicaTimeout is how long to wait for them. 0 is 1 s.
	ReplicaTimeout time.Duration
	// Layout is the format of mutexes on the servers: with [Redisson], programs in Go share them with programs in Java
	// that use Redisson. All other kinds and [NewQuorum] are then refused ([ErrLayout]), and so is [WithMetadata].
	Layout Layout
	// KeyFunc returns the key of the lock, semaphore or latch of this name, as [KeyPrefix] does; nil: the name is the
	// key. It must return the same key for a name in every program, and different keys for different names. Errors and
	// events show the name, not the key.
	KeyFunc func(name string) string
	// Rand is the source of owner ids and delays; nil is a source seeded by the system. One goroutine at a time uses it.
	// Two clients must not have sources with the same seed: their owners would be the same.
	Rand rand.Source
	// Order, in a simulation, lets goroutines that can run at one instant of virtual time through one by one, sorted by
	// server and then by command, so that the same seed gives the same run. It is called before a goroutine sends a
	// command, or, with a nil command, before an action that depends on other goroutines. Nil outside of simulations.
	Order func(server string, command func() string)
	// OnRenewed is called after each renewal by the watchdog; the new end of validity
	// is h.Deadline. It must return at once.
	OnRenewed func(h *Hold)
	// OnLost is called, once, with a hold that ended before it was released; its
	// context has ended already. It must return at once.
	OnLost func(h *Hold)
	// OnPermitsRenewed and OnPermitsLost are the same for permits with a lease.
	OnPermitsRenewed, OnPermitsLost func(p *Permits)
	// Observe is called with every event of holds, permits and latches, for metrics,
	// from several goroutines. It must return at once.
	Observe func(Event)
	// Logger gets the same events as debug messages, and problems as warnings. Nil: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultLease   = 30 * time.Second
	defaultPollMax = time.Second
	minPause       = time.Millisecond // the shortest that an option can set between two requests of a waiter
	defaultTimeout = 5 * time.Second
	minLease       = 10 * time.Millisecond
	maxLease       = 10 * 365 * 24 * time.Hour
)

// KeyPrefix is a function for [Options].KeyFunc that puts prefix before each name. With a prefix such as "app:", a
// Redis user whose permissions are limited to keys ~app:* needs ~{app:* too, for the additional keys of the locks;
// "app:{locks}:" keeps all of them under app: and in one slot of a cluster.
func KeyPrefix(prefix string) func(name string) string {
	return func(name string) string { return prefix + name }
}

// complete fills in defaults and refuses invalid values.
func (o Options) complete() (Options, error) {
	for _, d := range []struct {
		what  string
		value *time.Duration
		other time.Duration
	}{
		{"lease", &o.Lease, defaultLease},
		{"poll limit", &o.PollMax, defaultPollMax},
		{"timeout", &o.Timeout, defaultTimeout},
		{"node timeout", &o.NodeTimeout, 0},
		{"replica timeout", &o.ReplicaTimeout, time.Second},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("%s %v is negative: give a positive duration, or 0 for the default", d.what, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.other
		}
	}
	o.PollMax = max(o.PollMax, minPause)
	if o.Replicas < AllReplicas {
		return o, fmt.Errorf("%d replicas: give a number, 0 for none, or AllReplicas", o.Replicas)
	}
	if err := o.Layout.check(); err != nil {
		return o, err
	}
	return o, checkLease(o.Lease)
}

func checkLease(lease time.Duration) error {
	if lease < minLease {
		return fmt.Errorf("lease %v is too short: give %v or more", lease, minLease)
	}
	if lease > maxLease {
		return fmt.Errorf("lease %v is too long: give %v or less", lease, maxLease)
	}
	return nil
}

// tombstoneTTL is for how many milliseconds a server keeps the reply to a release: longer than a client retries it.
func (o Options) tombstoneTTL() int64 { return milliseconds(2 * o.Timeout) }

// nodeLimit bounds a request to one of several masters (the Redis documentation on
// distributed locks asks for a small fraction of the lease).
func (o Options) nodeLimit(lease time.Duration) time.Duration {
	if o.NodeTimeout > 0 {
		return o.NodeTimeout
	}
	return min(max(lease/20, 50*time.Millisecond), 500*time.Millisecond)
}

// validity is for how long a hold is valid after its lease was asked for: the server's
// clock may run 1 % faster, and it expires keys in steps of milliseconds.
func validity(lease time.Duration) time.Duration {
	return lease - lease/100 - 2*time.Millisecond
}

// milliseconds rounds up, so that a server never keeps a lease for less.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// AllReplicas is for [Options].Replicas: every replica that is connected when the lock is granted, and at least one.
const AllReplicas = -1
