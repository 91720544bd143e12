package lock

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Options of a [Client]. The zero value is a good start.
type Options struct {
	// Lease is what a hold that asks for none gets; it is renewed every third
	// of it until the hold ends. 0 is 30 s; at least 10 ms.
	Lease time.Duration
	// PollMax is the longest that the first of those who wait sleeps before it
	// asks again, in case the message that the lock is free was lost; the next in
	// line sleeps twice as long, and so on. 0 is 1 s.
	PollMax time.Duration
	// Timeout bounds everything that must be done even if its caller has left:
	// a release, and the undoing of an acquire of unknown outcome. 0 is 5 s.
	Timeout time.Duration
	// NodeTimeout bounds one request to one of several masters. 0 is a
	// twentieth of the lease, at least 50 ms and at most 500 ms.
	NodeTimeout time.Duration
	// Replicas is how many replicas must have a grant before it counts; 0 is
	// none, AllReplicas is every one that is connected, at least one. A grant that
	// too few of them have within ReplicaTimeout is taken back, and the error is
	// [ErrTooFewReplicas]. It holds for what one script takes: mutexes, fair and
	// readers-writer locks, several as one, and permits. What is no grant and is not
	// taken back - the total of a semaphore, the counts of a latch - is asked for
	// again until Timeout, and then the error is also [ErrUnknown]. Redis does not promise that the
	// replica which is promoted is one of those (redisson#5256); only all of them
	// make sure, and only as long as none of them restarts empty. Renewals do not wait.
	Replicas int
	// ReplicaTimeout is for how long to wait for them. 0 is 1 s.
	ReplicaTimeout time.Duration
	// Tokens has every grant of a [Mutex], of whatever kind, and of a [MultiLock] come
	// with a fencing token; see [Hold.Token]. Without it only those of [Client.FencedMutex],
	// also as a part of a MultiLock, [FairMutex] and [RW] do. It costs two commands within the script at the server, and
	// on several masters there are none at all.
	Tokens bool
	// Rand is where owner ids and delays are drawn from; nil is a source of its
	// own, seeded by the system. It is used by one goroutine at a time. Two
	// clients must not be given sources of the same seed: their owners would be alike.
	Rand rand.Source
	// Order, in a simulation, lets the goroutines that can run at one instant of virtual time through one by one, sorted
	// by key, so that the same seed gives the same run. It is called before a goroutine sends a command. Nil outside of
	// simulations.
	Order func(key func() string)
	// OnRenewed is told of each renewal of the client's own making; the new end
	// of validity is h.Deadline. Nil is nobody. It must return at once.
	OnRenewed func(h *Hold)
	// OnLost is told, once, of a hold that ended before it was released; its
	// context has ended already. Nil is nobody. It must return at once.
	OnLost func(h *Hold)
	// OnPermitsRenewed and OnPermitsLost are the same for permits with a lease.
	OnPermitsRenewed, OnPermitsLost func(p *Permits)
	// Observe is told of everything that happens to holds, permits and latches, for metrics; several
	// goroutines call it. Nil is nobody. It must return at once.
	Observe func(Event)
	// Logger gets the same, as debug messages, and as warnings what went wrong.
	// Nil is none.
	Logger *slog.Logger
}

const (
	defaultLease   = 30 * time.Second
	defaultPollMax = time.Second
	defaultTimeout = 5 * time.Second
	minLease       = 10 * time.Millisecond
	maxLease       = 10 * 365 * 24 * time.Hour
)

// complete fills in what is zero and refuses what makes no sense.
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
	if o.Replicas < AllReplicas {
		return o, fmt.Errorf("%d replicas: give a number, 0 for none, or AllReplicas", o.Replicas)
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

// tombstoneTTL is for how long a server remembers that a hold was given back:
// longer than anybody asks for it again.
func (o Options) tombstoneTTL() int64 { return milliseconds(2 * o.Timeout) }

// nodeLimit bounds a request to one of several masters (the Redis documentation
// on distributed locks asks for a small fraction of the lease).
func (o Options) nodeLimit(lease time.Duration) time.Duration {
	if o.NodeTimeout > 0 {
		return o.NodeTimeout
	}
	return min(max(lease/20, 50*time.Millisecond), 500*time.Millisecond)
}

// validity is for how long after it was asked for a lease may be relied on: the
// server's clock may run 1 % faster, and its expiry is a matter of milliseconds.
func validity(lease time.Duration) time.Duration {
	return lease - lease/100 - 2*time.Millisecond
}

// milliseconds rounds up, so that a server never keeps a lease for less.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
