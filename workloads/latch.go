package workloads

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// latch uses count-down latches again and again: each client one on its own key, where every reply can be predicted,
// and all clients the ones on shared keys, with more participants than the count.
var latchSpec = workload.Spec{
	Name: workload.Latch,
	Doc: "every client in a loop: arm a latch, wait without success, count it down for several participants, some of " +
		"them twice, and wait until it is open; inspect or delete it; on a key of its own or a shared one; or, with " +
		"sequence meeting, all clients count each generation down, wait for it, and arm the next one.",
	Source:         "java.util.concurrent, CountDownLatch; Redisson's RCountDownLatch",
	Needs:          promise.Latch,
	Uses:           promise.Inspect,
	CheckSequences: checkLatchSequences,
	Client:         latchClient,
}

// maxCount is the greatest count of a latch.
const maxCount = 3

func latchClient(ctx context.Context, stop <-chan struct{}, e workload.Env) {
	p := e.Params
	l := latch{Actor: workload.NewActor(ctx, stop, e)}
	meets := p.Sequences != ""
	for !l.Over() {
		switch l.Key = l.OwnKey; {
		case meets:
			l.Key = l.Keys[e.Rand.IntN(len(l.Keys))]
			l.meet()
		case l.Chance(2):
			l.Key = l.Keys[e.Rand.IntN(len(l.Keys))]
			l.takePart()
		default:
			l.alone()
		}
		workload.Pause(ctx, stop, workload.Grain+e.Params.Think+e.Random(e.Params.Jitter))
	}
}

// latch is one client of workload latch.
type latch struct {
	workload.Actor
	before uint64 // the generation of its own key that opened last
}

// alone does everything with a latch that no other client uses.
func (l *latch) alone() {
	count := 1 + l.Rand.IntN(maxCount)
	armed := l.Session.Arm(l.Context, l.Key, count)
	if armed.Outcome != history.OK {
		l.open()
		return
	}
	if l.before != 0 && l.Chance(3) {
		l.Session.Await(l.Context, l.Key, l.before, l.AcquireTimeout()) // that generation is over
	}
	if l.before != 0 && l.Chance(3) {
		l.Session.CountDown(l.Context, l.Key, l.participant(), l.before) // too late
	}
	if l.Chance(5) {
		l.discard(count, armed.Token)
		return
	}
	members := l.Chance(2) // the same ones count in one generation after the other
	for left := count; left > 0 && !l.Over(); left-- {
		switch l.Rand.IntN(4) {
		case 0:
			l.Session.Await(l.Context, l.Key, armed.Token, l.briefly())
		case 1:
			l.Session.Arm(l.Context, l.Key, count) // it is still counting
		}
		participant := fmt.Sprintf("member %d of %d", left, l.Session.Number())
		if !members {
			participant = l.participant()
		}
		l.Session.CountDown(l.Context, l.Key, participant, armed.Token)
		l.look()
		if l.Chance(3) {
			l.Session.CountDown(l.Context, l.Key, participant, 0)
		}
	}
	if l.Session.Await(l.Context, l.Key, armed.Token, l.AcquireTimeout()).Outcome == history.OK {
		l.before = armed.Token
		l.look()
	}
	if l.Chance(2) {
		l.Session.CountDown(l.Context, l.Key, l.participant(), armed.Token) // one more than are needed
		l.Session.Await(l.Context, l.Key, 0, l.briefly())
	}
}

// participant has not counted yet; empty: the lock has to make one up.
func (l *latch) participant() string {
	if l.Chance(2) {
		return ""
	}
	return l.NewOwner()
}

// look asks for the state of the latch, some of the time, if that can be done.
func (l *latch) look() {
	if l.Can.Has(promise.Inspect) && l.Chance(3) {
		l.Session.Inspect(l.Context, l.Key)
	}
}

// discard counts a latch down, perhaps until it is open, deletes it, and uses it once more: it does not exist.
func (l *latch) discard(count int, generation uint64) {
	for range l.Rand.IntN(count + 1) {
		l.Session.CountDown(l.Context, l.Key, l.participant(), generation)
	}
	l.look()
	l.before = 0
	if l.Session.Delete(l.Context, l.Key).Outcome != history.OK {
		return
	}
	switch l.Rand.IntN(4) {
	case 0:
		l.Session.Await(l.Context, l.Key, generation, l.briefly())
	case 1:
		l.Session.CountDown(l.Context, l.Key, l.participant(), generation)
	case 2:
		l.Session.Delete(l.Context, l.Key)
	case 3: // the latch that follows is another one
		if armed := l.Session.Arm(l.Context, l.Key, 1); armed.Outcome == history.OK {
			l.Session.CountDown(l.Context, l.Key, l.participant(), generation)
			l.Session.Await(l.Context, l.Key, generation, l.briefly())
			l.Session.CountDown(l.Context, l.Key, l.participant(), armed.Token)
		}
	}
	l.look()
}

// open counts a latch down that an operation of unknown outcome left armed.
func (l *latch) open() {
	for range maxCount {
		l.Session.CountDown(l.Context, l.Key, l.participant(), 0)
	}
}

// takePart arms a shared latch, counts it down, waits for it, inspects or deletes it.
func (l *latch) takePart() {
	if l.look(); l.Chance(8) {
		l.Session.Delete(l.Context, l.Key)
		return
	}
	switch l.Rand.IntN(4) {
	case 0:
		l.Session.Arm(l.Context, l.Key, 1+l.Rand.IntN(maxCount))
	case 1:
		l.Session.Await(l.Context, l.Key, 0, l.briefly())
	case 2:
		l.Session.Await(l.Context, l.Key, 0, l.AcquireTimeout())
	default:
		l.Session.CountDown(l.Context, l.Key, l.participant(), 0)
	}
}

// meeting is the sequence of this workload that a scenario may name.
const meeting = "meeting"

func checkLatchSequences(p workload.Params) error {
	if p.Sequences != meeting {
		return fmt.Errorf("workload: %s has no sequence %q; known: %s", p.Kind, p.Sequences, meeting)
	}
	return nil
}

// meet takes part in a meeting of all clients: each counts the latch down once, without naming the
// generation, and waits until it is open. A client that passes, or finds no latch, arms it for the next meeting.
// Sometimes a client calls the meeting off instead: it deletes the latch, which is certainly still counting.
func (l *latch) meet() {
	if l.Chance(8) {
		l.Session.Delete(l.Context, l.Key)
		return
	}
	counted := l.Session.CountDown(l.Context, l.Key, fmt.Sprintf("member %d", l.Session.Number()), 0)
	over := counted.Code == history.CodeAbsent
	if counted.Outcome == history.OK {
		over = l.Session.Await(l.Context, l.Key, counted.Token, l.AcquireTimeout()).Outcome == history.OK
	}
	if over {
		l.Session.Arm(l.Context, l.Key, l.Params.Clients)
	}
}

// briefly is a wait that may be too short.
func (l *latch) briefly() time.Duration { return workload.Grain + l.Random(2*l.Params.Hold) }
