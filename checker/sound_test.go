package checker_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// This file has a lock that is right: clients ask a server that grants, refuses,
// counts and lets leases run out as it should, over a network that takes its time
// and loses answers. Whatever it records, no property may be violated.

// stake is what one owner has at the server.
type stake struct {
	depth   [2]int // acquires to write and to read; of a semaphore permits, in the first
	expires int    // 0: never
	token   uint64
}

// asker is a client: it has one operation under way, or none.
type asker struct {
	process, life int
	op            string // "": idle
	mode, permits int
	lease         int
	effectAt      int // or the next attempt
	givesUp       int
	returnAt      int // 0: the server has not done it yet
	answer        history.Event
	next          int // when it asks again
	has           [2]int
	promise       int // until when it relies on what it has; 0: without end
}

// honestLock is a run in ticks of a millisecond.
type honestLock struct {
	r      *rand.Rand
	kind   string
	limit  int
	leases bool
	told   bool   // the validity, the count and the token are told
	flaw   string // what is wrong with the server; "": nothing
	now    int
	token  uint64
	stakes map[string]*stake
	askers []*asker
	events []history.Event
}

func (l *honestLock) once(percent int) bool { return l.r.IntN(100) < percent }

func (a *asker) owner() string { return fmt.Sprintf("%d/%d", a.process, a.life) }

func (l *honestLock) record(a *asker, typ history.Type, f string, v *history.Value) *history.Event {
	e := history.Event{Index: int64(len(l.events)), Time: time.Duration(l.now) * time.Millisecond, Type: typ,
		Process: history.Process(a.process), F: f, Key: "k", Value: v}
	l.events = append(l.events, e)
	return &l.events[len(l.events)-1]
}

// tick lets one millisecond pass.
func (l *honestLock) tick() {
	l.now++
	for _, a := range l.askers { // who relies on the lock is told of the loss before others can have it
		if a.promise > 0 && l.now >= a.promise && a.has != [2]int{} && a.op == "" {
			l.record(a, history.Info, history.Lost, &history.Value{Owner: a.owner()})
			a.forget()
		}
	}
	for owner, s := range l.stakes {
		if s.expires > 0 && l.now >= s.expires {
			delete(l.stakes, owner)
		}
	}
	for _, i := range l.r.Perm(len(l.askers)) {
		switch a := l.askers[i]; {
		case a.op == "" && l.now >= a.next:
			l.ask(a)
		case a.op == "":
		case a.returnAt == 0 && l.now >= a.effectAt:
			l.attempt(a)
		case a.returnAt > 0 && l.now >= a.returnAt:
			l.complete(a)
		}
	}
}

// forget makes a new owner of a client that has lost what it had.
func (a *asker) forget() {
	a.has, a.promise = [2]int{}, 0
	a.life++
}

// ask begins an operation.
func (l *honestLock) ask(a *asker) {
	a.mode, a.permits, a.lease, a.returnAt, a.givesUp = 0, 1, 0, 0, l.now+20+l.r.IntN(400)
	v := &history.Value{Owner: a.owner()}
	inside := a.has[0]+a.has[1] > 0
	if inside && a.promise > 0 && l.now+12 >= a.promise { // no answer would come in time: it waits to be told
		return
	}
	if inside && l.once(70) {
		a.op = history.Release
		if a.has[0] == 0 || (a.has[1] > 0 && l.once(50)) {
			a.mode = 1
		}
		if l.kind == "semaphore" {
			a.permits = 1 + l.r.IntN(a.has[0])
		}
		if a.mode == 1 && a.has[0] == 0 && l.once(50) {
			v.Mode = "read"
		}
	} else {
		a.op = history.Acquire
		if inside || l.once(40) { // who is inside does not wait: its lease goes on
			a.op = history.Try
		}
		if l.kind == "readers-writer" && l.once(60) {
			a.mode, v.Mode = 1, "read"
		}
		if l.kind == "semaphore" {
			a.permits, v.Limit = 1+l.r.IntN(l.limit), l.limit
		}
		if l.leases {
			a.lease = 60 + l.r.IntN(60)
			v.Lease = time.Duration(a.lease) * time.Millisecond
		}
	}
	if l.kind == "semaphore" {
		v.Permits = a.permits
	}
	a.effectAt = l.now + l.r.IntN(4)
	l.record(a, history.Invoke, a.op, v)
}

// attempt is what the server does with an operation; who has to wait tries again.
func (l *honestLock) attempt(a *asker) {
	answer := history.Event{Type: history.OK, Value: &history.Value{}}
	switch {
	case a.op == history.Release:
		l.release(a, &answer)
	case l.open(a):
		l.grant(a, &answer)
	case a.op == history.Try:
		answer.Type, answer.Error = history.Fail, &history.Error{Code: history.CodeHeld}
	case l.now >= a.givesUp:
		answer.Type, answer.Error = history.Fail, &history.Error{Code: "timeout"}
	default:
		a.effectAt = l.now + 1
		return
	}
	a.answer, a.returnAt = answer, l.now+1+l.r.IntN(4)
}

// open says whether there is room.
func (l *honestLock) open(a *asker) bool {
	out, others, writers := 0, 0, 0
	for owner, s := range l.stakes {
		out += s.depth[0]
		if owner != a.owner() {
			others += s.depth[0] + s.depth[1]
			writers += s.depth[0]
		}
	}
	switch {
	case l.flaw == "lets two in" && l.once(10):
		return true
	case l.kind == "semaphore":
		return out+a.permits <= l.limit
	case a.mode == 1:
		return writers == 0
	}
	return others == 0
}

func (l *honestLock) grant(a *asker, answer *history.Event) {
	s := l.stakes[a.owner()]
	if s == nil {
		if l.token++; l.flaw == "forgets its tokens" && l.once(20) {
			l.token = 1
		}
		s = &stake{token: l.token}
		l.stakes[a.owner()] = s
	}
	s.depth[a.mode] += a.permits
	if a.lease > 0 {
		s.expires = max(s.expires, l.now+a.lease)
	}
	if l.flaw == "counts twice" && l.once(20) { // as if the request had come twice
		s.depth[a.mode] += a.permits
	}
	if l.told && l.kind != "semaphore" {
		answer.Value.Token, answer.Value.Count = s.token, s.depth[a.mode]
	}
}

func (l *honestLock) release(a *asker, answer *history.Event) {
	s := l.stakes[a.owner()]
	if l.flaw == "frees all at a release" && s != nil {
		s.depth = [2]int{}
		s.depth[a.mode] = a.permits
	}
	if s == nil || s.depth[a.mode] < a.permits {
		answer.Type, answer.Error = history.Fail, &history.Error{Code: "not-held"}
		return
	}
	if s.depth[a.mode] -= a.permits; s.depth == [2]int{} {
		delete(l.stakes, a.owner())
	}
}

// complete gives the client its answer, or loses it.
func (l *honestLock) complete(a *asker) {
	op := a.op
	a.op, a.next = "", l.now+l.r.IntN(30)
	s := l.stakes[a.owner()]
	late := op != history.Release && a.answer.Type == history.OK && (s == nil || (s.expires > 0 && s.expires <= l.now+1))
	if l.once(4) && (l.leases || op == history.Release || a.answer.Type != history.OK) || late {
		l.record(a, history.Info, op, nil)
		if a.has != [2]int{} { // nobody relies any more on what it has besides
			l.record(a, history.Info, history.Crash, &history.Value{Owner: a.owner()})
		}
		a.process += len(l.askers)
		a.forget()
		if s != nil && s.expires == 0 { // a watchdog stops, and the server forgets
			s.expires = l.now + 50
		}
		return
	}
	if op != history.Release && a.answer.Type == history.OK {
		a.has[a.mode] += a.permits
		a.promise = s.expires
		if l.told && a.promise > 0 {
			a.answer.Value.Valid = time.Duration(a.promise-l.now) * time.Millisecond
		}
	}
	e := l.record(a, a.answer.Type, op, a.answer.Value)
	e.Error = a.answer.Error
	switch {
	case op == history.Release && a.answer.Type == history.OK:
		a.has[a.mode] -= a.permits
	case op == history.Release:
		a.forget()
	}
}

func runHonest(seed uint64, kind, flaw string) []history.Event {
	l := &honestLock{r: rand.New(rand.NewPCG(seed, 77)), kind: kind, flaw: flaw, stakes: make(map[string]*stake)}
	l.leases, l.told, l.limit = l.once(60), l.once(60), 1+l.r.IntN(4)
	for i := range 2 + l.r.IntN(3) {
		l.askers = append(l.askers, &asker{process: i, next: l.r.IntN(20)})
	}
	for range 150 + l.r.IntN(400) {
		l.tick()
	}
	return l.events
}

func TestRightLockIsNotConvicted(t *testing.T) {
	judged, kept := 0, make(map[checker.Property]int)
	for _, kind := range []string{"mutex", "readers-writer", "semaphore"} {
		for seed := range uint64(500) {
			events := runHonest(seed, kind, "")
			h, err := history.Build(events)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range checker.Judge(h, checker.Options{Search: time.Second}).Results {
				if r.Outcome == checker.Violated || strings.Contains(r.Summary, "defect") {
					t.Fatalf("%s, seed %d: %s %s: %s\n%s", kind, seed, r.Property, r.Outcome, r.Summary, lines(events))
				}
				if r.Outcome == checker.Holds {
					kept[r.Property]++
				}
			}
			judged++
		}
	}
	t.Logf("%d runs, kept: %v", judged, kept)
	for _, p := range []checker.Property{checker.Exclusion, checker.LeaseExclusion, checker.Permits, checker.ReadersWriter,
		checker.Fencing, checker.Honesty, checker.HoldCount, checker.Linearizable} {
		if kept[p] < judged/10 {
			t.Errorf("%s was judged in %d of %d runs only", p, kept[p], judged)
		}
	}
}

// TestWrongLockIsConvicted: the same lock with a flaw, which the property that
// speaks of it has to find in most runs.
func TestWrongLockIsConvicted(t *testing.T) {
	tests := []struct {
		kind, flaw string
		finds      checker.Property
	}{
		{"mutex", "lets two in", checker.Exclusion},
		{"mutex", "lets two in", checker.Linearizable},
		{"readers-writer", "lets two in", checker.ReadersWriter},
		{"semaphore", "lets two in", checker.Permits},
		{"mutex", "forgets its tokens", checker.Fencing},
		{"mutex", "counts twice", checker.HoldCount},
		{"mutex", "frees all at a release", checker.Exclusion},
		{"semaphore", "frees all at a release", checker.Permits},
	}
	const runs = 100
	for _, test := range tests {
		found := 0
		for seed := range uint64(runs) {
			h, err := history.Build(runHonest(seed, test.kind, test.flaw))
			if err != nil {
				t.Fatal(err)
			}
			o := checker.Options{Only: []checker.Property{test.finds}, Search: time.Second}
			if checker.Judge(h, o).Result(test.finds).Outcome == checker.Violated {
				found++
			}
		}
		t.Logf("%s of a %s that %s: %d of %d runs", test.finds, test.kind, test.flaw, found, runs)
		if found < runs/4 {
			t.Errorf("%s finds a %s that %s in %d of %d runs only", test.finds, test.kind, test.flaw, found, runs)
		}
	}
}
