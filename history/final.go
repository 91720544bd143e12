package history

import (
	"math"
	"slices"
	"time"
)

// Values of [Event.F] that may be recorded for each key, under process [Nemesis], at the quiescence after a run:
// clients are done, faults are healed, every requested lease has expired.
const (
	// ProbeEvent is an acquire by the harness: ok if it was granted (and released), fail if it was not, info
	// if no server replied.
	ProbeEvent = "probe"
	// LeftoverEvent lists the data that were found at the servers (always info), which may be none.
	LeftoverEvent = "leftover"
)

// LeftoverValue lists data that a lock should have removed from the servers and did not. Data that a lock is documented
// to keep, such as the counter of its tokens, are not listed.
type LeftoverValue struct {
	Keys     []string `json:"keys,omitempty"`     // names of keys at the servers
	Waiters  int      `json:"waiters,omitempty"`  // entries of the wait queue
	Permits  int      `json:"permits,omitempty"`  // permits that are taken
	Renewals int      `json:"renewals,omitempty"` // renewals observed while no operation was in flight
}

// ProbeOwner begins the name of the owner of a probe's acquire, as servers store it.
const ProbeOwner = "probe-"

// Probe is a [ProbeEvent].
type Probe struct {
	Time    time.Duration
	Index   int32 // of the event
	Key     int32 // index into History.Keys
	Outcome Type
}

// Leftover is a [LeftoverEvent].
type Leftover struct {
	LeftoverValue
	Time  time.Duration
	Index int32 // of the event
	Key   int32 // index into History.Keys
}

// hasCode reports whether e has an error with that code.
func (e *Event) hasCode(code string) bool { return e.Error != nil && e.Error.Code == code }

// timedOut reports whether e is an acquire whose wait ran out while another owner held the lock. An acquire that failed
// for another reason, such as an unreachable server, did not wait for the lock.
func (e *Event) timedOut() bool {
	return e.F == Acquire && e.Type == Fail && e.Error != nil &&
		slices.Contains([]string{CodeHeld, "busy", "timeout", CodeRefused}, e.Error.Code)
}

// failed reports whether e ended with an error that is no answer of a lock. Locks of others have codes of their own for
// that: a release or renewal is answered with few codes, and an acquire whose outcome is unknown with none.
func (e *Event) failed() bool {
	if e.Error == nil || e.Type != Fail && e.Type != Info || e.ended() {
		return false
	}
	switch e.Error.Code {
	case "error", "unknown", "no-quorum", "panic", CodeNoReply:
		return true
	case CodeTimeout, CodeContradiction, CodeHeld, CodeForeign, "unknown-op", "closed":
		return false
	}
	return e.F == Release && !e.denied() || e.Type == Info && (e.F == Acquire || e.F == Try || e.F == Renew)
}

// denied reports whether e is a release or renewal that failed because the lock did not know the hold.
func (e *Event) denied() bool {
	if e.F != Release && e.F != Renew || e.Type != Fail || e.Held || e.Error == nil {
		return false
	}
	switch e.Error.Code {
	case "not-held", "not-owner", "lost", "released":
		return true
	}
	return false
}

// latchRefused reports why an operation on a latch failed: it was still counting, or it did not exist. A lock that is
// inspected, or released by force, and free does not exist either.
func (e *Event) latchRefused() (armed, absent bool) {
	ofLock := e.F == Inspect || e.F == InspectOwner || e.F == ForceRelease
	if e.F != Arm && e.F != CountDown && e.F != Await && !ofLock || e.Type != Fail || e.Error == nil {
		return false, false
	}
	if ofLock {
		return false, e.Error.Code == "not-held" || e.F == Inspect && e.Error.Code == CodeAbsent
	}
	switch e.Error.Code {
	case CodeAbsent, "rearmed":
		return false, true
	case "timeout", CodeHeld:
		return e.F == Await, false
	}
	return e.F == Arm && e.Error.Code == "armed", false
}

func (e *Event) isFinal() bool {
	return e.Process == Nemesis && (e.F == ProbeEvent || e.F == LeftoverEvent)
}

func (b *Builder) final(e numbered) {
	key := intern(&b.h.Keys, b.keys, e.Key)
	if e.F == ProbeEvent {
		b.h.Probes = append(b.h.Probes, Probe{Time: e.time, Index: e.index, Key: key, Outcome: e.Type})
		return
	}
	l := Leftover{Time: e.time, Index: e.index, Key: key}
	if e.Value != nil && e.Value.Left != nil {
		l.LeftoverValue = *e.Value.Left
		l.Keys = slices.Clone(l.Keys)
	}
	b.h.Leftovers = append(b.h.Leftovers, l)
}

// MaxPermits is the greatest number of permits that is counted. A key with more is a semaphore of
// unknown size, and a [Problem] says so.
const MaxPermits = math.MaxInt32

// UnknownLimit is the limit of a key for which permits were requested without a limit.
const UnknownLimit = -1

// Limit returns the size of a semaphore: 0 if key is not one, [UnknownLimit] if its size is unknown.
func (h *History) Limit(key int32) int32 {
	if int(key) >= len(h.Limits) {
		return 0
	}
	return h.Limits[key]
}

// limit records the size of a semaphore. A request for permits makes its key a semaphore, also without a limit.
func (b *Builder) limit(e numbered, s *Span) {
	v := e.Value
	if v.Limit <= 0 && v.Permits <= 0 {
		return
	}
	for len(b.h.Limits) <= int(s.Key) {
		b.h.Limits = append(b.h.Limits, 0)
	}
	if n := max(v.Limit, v.Permits); n > MaxPermits {
		b.uncountable[s.Key] = true
		b.problem(e, "%d permits exceed the maximum of %d; the size of the semaphore counts as unknown", n, MaxPermits)
	}
	limit := &b.h.Limits[s.Key]
	*limit = b.greater(s.Key, *limit, int32(min(v.Limit, MaxPermits)))
	if s.Op != OpResize {
		b.sizes[s.Key] = b.greater(s.Key, b.sizes[s.Key], int32(min(v.Limit, MaxPermits)))
	}
}

// resizeInvoked records that s is in flight if it is a resize.
func (b *Builder) resizeInvoked(s *Span) {
	if s.Op != OpResize {
		return
	}
	if b.resizing[s.Key] == nil {
		b.resizing[s.Key] = make(map[int32]int)
	}
	b.resizing[s.Key][s.Asked]++
}

// greater is the greater of two limits of a key, or [UnknownLimit].
func (b *Builder) greater(key, x, y int32) int32 {
	if x = max(x, y); x <= 0 || b.uncountable[key] {
		return UnknownLimit
	}
	return x
}

// resized records the outcome of a resize. If it failed, its size no longer counts as the limit, unless another resize
// that is in flight may set it.
func (b *Builder) resized(s *Span) {
	inFlight := b.resizing[s.Key]
	if inFlight[s.Asked]--; inFlight[s.Asked] <= 0 {
		delete(inFlight, s.Asked)
	}
	if s.Outcome != Fail {
		b.sizes[s.Key] = b.greater(s.Key, b.sizes[s.Key], s.Asked)
		return
	}
	limit, was := b.sizes[s.Key], b.h.Limit(s.Key)
	if s.Asked < was || b.uncountable[s.Key] || int(s.Key) >= len(b.h.Limits) { // the last: not a semaphore yet
		return
	}
	for size := range inFlight { // order does not matter: the greatest counts
		limit = b.greater(s.Key, limit, size)
	}
	b.h.Limits[s.Key] = limit
}

// enlarged notes that permits were added to a semaphore of known size, and how many it has since.
func (b *Builder) enlarged(s *Span) {
	if limit := b.h.Limit(s.Key); limit > 0 {
		b.h.Limits[s.Key] = max(limit, s.Count)
		b.sizes[s.Key] = max(b.sizes[s.Key], s.Count)
	}
}

// noteOther keeps the names of operations that checkers do not know: the first eight.
func (b *Builder) noteOther(op Op, name string) {
	if op == OpOther && len(b.h.Others) < 8 && !slices.Contains(b.h.Others, name) {
		b.h.Others = append(b.h.Others, name)
	}
}
