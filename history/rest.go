package history

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// What may be recorded of a key when the run is over, under process [Nemesis]:
// clients are done, faults are healed, every lease that was asked for has run out.
const (
	// Probed is one acquire by the harness itself: ok if it was granted (and given
	// back), fail if the lock could not be had, info if no server answered.
	ProbeEvent = "probe"
	// Leftover is what was found at the servers (always info), clean or not.
	LeftoverEvent = "leftover"
)

// LeftValue is what a lock has left behind at the servers: only what should be
// gone. What a lock documents to keep, such as the counter of its tokens, is not named.
type LeftoverValue struct {
	Keys     []string `json:"keys,omitempty"`     // names of keys at the servers
	Waiters  int      `json:"waiters,omitempty"`  // entries of the queue
	Permits  int      `json:"permits,omitempty"`  // permits that are out
	Renewals int      `json:"renewals,omitempty"` // renewals seen while nothing was asked for
}

// Probe is a [Probed] event.
type Probe struct {
	Time    time.Duration
	Index   int32
	Key     int32
	Outcome Type
}

// Left is a [Leftover] event.
type Leftover struct {
	LeftoverValue
	Time  time.Duration
	Index int32
	Key   int32
}

// GaveUp says whether an event is an acquire that waited in vain: its wait ran
// out, and it says that somebody else held the lock. An acquire that failed for
// another reason, such as a server out of reach, did not wait for the lock.
func (e *Event) TimedOut() bool {
	return e.F == Acquire && e.Type == Fail && e.Error != nil &&
		(e.Error.Code == CodeHeld || e.Error.Code == "busy" || e.Error.Code == "timeout")
}

func (e *Event) atRest() bool {
	return e.Process == Nemesis && (e.F == ProbeEvent || e.F == LeftoverEvent)
}

func (b *Builder) rest(e numbered) {
	key := intern(&b.h.Keys, b.keys, e.Key)
	if e.F == ProbeEvent {
		b.h.Probes = append(b.h.Probes, Probe{Time: e.time, Index: e.at, Key: key, Outcome: e.Type})
		return
	}
	l := Leftover{Time: e.time, Index: e.at, Key: key}
	if e.Value != nil && e.Value.Left != nil {
		l.LeftoverValue = *e.Value.Left
		l.Keys = slices.Clone(l.Keys)
	}
	b.h.Leftovers = append(b.h.Leftovers, l)
}

// sortOut lists the few operations of which more is kept than their span.
func (b *Builder) sortOut(i int32, e numbered) {
	switch {
	case e.Type == Info:
		b.h.Unknown = append(b.h.Unknown, Unknown{Time: e.time, Span: i})
	case e.TimedOut():
		b.h.TimedOut = append(b.h.TimedOut, i)
	}
}

// MaxPermits is how many permits an event can speak of. A key of which more are
// told or asked is a semaphore of unknown size, and a [Problem] says why.
const MaxPermits = math.MaxInt32

// limit notes how many permits a key has. Whoever asks for permits speaks of a
// semaphore, also if nobody tells how many there are.
func (b *Builder) limit(e numbered, key int32) {
	v := e.Value
	if v.Limit <= 0 && v.Permits <= 0 {
		return
	}
	for len(b.h.Limits) <= int(key) {
		b.h.Limits = append(b.h.Limits, 0)
	}
	is := &b.h.Limits[key]
	if n := max(v.Limit, v.Permits); n > MaxPermits {
		if b.beyond == nil {
			b.beyond = make(map[int32]bool)
		}
		b.beyond[key] = true
		b.problem(e.at, e.line, "%d permits are more than can be counted (%d at most): how many there are stays open",
			n, MaxPermits)
	}
	if *is = max(*is, int32(min(v.Limit, MaxPermits))); *is <= 0 || b.beyond[key] {
		*is = UnknownLimit
	}
}

// Unlimited is the limit of a key for which permits were asked, but nobody told
// how many there are.
const UnknownLimit = -1

// Limit is how many permits the key has in all; 0: it is no semaphore;
// [Unlimited]: it is one, of unknown size.
func (h *History) Limit(key int32) int32 {
	if int(key) >= len(h.Limits) {
		return 0
	}
	return h.Limits[key]
}

// notationRest reads "probe KEY TIME ok|fail|info" and
// "leftover KEY TIME [keys=NAME,NAME] [waiters=N] [permits=N] [renewals=N]".
func notationRest(events []Event, fields []string) ([]Event, error) {
	if len(fields) < 3 {
		return nil, errors.New("want: probe KEY TIME ok|fail|info, or leftover KEY TIME [NAME=VALUE]…")
	}
	at, err := notationTime(fields[2])
	if err != nil {
		return nil, err
	}
	e := Event{Time: at, Type: Info, Process: Nemesis, F: fields[0], Key: fields[1]}
	if e.F == ProbeEvent {
		if len(fields) == 4 {
			e.Type, err = parseType(fields[3])
		}
		return append(events, e), err
	}
	l := &LeftoverValue{}
	for _, field := range fields[3:] {
		if err := l.set(field); err != nil {
			return nil, err
		}
	}
	e.Value = &Value{Left: l}
	return append(events, e), nil
}

func (l *LeftoverValue) set(field string) (err error) {
	name, value, _ := strings.Cut(field, "=")
	switch name {
	case "keys":
		l.Keys = strings.Split(value, ",")
	case "waiters":
		l.Waiters, err = wholeNumber(value)
	case "permits":
		l.Permits, err = wholeNumber(value)
	case "renewals":
		l.Renewals, err = wholeNumber(value)
	default:
		err = fmt.Errorf("%q: leftover has keys, waiters, permits and renewals", name)
	}
	return err
}
