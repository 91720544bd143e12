package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/exclusion"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
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

// Check finds out whether the history has a legal order, twice: by the sweep of sweep.go, which is fast,
// and by porcupine's search, which is independent of the sweep's arguments. A short key is searched whole; a longer one
// is cut where nothing was in flight (see cuts), and of parts that are still too long the windows around the sweep's
// flaws are searched. If the two disagree, or the search ran out of time or memory, the property is undecided. Where
// nothing was searched and the sweep finds nothing, the sweep decides alone if it is exact there.
func Check(v *bounds.View, o given.Options) property.Result {
	c := check{View: v, o: o, found: finding.New(o), budget: maxSearchedIn, kinds: make(map[search.Kind]int)}
	c.searcher = search.NewSearcher(search.Options{Limit: cmp.Or(o.Search, defaultSearch), Command: o.SearchCommand,
		Step: func(name string, do func()) { o.Progress.Step(name, 0, do) }})
	keys := KeyedOps(v)
	ExcuseRefusals(v, keys, o)
	for _, k := range refs.All(keys) {
		if len(k.Spans) > 0 {
			c.key(k)
		}
	}
	r := c.found.Result(property.Linearizable, c.linearViolation)
	r.Counts = map[string]int64{"keys": int64(c.keys), "searched_keys": int64(c.searched), "swept_keys": int64(c.swept),
		"searched_windows": int64(c.windows), "searched_parts": int64(c.parts),
		"keys_left_out":       int64(c.kinds[search.Unmodelled]),
		"searched_operations": int64(maxSearchedIn - c.budget)}
	for kind, n := range c.kinds {
		r.Counts["keys_as_"+strings.ReplaceAll(kind.String(), " ", "_")] = int64(n)
	}
	switch {
	case c.undecided != "":
		r.Outcome, r.Summary = property.Undecided, c.undecided
	case r.Outcome == property.Violated:
	case c.keys == 0 && exclusion.Unsized(v) != "":
		r.Outcome, r.Summary = property.Undecided, exclusion.UnknownSize(exclusion.Unsized(v))
	case c.keys == 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.NoModel
	default:
		r.Summary = "a legal order exists for " + format.Count(c.keys, "key")
		if names := c.kindNames(); names != "mutex" {
			r.Summary += ", judged as " + names
		}
	}
	return r
}

// Rules are the kinds of flaws that the sweeps and the search find; see [search.OpKind].
func Rules() finding.Rules {
	return finding.Rules{
		search.OpGrant: {Name: "held-twice"},
		search.OpNoPermits: {Name: "too-many-permits", Class: property.BrokenPromise,
			Sentence: "the operations have an order in which no more permits are held than exist",
			Text:     "client $client was granted $note of $lock at $return, more than were available"},
		search.OpHorizon: {Name: "no-order", Class: property.BrokenPromise,
			Sentence: "the operations have an order that is legal for a $note",
			Text:     "the operations on $lock have no legal order"},
		search.OpBusyTry: {Name: "refused-without-cause", Class: property.BrokenPromise,
			Sentence: "a try fails only if another owner can have held the lock",
			Text:     "client $client was refused $lock between $call and $return, when no client can have held it"},
		search.OpRegrant: {Name: "regranted", Class: property.BrokenPromise,
			Sentence: "a mutex that is not reentrant is not granted to its holder",
			Text:     "client $client was granted $lock at $return although it already held it"},
		search.OpRelease: {Name: "released-nothing", Class: property.BrokenPromise, Sentence: "only the holder can release",
			Text: "client $client released $lock at $return without holding it, and without an error"},
		search.OpBadToken: {Name: "token-out-of-order", Class: property.BrokenPromise,
			Sentence: "a re-entry repeats the token of its hold",
			Text:     "client $client re-entered $lock at $return and got token $token, which is not that of its hold"},
	}
}

// check is one run of the check over all keys.
type check struct {
	*bounds.View
	o         given.Options
	found     *finding.Findings
	searcher  *search.Searcher
	budget    int    // operations that may still be searched
	undecided string // why nothing is decided; empty if everything is
	kinds     map[search.Kind]int

	keys, searched, swept, windows, parts int
}

// kindNames names the models that judged the keys.
func (c *check) kindNames() string {
	var names []string
	for kind := search.PlainMutex; kind < search.Unmodelled; kind++ {
		if c.kinds[kind] > 0 {
			names = append(names, kind.String())
		}
	}
	return strings.Join(names, ", ")
}

func (c *check) key(k *KeyOps) {
	if c.kinds[k.Kind]++; k.Kind == search.Unmodelled {
		return
	}
	c.keys++
	Prepare(c.View, k)
	var flaws []Flaw
	total := 0
	c.flaws(k, func(f Flaw) {
		total++
		if len(flaws) < maxWindows {
			flaws = append(flaws, f)
		}
		c.note(k, f)
	})
	if c.o.Search < 0 || k.Unjudgeable {
		c.swept++
		c.decideBySweep(k, total)
		return
	}
	if n := len(k.Spans); n <= maxSearched && n <= c.budget {
		c.searched++
		c.compare(k, ModelOps(c.View, k), total, true)
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
func (c *check) flaws(k *KeyOps, visit func(Flaw)) {
	if k.Kind == search.Semaphore {
		SweepPermits(c.View, k, c.o.ClockError, visit)
		return
	}
	Sweep(c.View, k, c.o.ClockError, visit)
}

// note adds a flaw to the findings.
func (c *check) note(k *KeyOps, f Flaw) {
	n := finding.Finding{Rule: int(f.Kind), X: f.X, Y: f.y, Start: f.From, End: c.Clipped(f.Segment)}
	if f.Kind == search.OpNoPermits { // KeyOps does not outlive the check of its key
		n.Y = k.permitHolds[f.y].span
		n.Note = slices.Concat(k.permitHolds[f.y:f.y+1], k.permitHolds[max(f.X, 0):f.X+1])
	}
	c.found.Add(n)
}

func (c *check) decideBySweep(k *KeyOps, flaws int) {
	switch {
	case flaws > 0:
	case k.Unjudgeable:
		c.setUndecided("an owner of %s %v: which holds it had is unknown", finding.LockName(c.H.Keys[k.key]),
			k.unjudgeableWhy)
	case !k.Exact:
		c.setUndecided("%s has too many operations to search, and the sweep is not exact there: an owner acts again after "+
			"an unknown outcome, or a %s refuses tries", finding.LockName(c.H.Keys[k.key]), k.Kind)
	}
}

func (c *check) setUndecided(format string, args ...any) {
	if c.undecided == "" {
		c.undecided = fmt.Sprintf(format, args...)
	}
}

// compare has porcupine search ops, in which the sweep found that many flaws, and returns its result. A search
// without a result leaves the key undecided if it is needed.
func (c *check) compare(k *KeyOps, ops []search.Op, flaws int, whole bool) porcupine.CheckResult {
	name := finding.LockName(c.H.Keys[k.key])
	c.budget -= len(ops)
	got, why := c.searcher.Search(search.Job{Kind: k.Kind, Permits: k.Permits, Slack: c.o.ClockError, Ops: ops})
	switch {
	case got == porcupine.Unknown && !whole:
	case got == porcupine.Unknown:
		c.setUndecided("whether %s has a legal order is unknown: %s", name, why)
	case got == porcupine.Ok && flaws > 0:
		c.setUndecided("the sweep and the search disagree about %s: this is a defect of the checker, please report it with "+
			"history.jsonl", name)
	case got == porcupine.Illegal && flaws == 0 && k.Exact:
		c.setUndecided("the search finds no legal order for %s and the sweep no violation: this is a defect of the "+
			"checker, please report it with history.jsonl", name)
	case got == porcupine.Illegal && flaws == 0 && whole:
		first := int32(math.MaxInt32)
		for _, op := range refs.All(ops) {
			if op.Span >= 0 {
				first = min(first, op.Span)
			}
		}
		start := c.H.Spans[first].Call
		c.found.Add(finding.Finding{Rule: int(search.OpHorizon), X: int32(k.Kind), Y: first, Start: start, End: c.H.End})
	}
	return got
}

// window is the part of a key's history around a flaw.
func (c *check) window(k *KeyOps, f Flaw) []search.Op {
	holds := c.ByKey[k.key]
	if f.Kind == search.OpNoPermits {
		return k.permitOps(c.View, f.From)
	}
	if f.Kind == search.OpGrant || (f.Kind == search.OpBadToken && f.X >= 0) {
		return WindowOps(c.View, around(holds, f.y, f.X))
	}
	var near []int32
	for i, h := range refs.At(c.Holds, holds) { // the holds that can have lasted during the operation
		if h.Asked <= segment.Later(f.Until, c.o.ClockError) && segment.Later(h.FreeBy, c.o.ClockError) >= f.From {
			near = append(near, i)
		}
	}
	s := &c.H.Spans[f.y]
	op := search.Op{Call: s.Call, Return: s.Return, Owner: s.Owner, Span: f.y, Process: s.Process, Kind: f.Kind,
		Permits: s.Permits, Write: s.Write, Epoch: -1, Pos: -1, Depth: -1}
	return append(WindowOps(c.View, near), op)
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
