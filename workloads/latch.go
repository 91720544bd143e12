package workloads

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// latch uses count-down latches again and again: each client one on its own key, where every reply can be predicted,
// and all clients those on shared keys, with more participants than the count.
var latchSpec = Spec{
	Name: "latch",
	Doc: "every client in a loop: arm a latch, wait without success, count it down for several participants, some of " +
		"them twice, and wait until it is open; inspect or delete it; on a key of its own or a shared one; or, with " +
		"sequence meeting, all clients count each generation down, wait for it, and arm the next one.",
	Source: "java.util.concurrent, CountDownLatch; Redisson's RCountDownLatch",
	Needs:  client.Capabilities{client.IsLatch},
	Uses:   client.Capabilities{client.CanDelete, client.CanInspect, client.CountsUnnamed},
	Client: latchClient,
}

// maxCount is the greatest count of a latch.
const maxCount = 3

func latchClient(ctx context.Context, stop <-chan struct{}, e Env) {
	p := e.Params
	l := latch{mix: mix{Env: e, ctx: ctx, stop: stop, keys: p.sharedKeys(), own: p.ownKey(e.Session.Number())}}
	meets := p.Sequences != ""
	for !l.over() {
		switch l.key = l.own; {
		case meets:
			l.key = l.keys[e.Rand.IntN(len(l.keys))]
			l.meet()
		case l.chance(2):
			l.key = l.keys[e.Rand.IntN(len(l.keys))]
			l.takePart()
		default:
			l.alone()
		}
		pause(ctx, stop, grain+e.Params.Think+random(e, e.Params.Jitter))
	}
}

// latch is one client of workload latch.
type latch struct {
	mix
	before uint64 // the generation of its own key that opened last
}

// alone does everything with a latch that no other client uses.
func (l *latch) alone() {
	count := 1 + l.Rand.IntN(maxCount)
	armed := l.Session.Arm(l.ctx, l.key, count)
	if armed.Outcome != history.OK {
		l.open()
		return
	}
	if l.before != 0 && l.chance(3) {
		l.Session.Await(l.ctx, l.key, l.before, l.Env.wait()) // that generation is over
	}
	if l.before != 0 && l.chance(3) {
		l.Session.CountDown(l.ctx, l.key, l.participant(), l.before) // too late
	}
	if l.Can.Has(client.CanDelete) && l.chance(5) {
		l.discard(count, armed.Token)
		return
	}
	members := l.chance(2) // the same ones count in one generation after the other
	for left := count; left > 0 && !l.over(); left-- {
		switch l.Rand.IntN(4) {
		case 0:
			l.Session.Await(l.ctx, l.key, armed.Token, l.briefly())
		case 1:
			l.Session.Arm(l.ctx, l.key, count) // it is still counting
		}
		participant := fmt.Sprintf("member %d of %d", left, l.Session.Number())
		if !members {
			participant = l.participant()
		}
		l.Session.CountDown(l.ctx, l.key, participant, armed.Token)
		l.look()
		if l.chance(3) {
			l.Session.CountDown(l.ctx, l.key, participant, 0)
		}
	}
	if l.Session.Await(l.ctx, l.key, armed.Token, l.Env.wait()).Outcome == history.OK {
		l.before = armed.Token
		l.look()
	}
	if l.chance(2) {
		l.Session.CountDown(l.ctx, l.key, l.participant(), armed.Token) // one more than are needed
		l.Session.Await(l.ctx, l.key, 0, l.briefly())
	}
}

// participant is one that has not counted yet; empty: the lock has to make one up.
func (l *latch) participant() string {
	if l.Can.Has(client.CountsUnnamed) && l.chance(2) {
		return ""
	}
	return l.owner()
}

// look asks for the state of the latch, some of the time, if that can be done.
func (l *latch) look() {
	if l.Can.Has(client.CanInspect) && l.chance(3) {
		l.Session.Inspect(l.ctx, l.key)
	}
}

// discard counts a latch down, perhaps until it is open, deletes it, and uses it once more: it does not exist.
func (l *latch) discard(count int, generation uint64) {
	for range l.Rand.IntN(count + 1) {
		l.Session.CountDown(l.ctx, l.key, l.participant(), generation)
	}
	l.look()
	l.before = 0
	if l.Session.Delete(l.ctx, l.key).Outcome != history.OK {
		return
	}
	switch l.Rand.IntN(4) {
	case 0:
		l.Session.Await(l.ctx, l.key, generation, l.briefly())
	case 1:
		l.Session.CountDown(l.ctx, l.key, l.participant(), generation)
	case 2:
		l.Session.Delete(l.ctx, l.key)
	case 3: // the latch that follows is another one
		if armed := l.Session.Arm(l.ctx, l.key, 1); armed.Outcome == history.OK {
			l.Session.CountDown(l.ctx, l.key, l.participant(), generation)
			l.Session.Await(l.ctx, l.key, generation, l.briefly())
			l.Session.CountDown(l.ctx, l.key, l.participant(), armed.Token)
		}
	}
	l.look()
}

// open counts a latch down that an operation of unknown outcome left armed.
func (l *latch) open() {
	for range maxCount {
		l.Session.CountDown(l.ctx, l.key, l.participant(), 0)
	}
}

// takePart arms a shared latch, counts it down, waits for it, inspects or deletes it.
func (l *latch) takePart() {
	if l.look(); l.Can.Has(client.CanDelete) && l.chance(8) {
		l.Session.Delete(l.ctx, l.key)
		return
	}
	switch l.Rand.IntN(4) {
	case 0:
		l.Session.Arm(l.ctx, l.key, 1+l.Rand.IntN(maxCount))
	case 1:
		l.Session.Await(l.ctx, l.key, 0, l.briefly())
	case 2:
		l.Session.Await(l.ctx, l.key, 0, l.Env.wait())
	default:
		l.Session.CountDown(l.ctx, l.key, l.participant(), 0)
	}
}

// meeting is the sequence of this workload that a scenario may name.
const meeting = "meeting"

// meet takes part in a meeting of all clients: each counts the latch down once, without naming the
// generation, and waits until it is open. A client that passes, or finds no latch, arms it for the next meeting.
// Sometimes a client calls the meeting off instead: it deletes the latch, which is certainly still counting.
func (l *latch) meet() {
	if l.Can.Has(client.CanDelete) && l.chance(8) {
		l.Session.Delete(l.ctx, l.key)
		return
	}
	counted := l.Session.CountDown(l.ctx, l.key, fmt.Sprintf("member %d", l.Session.Number()), 0)
	over := counted.Code == history.CodeAbsent
	if counted.Outcome == history.OK {
		over = l.Session.Await(l.ctx, l.key, counted.Token, l.Env.wait()).Outcome == history.OK
	}
	if over {
		l.Session.Arm(l.ctx, l.key, l.Params.Clients)
	}
}

// briefly is a wait that may be too short.
func (l *latch) briefly() time.Duration { return grain + random(l.Env, 2*l.Params.Hold) }
