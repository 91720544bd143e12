package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
)

// contest counts, while events come, the grants during which another owner asked
// for the lock: what bite asks of clients.
type contest struct {
	grants, contended int
	clients           int // 0: not known
	keys              map[string]*contested
}

// contested is who asks for a key, and who holds it.
type contested struct {
	asking map[history.Process]string // owners, by the process that asks
	named  map[history.Process]string // the owner that a process named last
	held   map[string]*heldBy         // by owner
	calm   map[string]bool            // of these, who was not asked for it yet
}

// heldBy is a hold as far as events tell of it.
type heldBy struct {
	depth   int
	process history.Process
}

// see follows one event.
func (c *contest) see(e *history.Event) {
	switch {
	case e.Process == history.Nemesis || e.F == history.Work || e.F == history.Touch:
		return
	case e.F == history.Crash:
		c.crash(e.Process.Client(c.clients))
		return
	}
	k := c.keys[e.Key]
	if k == nil {
		k = &contested{asking: make(map[history.Process]string), named: make(map[history.Process]string),
			held: make(map[string]*heldBy), calm: make(map[string]bool)}
		c.keys[e.Key] = k
	}
	owner := k.owner(e)
	asks := e.F == history.Acquire || e.F == history.Try
	switch {
	case asks && e.Type == history.Invoke:
		k.asking[e.Process] = owner
		for other := range k.calm { // order does not matter
			if other != owner {
				c.contended++
				delete(k.calm, other)
			}
		}
	case asks && e.Type == history.OK:
		delete(k.asking, e.Process)
		c.grant(k, e.Process, owner)
	case asks && e.Type == history.Fail:
		delete(k.asking, e.Process)
	case e.F == history.Release && e.Type == history.Invoke, e.F == history.Lost:
		h := k.held[owner]
		if h == nil {
			return
		}
		if h.depth--; h.depth <= 0 || e.F == history.Lost {
			k.end(owner)
		}
	}
	if len(k.asking) == 0 && len(k.held) == 0 {
		delete(c.keys, e.Key)
	}
}

// end forgets a hold.
func (k *contested) end(owner string) {
	delete(k.held, owner)
	delete(k.calm, owner)
}

// crash ends the holds of a client.
func (c *contest) crash(client int) {
	for _, k := range c.keys { // order does not matter
		for owner, h := range k.held { // nor here
			if h.process.Client(c.clients) == client {
				k.end(owner)
			}
		}
	}
}

// owner is who an event is of: whom it names, or who asked, or the process.
func (k *contested) owner(e *history.Event) string {
	if e.Value != nil && e.Value.Owner != "" {
		k.named[e.Process] = e.Value.Owner
		return e.Value.Owner
	}
	if owner, asked := k.named[e.Process]; asked {
		return owner
	}
	return fmt.Sprint("process ", e.Process)
}

// grant counts a grant; one inside a hold is none of its own.
func (c *contest) grant(k *contested, p history.Process, owner string) {
	if h := k.held[owner]; h != nil {
		h.depth++
		return
	}
	k.held[owner] = &heldBy{1, p}
	c.grants++
	for _, other := range k.asking { // order does not matter
		if other != owner {
			c.contended++
			return
		}
	}
	k.calm[owner] = true
}

func (c *contest) result(o Options, spans, faults int) Result {
	r := Result{Property: Bite, Outcome: Holds, Counts: map[string]int64{"operations": int64(spans),
		"grants": int64(c.grants), "contended_grants": int64(c.contended)}}
	need := threshold(o.MinContended, 2)
	switch {
	case spans == 0:
		r.Outcome, r.Summary = Undecided, "the run tested too little: the history has no operations"
	case c.contended < need:
		r.Outcome = Undecided
		r.Summary = fmt.Sprintf("the run tested too little: only %d of %s contended, at least %d are needed: use more "+
			"clients or a longer run", c.contended, plural(c.grants, "grant"), need)
	default:
		r.Summary = fmt.Sprintf("%s, %d of them contended", plural(c.grants, "grant"), c.contended)
	}
	if faults > 0 {
		r.Summary += "; what the faults hit is not judged in a stream"
	}
	return r
}
