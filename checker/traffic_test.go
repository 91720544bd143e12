package checker

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// traffic describes a long history: clients take turns at locks, each for about a millisecond. Shares are in
// thousandths of the turns.
type traffic struct {
	name          string
	clients, keys int  // clients of each key
	named         bool // each client is one owner; else each acquire has an owner of its own
	anonymous     bool // how many clients there are is not recorded

	refused   int  // another client is refused at once
	timedOut  int  // another client waits in vain for three slacks
	unknown   int  // the outcome of the acquire is unknown
	unsure    int  // the outcome of the release is unknown
	kept      int  // it is not released: its lease ends it
	lost      int  // the same, and the loss is reported
	crashed   int  // its client crashes
	failed    int  // its release ends with an error
	forced    int  // another client releases it by force
	unforced  int  // the same, with an unknown outcome: its lease ends it
	renewed   int  // it is renewed twice
	denied    int  // its renewal is refused at the end of its lease
	inspects  int  // another client asks who holds the lock
	gaveUp    int  // another client waits in vain, and its acquire ends with an error
	unrenewed int  // its renewal ends with an error
	tries     int  // another client tries, and is refused
	slow      int  // the release takes longer than the slack
	touches   int  // its client writes to the resource
	readers   int  // it is a hold for reading
	permits   int  // size of the semaphores; 0: none
	several   bool // each acquire is one of several keys
	faults    int  // turns between two faults of a client or a server; 0: none
	pauses    bool // these faults pause clients
	samples   int  // turns between two samples of a server; 0: none
	probes    bool // the harness acquires each lock at the end
}

// shapesOfTraffic are histories for which a rule that reads a whole list for each operation takes quadratic time.
func shapesOfTraffic() []traffic {
	return []traffic{
		{name: "plain", clients: 20, keys: 1, named: true},
		{name: "refusals", clients: 20, keys: 1, refused: 900, lost: 5, timedOut: 1},
		{name: "refusals-anonymous", clients: 20, keys: 1, refused: 900, unknown: 5, lost: 5, anonymous: true, named: true},
		{name: "time-outs", clients: 5000, keys: 1, timedOut: 400, lost: 1},
		{name: "unknown-acquires", clients: 20, keys: 1, unknown: 300},
		{name: "unknown-releases", clients: 20, keys: 1, unsure: 300},
		{name: "kept", clients: 20, keys: 1, kept: 5},
		{name: "losses", clients: 20, keys: 1, lost: 300},
		{name: "crashes", clients: 20, keys: 1, crashed: 300},
		{name: "crashes-anonymous", clients: 20, keys: 1, crashed: 300, anonymous: true},
		{name: "errors", clients: 20, keys: 1, failed: 300},
		{name: "forced-releases", clients: 20, keys: 5, forced: 300, refused: 100},
		{name: "forced-releases-named", clients: 20, keys: 1, forced: 300, named: true},
		{name: "unknown-forced-releases", clients: 20, keys: 5, unforced: 300, forced: 100},
		{name: "samples-of-forced-releases", clients: 20, keys: 5, samples: 1, forced: 300, unforced: 20},
		{name: "failed-waits", clients: 5000, keys: 1, gaveUp: 300, slow: 20, lost: 10},
		{name: "failed-renewals", clients: 20, keys: 1, unrenewed: 300, lost: 10},
		{name: "failed-renewals-named", clients: 20, keys: 1, unrenewed: 300, named: true},
		{name: "tries", clients: 20, keys: 1, tries: 900, unknown: 10, slow: 20},
		{name: "renewals", clients: 20, keys: 1, renewed: 1000, denied: 50},
		{name: "keys", clients: 2, keys: 50000, refused: 100, unknown: 50, lost: 10, probes: true},
		{name: "owners", clients: 5, keys: 10, refused: 300, unknown: 20, lost: 20},
		{name: "clients", clients: 10000, keys: 10, refused: 300, unknown: 20, lost: 20, crashed: 20},
		{name: "inspections", clients: 20, keys: 5, inspects: 900, named: true},
		{name: "touches", clients: 20, keys: 5, touches: 900, crashed: 10},
		{name: "readers", clients: 50, keys: 5, readers: 800, refused: 100},
		{name: "permits", clients: 50, keys: 5, permits: 10, refused: 300, lost: 5, unknown: 5},
		{name: "several-keys", clients: 20, keys: 6, several: true, unknown: 5, lost: 5},
		{name: "faults", clients: 500, keys: 5, faults: 100, refused: 300, unknown: 20, lost: 5, failed: 20,
			crashed: 5, timedOut: 20, gaveUp: 20, unrenewed: 20},
		{name: "pauses", clients: 500, keys: 5, faults: 100, pauses: true, refused: 300, lost: 5},
		{name: "samples", clients: 20, keys: 1, samples: 1, refused: 100},
		{name: "samples-of-losses", clients: 500, keys: 5, samples: 1, refused: 100, unknown: 5, lost: 20,
			crashed: 20, timedOut: 20, failed: 10},
	}
}

const (
	trafficStep  = time.Millisecond
	trafficLease = 2 * time.Second
)

// trafficMaker makes a history of a traffic.
type trafficMaker struct {
	traffic
	r       *rand.Rand
	events  []history.Event
	witness []history.Sample
	process []history.Process // of each client
	busy    []time.Duration   // by client: until when an operation is in flight
	now     []time.Duration   // by key: when it is free
	token   []uint64          // by key: the last one
	end     time.Duration
	turn    int
}

func (m *trafficMaker) once(share int) bool { return m.r.IntN(1000) < share }

// idle is a client of key k that has no operation in flight at t, and is not c.
func (m *trafficMaker) idle(k int, t time.Duration, not int) int {
	for {
		if c := k*m.clients + m.r.IntN(m.clients); c != not && m.busy[c] <= t {
			return c
		}
		t += trafficStep / 10
	}
}

func (m *trafficMaker) owner(c int) string {
	if m.named {
		return "c" + strconv.Itoa(c)
	}
	return "t" + strconv.Itoa(m.turn) + "c" + strconv.Itoa(c)
}

func (m *trafficMaker) key(k int) string { return "k" + strconv.Itoa(k%m.keys) }

// trafficOp is an operation with its completion.
type trafficOp struct {
	f             string
	client, key   int
	call, back    time.Duration
	typ           history.Type
	asked, answer history.Value
	code          string // of an error; empty: none
}

func (m *trafficMaker) add(o trafficOp) {
	c, asked := o.client, o.asked
	e := history.Event{Type: history.Invoke, Process: m.process[c], F: o.f, Key: m.key(o.key), Time: o.call}
	asked.Owner = cmp.Or(asked.Owner, m.owner(c))
	e.Value = &asked
	m.append(e)
	e.Type, e.Time, e.Value = o.typ, o.back, &o.answer
	if o.code != "" {
		e.Error = &history.Error{Code: o.code}
	}
	m.append(e)
	m.busy[c] = o.back + 1
	m.end = max(m.end, o.back)
	if o.typ == history.Info {
		m.process[c] += history.Process(len(m.process))
	}
}

// append adds an event of an operation, and one of its second key.
func (m *trafficMaker) append(e history.Event) {
	m.events = append(m.events, e)
	if m.several {
		v := *e.Value
		v.Part = e.Type == history.Invoke
		e.Value, e.Key = &v, e.Key+"x"
		m.events = append(m.events, e)
	}
}

func (m *trafficMaker) notice(f string, c, k int, at time.Duration) {
	e := history.Event{Type: history.Info, Process: m.process[c], F: f, Key: m.key(k), Time: at,
		Value: &history.Value{Owner: m.owner(c)}}
	m.append(e)
	m.end = max(m.end, at)
}

func (m *trafficMaker) requested() history.Value {
	v := history.Value{Lease: trafficLease}
	if m.permits > 0 {
		v.Permits, v.Limit = 1, m.permits
	}
	return v
}

// takeTurn lets one client hold a key, and others meet it.
func (m *trafficMaker) takeTurn(k int) {
	m.turn++
	t := m.now[k] + trafficStep/10
	c := m.idle(k, t, -1)
	t = max(t, m.busy[c])
	asked := m.requested()
	if m.once(m.readers) {
		asked.Mode = "read"
	}
	granted := t + trafficStep/5
	if m.once(m.unknown) {
		m.add(trafficOp{history.Acquire, c, k, t, granted, history.Info, asked, history.Value{}, "timeout"})
		m.now[k] = granted + trafficLease
		return
	}
	m.token[k]++
	answer := history.Value{Token: m.token[k], Valid: trafficLease}
	if m.permits > 0 || m.readers > 0 {
		answer.Token = 0
	}
	m.add(trafficOp{history.Acquire, c, k, t, granted, history.OK, asked, answer, ""})
	t = granted + trafficStep/10
	m.others(c, k, t)
	if m.touches > 0 && m.once(m.touches) {
		m.events = append(m.events, history.Event{Type: history.OK, Process: m.process[c], F: history.Touch, Key: m.key(k),
			Time: t, Value: &history.Value{Owner: m.owner(c), Token: m.token[k], Touch: &history.TouchValue{
				Read: int64(m.turn), Found: int64(m.turn), MaxSeen: m.token[k]}}})
	}
	if m.once(m.renewed) {
		for range 2 {
			m.add(trafficOp{history.Renew, c, k, t, t + trafficStep/10, history.OK, history.Value{Lease: trafficLease},
				history.Value{Valid: trafficLease}, ""})
			t += trafficStep / 5
		}
	}
	if m.once(m.unrenewed) {
		m.add(trafficOp{history.Renew, c, k, t, t + trafficStep/10, history.Fail, history.Value{Lease: trafficLease},
			history.Value{},
			"error"})
		t += trafficStep / 5
	}
	m.leave(c, k, t+trafficStep/5, granted, asked)
}

// others are the clients that meet a hold of client c.
func (m *trafficMaker) others(c, k int, t time.Duration) {
	if m.once(m.refused) {
		m.add(trafficOp{history.Acquire, m.idle(k, t, c), k, t, t + trafficStep/10, history.Fail, m.requested(),
			history.Value{}, "held"})
	}
	if m.once(m.timedOut) {
		asked := m.requested()
		asked.Wait = 3 * time.Second
		m.add(trafficOp{history.Acquire, m.idle(k, t, c), k, t, t + 3*time.Second, history.Fail, asked, history.Value{},
			"timeout"})
	}
	if m.once(m.gaveUp) {
		asked := m.requested()
		asked.Wait = 3 * time.Second
		m.add(trafficOp{history.Acquire, m.idle(k, t, c), k, t, t + 3*time.Second, history.Fail, asked, history.Value{},
			"error"})
	}
	if m.once(m.tries) {
		m.add(trafficOp{history.Try, m.idle(k, t, c), k, t, t + trafficStep/10, history.Fail, m.requested(), history.Value{},
			"held"})
	}
	if m.once(m.inspects) {
		m.add(trafficOp{history.Inspect, m.idle(k, t, c), k, t, t + trafficStep/10, history.OK, history.Value{},
			history.Value{Owner: m.owner(c), Count: 1}, ""})
	}
}

// leave ends a hold that was granted at that time.
func (m *trafficMaker) leave(c, k int, t, granted time.Duration, asked history.Value) {
	asked.Lease, asked.Limit = 0, 0
	m.now[k] = granted + trafficLease + trafficStep
	switch {
	case m.once(m.kept):
	case m.once(m.denied):
		t = m.now[k]
		m.add(trafficOp{history.Renew, c, k, t, t + trafficStep/10, history.Fail, history.Value{}, history.Value{},
			"not-held"})
	case m.once(m.lost):
		m.notice(history.Lost, c, k, granted+trafficLease)
	case m.once(m.crashed):
		m.notice(history.Crash, c, k, t)
		m.process[c] += history.Process(len(m.process))
	case m.once(m.forced):
		other := m.idle(k, t, c)
		m.add(trafficOp{history.ForceRelease, other, k, t, t + trafficStep/10, history.OK, history.Value{}, history.Value{},
			""})
		m.now[k] = t + trafficStep/5
	case m.once(m.unforced):
		other := m.idle(k, t, c)
		m.add(trafficOp{history.ForceRelease, other, k, t, t + trafficStep/10, history.Info, history.Value{}, history.Value{},
			"timeout"})
	case m.once(m.unsure):
		m.add(trafficOp{history.Release, c, k, t, t + trafficStep/10, history.Info, asked, history.Value{}, "timeout"})
	case m.once(m.slow):
		m.add(trafficOp{history.Release, c, k, t, t + 3*time.Second/2, history.OK, asked, history.Value{}, ""})
		m.now[k] = t + 2*time.Second
	case m.once(m.failed):
		m.add(trafficOp{history.Release, c, k, t, t + trafficStep/10, history.Fail, asked, history.Value{}, "error"})
	default:
		m.add(trafficOp{history.Release, c, k, t, t + trafficStep/10, history.OK, asked, history.Value{}, ""})
		m.now[k] = t + trafficStep/5
	}
	m.watch(c, k, granted)
}

// watch adds a fault and a sample, if it is time for them.
func (m *trafficMaker) watch(c, k int, at time.Duration) {
	if m.faults > 0 && m.turn%m.faults == 0 {
		target, affects := "n"+strconv.Itoa(m.turn%3), history.AffectsDelays
		if m.pauses || m.turn/m.faults%2 == 0 {
			target, affects = "client:"+strconv.Itoa(c), history.AffectsClients
		}
		f := history.FaultValue{ID: m.turn, Phase: history.Injected, Target: target, Affects: affects}
		if m.pauses {
			f.Class = history.FaultPauses
		}
		e := history.Event{Type: history.Info, Process: history.Nemesis, F: "some-fault", Time: at}
		for _, phase := range []history.Phase{history.Injected, history.TookEffect, history.Healed} {
			f.Phase = phase
			v := f
			e.Value = &history.Value{Fault: &v}
			m.events = append(m.events, e)
			e.Time += trafficStep
		}
	}
	if m.samples > 0 && m.turn%m.samples == 0 {
		s := history.Sample{Time: at + trafficStep/20, Sent: at, Node: "n1", Up: true, Role: "master"}
		s.Keys = map[string]history.KeyState{m.key(k): {Owner: m.owner(c), Count: 1, TTL: trafficLease, Token: m.token[k]}}
		m.witness = append(m.witness, s)
	}
}

// history makes a history of at least n events.
func (t traffic) history(n int) *history.History {
	m := trafficMaker{traffic: t, r: rand.New(rand.NewPCG(1, 2)), process: make([]history.Process, t.clients*t.keys),
		busy: make([]time.Duration, t.clients*t.keys), now: make([]time.Duration, t.keys), token: make([]uint64, t.keys)}
	for c := range m.process {
		m.process[c] = history.Process(c)
	}
	for k := 0; len(m.events) < n; k++ {
		m.takeTurn(k % m.keys)
	}
	if m.probes {
		for k := range m.keys {
			m.events = append(m.events, history.Event{Type: history.OK, Process: history.Nemesis, F: history.ProbeEvent,
				Key: m.key(k), Time: m.end + time.Minute})
		}
	}
	slices.SortStableFunc(m.events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	slices.SortStableFunc(m.witness, func(a, b history.Sample) int { return cmp.Compare(a.Time, b.Time) })
	b := history.NewBuilder()
	for i := range m.events {
		m.events[i].Index = int64(i)
		if err := b.Add(&m.events[i], 0); err != nil {
			panic(err)
		}
	}
	h := b.History()
	if !t.anonymous {
		h.Clients = t.clients * t.keys
	}
	h.Samples = m.witness
	return h
}

// everyPromise is all promises of the catalog, so that each rule is applied.
func everyPromise() (all promise.Set) {
	for _, p := range promise.Catalog() {
		all = all.With(p.Set)
	}
	return all
}
