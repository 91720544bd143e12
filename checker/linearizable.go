package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/search"
)

// Limits of the search. porcupine keeps a set of all operations of a key for every configuration that it visits, so
// its memory grows with their square (porcupine#3); the sweep's does not.
const (
	maxSearched   = 5000  // operations of one search
	maxSearchedIn = 20000 // operations of all searches
	maxWindows    = 3     // windows searched around the sweep's flaws, by key
	maxSampled    = 500   // operations of a part that is searched as a second opinion
	windowHolds   = 25    // holds before and after the violation
	defaultSearch = 5 * time.Second
)

// checkLinearizable finds out whether the history has a legal order, twice: by the sweep of linear.go, which is fast,
// and by porcupine's search, which is independent of the sweep's arguments. A short key is searched whole; a longer one
// is cut where nothing was in flight (see cuts), and of parts that are still too long the windows around the sweep's
// flaws are searched. If the two disagree, or the search ran out of time or memory, the property is undecided. Where
// nothing was searched and the sweep finds nothing, the sweep decides alone if it is exact there.
func checkLinearizable(v *view, o Options) Result {
	c := linearCheck{view: v, o: o, found: newFindings(o), budget: maxSearchedIn, kinds: make(map[search.Kind]int)}
	c.searcher = search.NewSearcher(search.Options{Limit: cmp.Or(o.Search, defaultSearch), Command: o.SearchCommand,
		Step: func(name string, do func()) { o.Progress.step(name, 0, do) }})
	keys := v.keyedOps()
	v.excuseRefusals(keys, o)
	for _, k := range refs(keys) {
		if len(k.spans) > 0 {
			c.key(k)
		}
	}
	r := c.found.result(Linearizable, c.linearViolation)
	r.Counts = map[string]int64{"keys": int64(c.keys), "searched_keys": int64(c.searched), "swept_keys": int64(c.swept),
		"searched_windows": int64(c.windows), "searched_parts": int64(c.parts),
		"keys_left_out":       int64(c.kinds[search.Unmodelled]),
		"searched_operations": int64(maxSearchedIn - c.budget)}
	for kind, n := range c.kinds {
		r.Counts["keys_as_"+strings.ReplaceAll(kind.String(), " ", "_")] = int64(n)
	}
	switch {
	case c.undecided != "":
		r.Outcome, r.Summary = Undecided, c.undecided
	case r.Outcome == Violated:
	case c.keys == 0 && v.unsized() != "":
		r.Outcome, r.Summary = Undecided, unknownSize(v.unsized())
	case c.keys == 0:
		r.Outcome, r.Summary = NotApplicable, noModel
	default:
		r.Summary = "a legal order exists for " + format.Count(c.keys, "key")
		if names := c.kindNames(); names != "mutex" {
			r.Summary += ", judged as " + names
		}
	}
	return r
}

// linearRules are the kinds of flaws that the sweeps and the search find; see [search.OpKind].
func linearRules() []string {
	return []string{search.OpGrant: "held-twice", search.OpBusyTry: "refused-without-cause",
		search.OpRelease:  "released-nothing",
		search.OpBadToken: "token-out-of-order", search.OpNoPermits: "too-many-permits", search.OpHorizon: "no-order",
		search.OpRegrant: "regranted"}
}

// linearCheck is one run of the check over all keys.
type linearCheck struct {
	*view
	o         Options
	found     *findings
	searcher  *search.Searcher
	budget    int    // operations that may still be searched
	undecided string // why nothing is decided; empty if everything is
	kinds     map[search.Kind]int

	keys, searched, swept, windows, parts int
}

// kindNames names the models that judged the keys.
func (c *linearCheck) kindNames() string {
	var names []string
	for kind := search.PlainMutex; kind < search.Unmodelled; kind++ {
		if c.kinds[kind] > 0 {
			names = append(names, kind.String())
		}
	}
	return strings.Join(names, ", ")
}

func (c *linearCheck) key(k *keyOps) {
	if c.kinds[k.kind]++; k.kind == search.Unmodelled {
		return
	}
	c.keys++
	c.prepare(k)
	var flaws []flaw
	total := 0
	c.flaws(k, func(f flaw) {
		total++
		if len(flaws) < maxWindows {
			flaws = append(flaws, f)
		}
		c.note(k, f)
	})
	if c.o.Search < 0 || k.unjudgeable {
		c.swept++
		c.decideBySweep(k, total)
		return
	}
	if n := len(k.spans); n <= maxSearched && n <= c.budget {
		c.searched++
		c.compare(k, c.modelOps(k), total, true)
		return
	}
	if total == 0 && c.inParts(k) {
		c.searched++
		return
	}
	c.swept++
	c.decideBySweep(k, total)
	for _, f := range flaws {
		c.windows++
		c.compare(k, c.window(k, f), 1, false)
	}
}

// flaws is the sweep for the kind of lock.
func (c *linearCheck) flaws(k *keyOps, visit func(flaw)) {
	if k.kind == search.Semaphore {
		c.sweepPermits(k, c.o.ClockError, visit)
		return
	}
	c.sweep(k, c.o.ClockError, visit)
}

// note adds a flaw to the findings.
func (c *linearCheck) note(k *keyOps, f flaw) {
	n := finding{rule: int(f.kind), x: f.x, y: f.y, start: f.from, end: c.clipped(f.segment)}
	if f.kind == search.OpNoPermits { // keyOps does not outlive the check of its key
		n.y = k.permitHolds[f.y].span
		n.note = slices.Concat(k.permitHolds[f.y:f.y+1], k.permitHolds[max(f.x, 0):f.x+1])
	}
	c.found.add(n)
}

func (c *linearCheck) decideBySweep(k *keyOps, flaws int) {
	switch {
	case flaws > 0:
	case k.unjudgeable:
		c.setUndecided("an owner of %s %v: which holds it had is unknown", lockName(c.h.Keys[k.key]), k.unjudgeableWhy)
	case !k.exact:
		c.setUndecided("%s has too many operations to search, and the sweep is not exact there: an owner acts again after "+
			"an unknown outcome, or a %s refuses tries", lockName(c.h.Keys[k.key]), k.kind)
	}
}

func (c *linearCheck) setUndecided(format string, args ...any) {
	if c.undecided == "" {
		c.undecided = fmt.Sprintf(format, args...)
	}
}

// compare has porcupine search ops, in which the sweep found that many flaws, and returns its result. A search
// without a result leaves the key undecided if it is needed.
func (c *linearCheck) compare(k *keyOps, ops []search.Op, flaws int, whole bool) porcupine.CheckResult {
	name := lockName(c.h.Keys[k.key])
	c.budget -= len(ops)
	got, why := c.searcher.Search(search.Job{Kind: k.kind, Permits: k.permits, Slack: c.o.ClockError, Ops: ops})
	switch {
	case got == porcupine.Unknown && !whole:
	case got == porcupine.Unknown:
		c.setUndecided("whether %s has a legal order is unknown: %s", name, why)
	case got == porcupine.Ok && flaws > 0:
		c.setUndecided("the sweep and the search disagree about %s: this is a defect of the checker, please report it with "+
			"history.jsonl", name)
	case got == porcupine.Illegal && flaws == 0 && k.exact:
		c.setUndecided("the search finds no legal order for %s and the sweep no violation: this is a defect of the "+
			"checker, please report it with history.jsonl", name)
	case got == porcupine.Illegal && flaws == 0 && whole:
		first := int32(math.MaxInt32)
		for _, op := range refs(ops) {
			if op.Span >= 0 {
				first = min(first, op.Span)
			}
		}
		start := c.h.Spans[first].Call
		c.found.add(finding{rule: int(search.OpHorizon), x: int32(k.kind), y: first, start: start, end: c.h.End})
	}
	return got
}

// window is the part of a key's history around a flaw.
func (c *linearCheck) window(k *keyOps, f flaw) []search.Op {
	holds := c.byKey[k.key]
	if f.kind == search.OpNoPermits {
		return k.permitOps(c.view, f.from)
	}
	if f.kind == search.OpGrant || (f.kind == search.OpBadToken && f.x >= 0) {
		return c.windowOps(around(holds, f.y, f.x))
	}
	var near []int32
	for i, h := range refsAt(c.holds, holds) { // the holds that can have lasted during the operation
		if h.asked <= later(f.until, c.o.ClockError) && later(h.freeBy, c.o.ClockError) >= f.from {
			near = append(near, i)
		}
	}
	s := &c.h.Spans[f.y]
	op := search.Op{Call: s.Call, Return: s.Return, Owner: s.Owner, Span: f.y, Process: s.Process, Kind: f.kind,
		Permits: s.Permits, Write: s.Write, Epoch: -1, Pos: -1, Depth: -1}
	return append(c.windowOps(near), op)
}

// around are the holds near y, with x.
func around(holds []int32, y, x int32) []int32 {
	var near []int32
	if x >= 0 {
		near = append(near, x)
	}
	at := slices.Index(holds, y)
	for _, i := range holds[max(0, at-windowHolds):min(len(holds), at+windowHolds+1)] {
		if i != x {
			near = append(near, i)
		}
	}
	return near
}
