package checker_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// This file has a model of a correct lock: clients send requests to a server that grants, refuses, counts and lets
// leases expire as it should, over a network with delays and lost replies. Whatever it records, no property may be
// violated.

// modelHold is the hold of one owner at the server.
type modelHold struct {
	depth   [2]int // acquires to write and to read; of a semaphore permits, in the first
	expires int    // 0: never
	token   uint64
}

// modelClient is a client with at most one operation in flight.
type modelClient struct {
	process, life int
	op            string // "": idle
	mode, permits int
	lease         int
	effectAt      int // or the next attempt
	givesUp       int
	returnAt      int // 0: the server has not processed it
	reply         history.Event
	next          int // when it sends its next request
	has           [2]int
	promise       int // until when it relies on its hold; 0: without an end
}

// lockModel is a run in ticks of a millisecond.
type lockModel struct {
	r       *rand.Rand
	kind    string
	limit   int
	leases  bool
	verbose bool   // replies have validity, count and token
	unaware bool   // leases are the server's: clients neither request nor know them, and renew
	closing bool   // clients only release their holds
	flaw    string // the flaw of the server; "": none
	now     int
	token   uint64
	held    map[string]*modelHold
	clients []*modelClient
	events  []history.Event
}

func (l *lockModel) once(percent int) bool { return l.r.IntN(100) < percent }

func (a *modelClient) owner() string { return fmt.Sprintf("%d/%d", a.process, a.life) }

func (l *lockModel) record(a *modelClient, typ history.Type, f string, v *history.Value) *history.Event {
	e := history.Event{Index: int64(len(l.events)), Time: time.Duration(l.now) * time.Millisecond, Type: typ,
		Process: history.Process(a.process), F: f, Key: "k", Value: v}
	l.events = append(l.events, e)
	return &l.events[len(l.events)-1]
}

// tick lets one millisecond pass.
func (l *lockModel) tick() {
	l.now++
	for _, a := range l.clients { // a loss is reported before others can acquire the lock
		if a.promise > 0 && l.now >= a.promise && a.has != [2]int{} && a.op == "" {
			l.record(a, history.Info, history.Lost, &history.Value{Owner: a.owner()})
			a.forget()
		}
	}
	for owner, s := range l.held {
		if s.expires > 0 && l.now >= s.expires {
			delete(l.held, owner)
		}
	}
	for _, i := range l.r.Perm(len(l.clients)) {
		switch a := l.clients[i]; {
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

// forget gives a new owner to a client that has lost its hold.
func (a *modelClient) forget() {
	a.has, a.promise = [2]int{}, 0
	a.life++
}

// ask begins an operation.
func (l *lockModel) ask(a *modelClient) {
	a.mode, a.permits, a.lease, a.returnAt, a.givesUp = 0, 1, 0, 0, l.now+20+l.r.IntN(400)
	v := &history.Value{Owner: a.owner()}
	inside := a.has[0]+a.has[1] > 0
	if l.closing && !inside {
		return
	}
	if inside && a.promise > 0 && l.now+12 >= a.promise { // no reply would come in time: it waits for the loss report
		return
	}
	if inside && l.unaware && !l.closing && l.once(50) {
		a.op = history.Renew
	} else if inside && (l.closing || l.once(70)) {
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
		if inside || l.once(40) { // a holder does not wait: its lease is running
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
		}
		if l.leases && !l.unaware {
			v.Lease = time.Duration(a.lease) * time.Millisecond
		}
	}
	if l.kind == "semaphore" {
		v.Permits = a.permits
	}
	a.effectAt = l.now + l.r.IntN(4)
	l.record(a, history.Invoke, a.op, v)
}

// attempt lets the server execute a request; a waiter tries again.
func (l *lockModel) attempt(a *modelClient) {
	reply := history.Event{Type: history.OK, Value: &history.Value{}}
	switch {
	case a.op == history.Release:
		l.release(a, &reply)
	case a.op == history.Renew:
		l.renew(a, &reply)
	case l.open(a):
		l.grant(a, &reply)
	case a.op == history.Try:
		reply.Type, reply.Error = history.Fail, &history.Error{Code: history.CodeHeld}
	case l.now >= a.givesUp:
		reply.Type, reply.Error = history.Fail, &history.Error{Code: "timeout"}
	default:
		a.effectAt = l.now + 1
		return
	}
	a.reply, a.returnAt = reply, l.now+1+l.r.IntN(4)
}

// open reports whether there is room.
func (l *lockModel) open(a *modelClient) bool {
	out, others, writers := 0, 0, 0
	for owner, s := range l.held {
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

func (l *lockModel) grant(a *modelClient, reply *history.Event) {
	s := l.held[a.owner()]
	if s == nil {
		if l.token++; l.flaw == "forgets its tokens" && l.once(20) {
			l.token = 1
		}
		s = &modelHold{token: l.token}
		l.held[a.owner()] = s
	}
	s.depth[a.mode] += a.permits
	if a.lease > 0 {
		s.expires = max(s.expires, l.now+a.lease)
	}
	if l.flaw == "counts twice" && l.once(20) { // as if the request had arrived twice
		s.depth[a.mode] += a.permits
	}
	if l.verbose && l.kind != "semaphore" {
		reply.Value.Token, reply.Value.Count = s.token, s.depth[a.mode]
	}
}

func (l *lockModel) renew(a *modelClient, reply *history.Event) {
	s := l.held[a.owner()]
	if s == nil {
		reply.Type, reply.Error = history.Fail, &history.Error{Code: "not-held"}
	} else if s.expires > 0 {
		s.expires = max(s.expires, l.now+60)
	}
}

func (l *lockModel) release(a *modelClient, reply *history.Event) {
	s := l.held[a.owner()]
	if l.flaw == "frees all at a release" && s != nil {
		s.depth = [2]int{}
		s.depth[a.mode] = a.permits
	}
	if s == nil || s.depth[a.mode] < a.permits {
		reply.Type, reply.Error = history.Fail, &history.Error{Code: "not-held"}
		return
	}
	if s.depth[a.mode] -= a.permits; s.depth == [2]int{} {
		delete(l.held, a.owner())
	}
}

// complete delivers the reply to the client, or loses it.
func (l *lockModel) complete(a *modelClient) {
	op := a.op
	a.op, a.next = "", l.now+l.r.IntN(30)
	s := l.held[a.owner()]
	grants := op == history.Acquire || op == history.Try
	late := grants && a.reply.Type == history.OK && (s == nil || (s.expires > 0 && s.expires <= l.now+1))
	lost := l.once(4) && (l.leases || op == history.Release || a.reply.Type != history.OK) || late
	if l.unaware { // only a refusal shows that a lease had ended, and nobody would be refused after an unknown grant
		lost = lost && !late && a.has == [2]int{} && a.reply.Type != history.OK
	}
	if lost {
		l.record(a, history.Info, op, nil)
		if a.has != [2]int{} { // the client no longer relies on its other holds
			l.record(a, history.Info, history.Crash, &history.Value{Owner: a.owner()})
		}
		a.process += len(l.clients)
		a.forget()
		if s != nil && s.expires == 0 { // the watchdog stops, and the server lets the lease expire
			s.expires = l.now + 50
		}
		return
	}
	if grants && a.reply.Type == history.OK {
		a.has[a.mode] += a.permits
		if !l.unaware {
			a.promise = s.expires
		}
		if l.verbose && a.promise > 0 {
			a.reply.Value.Valid = time.Duration(a.promise-l.now) * time.Millisecond
		}
	}
	e := l.record(a, a.reply.Type, op, a.reply.Value)
	e.Error = a.reply.Error
	switch {
	case op == history.Release && a.reply.Type == history.OK:
		a.has[a.mode] -= a.permits
	case op == history.Release || op == history.Renew && a.reply.Type != history.OK:
		a.forget()
	}
}

func runHonest(seed uint64, kind, flaw string) []history.Event {
	l := &lockModel{r: rand.New(rand.NewPCG(seed, 77)), kind: kind, flaw: flaw, held: make(map[string]*modelHold)}
	l.leases, l.verbose, l.limit = l.once(60), l.once(60), 1+l.r.IntN(4)
	for i := range 2 + l.r.IntN(3) {
		l.clients = append(l.clients, &modelClient{process: i, next: l.r.IntN(20)})
	}
	for range 150 + l.r.IntN(400) {
		l.tick()
	}
	return l.events
}

func TestCorrectLockIsNotConvicted(t *testing.T) {
	race.Skip(t)
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

// TestFlawedLockIsConvicted: of the same lock with a flaw, the property for it finds most runs violated.
func TestFlawedLockIsConvicted(t *testing.T) {
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
