package checker

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// draft is an operation of a random history, before it becomes two events.
type draft struct {
	f       string
	owner   int
	call    int
	back    int
	typ     history.Type
	code    string
	token   uint64
	process int
}

// drawing makes small random histories of one key: a correct mutex, with failing tries, unknown outcomes, re-entries,
// losses and crashes, some operations of which are then corrupted. Times are small numbers, so that many are equal.
type drawing struct {
	r      *rand.Rand
	drafts []draft
	owners int
	now    int
	token  uint64
}

func (d *drawing) some(n int) int { return d.r.IntN(n + 1) }

func (d *drawing) once(percent int) bool { return d.r.IntN(100) < percent }

func (d *drawing) add(f string, owner, call, back int, typ history.Type) *draft {
	d.drafts = append(d.drafts, draft{f: f, owner: owner, process: owner, call: call, back: max(call, back), typ: typ})
	return &d.drafts[len(d.drafts)-1]
}

// episode is one hold of a new owner or, rarely, of an earlier one.
func (d *drawing) episode() {
	owner := d.owners
	if d.owners++; d.once(6) && owner > 0 {
		owner = d.r.IntN(owner)
	}
	call := max(0, d.now-d.some(8))
	if d.once(10) {
		d.add(history.Acquire, owner, call, call, history.Info)
		if d.once(30) { // cleaned up by the same owner
			d.add(history.Release, owner, call+d.some(2), call+3, history.OK)
		}
		return
	}
	granted := max(call, d.now) + d.some(2)
	t := granted + d.some(3)
	f := history.Acquire
	if d.once(20) {
		f = history.Try
	}
	d.token++
	d.add(f, owner, call, t, history.OK).token = d.token
	depth := 1
	for d.once(25) && depth < 3 {
		from := t + d.some(2)
		t = from + d.some(2)
		if typ := history.OK; d.once(90) {
			d.add(history.Acquire, owner, from, t, typ)
			depth++
		} else {
			d.add(history.Acquire, owner, from, t, history.Info)
		}
	}
	d.leave(owner, t, depth)
	for d.once(30) {
		at := granted + d.some(max(0, d.now-granted))
		d.owners++
		d.add(history.Try, d.owners, max(0, at-d.some(3)), at+d.some(3), history.Fail).code = history.CodeHeld
	}
}

// leave ends an episode in one of several ways.
func (d *drawing) leave(owner, t, depth int) {
	if d.once(8) {
		notice := history.Lost
		if d.once(50) {
			notice = history.Crash
		}
		at := t + d.some(3)
		d.add(notice, owner, at, at, 0)
		d.now = at + d.some(2)
		if d.once(40) {
			typ := history.Fail
			if d.once(15) {
				typ = history.OK
			}
			d.add(history.Release, owner, at+d.some(2), at+4, typ)
		}
		return
	}
	for ; depth > 0; depth-- {
		call := t + d.some(4)
		d.now = call + d.some(2)
		t = d.now + d.some(2)
		typ := history.OK
		if d.once(8) {
			typ = history.Info
		}
		d.add(history.Release, owner, call, t, typ)
		if typ == history.Info && d.once(50) {
			return
		}
	}
}

// corrupt changes one operation. An earlier return of a grant, or a later invocation of a release, makes two holds
// overlap.
func (d *drawing) corrupt() {
	o := &d.drafts[d.r.IntN(len(d.drafts))]
	by := 1 + d.some(7)
	switch n := d.r.IntN(10); {
	case o.typ == 0 || n == 0:
		o.call, o.back = max(0, o.call+by-4), max(0, o.back+by-4)
	case n == 1:
		o.typ = history.OK
	case n == 2 && o.typ == history.OK:
		o.typ = history.Info
	case o.f == history.Release:
		o.call += by
		o.back = max(o.call, o.back+d.some(by))
	case o.typ == history.Fail:
		o.call, o.back = max(0, o.call+by-4), max(0, o.back+by-4)
	default:
		o.back = max(0, o.back-by)
		o.call = min(o.call, o.back)
	}
	if o.token > 1 && d.once(20) {
		o.token--
	}
}

// randomHistory draws a history from a seed.
func randomHistory(seed uint64) *history.History {
	d := &drawing{r: rand.New(rand.NewPCG(seed, 7))}
	for n := 1 + d.r.IntN(5); n > 0; n-- {
		d.episode()
	}
	for d.once(70) {
		d.corrupt()
	}
	h, err := history.Build(d.events())
	if err != nil {
		panic(err)
	}
	return h
}

func (d *drawing) events() []history.Event {
	var events []history.Event
	for _, o := range d.drafts {
		e := history.Event{Process: history.Process(o.process), F: o.f, Key: "k", Time: time.Duration(o.call)}
		e.Value = &history.Value{Owner: strconv.Itoa(o.owner)}
		if o.typ == 0 {
			e.Type = history.Info
			events = append(events, e)
			continue
		}
		e.Type = history.Invoke
		events = append(events, e)
		e.Type, e.Time = o.typ, time.Duration(o.back)
		e.Value = &history.Value{Owner: strconv.Itoa(o.owner), Token: o.token}
		if o.code != "" && o.typ == history.Fail {
			e.Error = &history.Error{Code: o.code}
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	for i := range events {
		events[i].Index = int64(i)
	}
	return events
}

// longHistory is a correct history of n operations of clients that compete for keys. Times are nanoseconds of a busy
// lock.
func longHistory(n, clients, keys int, seed uint64) []history.Event {
	r := rand.New(rand.NewPCG(seed, 11))
	events := make([]history.Event, 0, 2*n)
	now := make([]time.Duration, keys)
	calls := make([][]time.Duration, keys)
	for k := range keys {
		calls[k] = make([]time.Duration, clients)
	}
	some := func(n int) time.Duration { return time.Duration(1 + r.IntN(n)) }
	var token uint64
	for i := 0; i < n; i += 2 {
		k := (i / 2) % keys
		c := r.IntN(clients)
		token++
		t := max(now[k], calls[k][c]) + some(2000)
		p := history.Process(k*clients + c)
		v := &history.Value{Owner: "o" + strconv.Itoa(i), Lease: time.Second}
		e := history.Event{Process: p, F: history.Acquire, Key: "key-" + strconv.Itoa(k), Type: history.Invoke, Value: v}
		e.Time = calls[k][c]
		events = append(events, e)
		e.Type, e.Time = history.OK, t+some(500)
		e.Value = &history.Value{Token: token, Valid: time.Second}
		events = append(events, e)
		e.Type, e.F, e.Value, e.Time = history.Invoke, history.Release, v, e.Time+some(3000)
		events = append(events, e)
		now[k] = e.Time
		e.Type, e.Value, e.Time = history.OK, nil, e.Time+some(1000)
		events = append(events, e)
		calls[k][c] = e.Time + some(500)
	}
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	for i := range events {
		events[i].Index = int64(i)
	}
	return events
}
