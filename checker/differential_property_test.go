package checker

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/exclusion"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/holdcount"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/linear"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

var onlyProperty = flag.String("differential.property", "", "compare only the checker of this property")

// propertyDifferential compares the checker of one property with brute force, and with porcupine where that applies.
type propertyDifferential struct {
	property property.Name
	draw     *sketcher
	models   [search.Unmodelled][9]porcupine.Model
	kind     property.LockKind // the intended kind of the lock

	histories, left, violated, searched, tries, unknown, leases int
}

// kindsFor are the kinds of lock on whose histories a property is compared.
func kindsFor(p property.Name) []search.Kind {
	switch p {
	case property.Permits:
		return []search.Kind{search.Semaphore}
	case property.ReadersWriter:
		return []search.Kind{search.ReadersWriter}
	case property.Fencing:
		return []search.Kind{search.FencedMutex, search.ReentrantFenced, search.ReadersWriter, search.Semaphore}
	}
	return []search.Kind{search.ReentrantMutex, search.ReentrantMutex, search.ReadersWriter}
}

func newRivals(p property.Name) (all []*propertyDifferential) {
	for n, kind := range kindsFor(p) {
		r := &propertyDifferential{property: p, draw: newSketcher(kind)}
		r.draw.rich, r.draw.tokens, r.draw.counts = true, p == property.Fencing, p == property.HoldCount
		if p == property.HoldCount && n == 1 {
			r.kind = property.Mutex
		}
		for kind := range search.Unmodelled {
			for n := range r.models[kind] {
				r.models[kind][n] = search.Model(kind, int32(n), nil)
			}
		}
		all = append(all, r)
	}
	return all
}

// compare judges one history by all.
func (r *propertyDifferential) compare(h *history.History) error {
	r.histories++
	h.Limits = nil
	if r.draw.kind == search.Semaphore {
		h.Limits = []int32{r.draw.permits}
	}
	v := bounds.New(h, given.Options{Options: property.Options{LockKind: r.kind}})
	if v.UnknownOwners > 0 {
		r.left++
		return nil
	}
	r.count(h)
	if r.property == property.HoldCount {
		return r.compareCounts(v)
	}
	got := r.judge(v)
	if got.Outcome == property.Violated {
		r.violated++
	}
	var want bool
	holds := naiveHolds(h)
	switch r.property {
	case property.Permits:
		want = crowdedAt(h, int64(r.draw.permits))
	case property.Fencing:
		if h.Limits != nil { // each acquire is a hold: tokens are compared in real time only
			return r.soundTokens(v, got)
		}
		want = wrongTokens(holds, false)
	case property.ReadersWriter:
		if err := r.comparePairs(v, holds, got); err != nil {
			return err
		}
		all, _ := meetings(holds)
		want = all > 0 && got.Outcome != property.NotApplicable
	}
	if want != (got.Outcome == property.Violated) {
		return fmt.Errorf("brute force finds a violation: %v; %s is %s: %s", want, r.property, got.Outcome, got.Summary)
	}
	if r.property == property.Fencing && !r.draw.kind.Fenced() {
		return nil // the models of these kinds have no tokens
	}
	return r.comparePorcupine(v, want || r.property == property.ReadersWriter &&
		exclusion.Check(v, given.Options{}).Outcome == property.Violated)
}

func (r *propertyDifferential) count(h *history.History) {
	try, unknown, lease := false, false, false
	for i := range h.Spans {
		s := &h.Spans[i]
		try, unknown, lease = try || s.Busy, unknown || s.Outcome == history.Info, lease || s.Lease > 0
	}
	for n, is := range []bool{try, unknown, lease} {
		if is {
			*[]*int{&r.tries, &r.unknown, &r.leases}[n]++
		}
	}
}

func (r *propertyDifferential) judge(v *bounds.View) property.Result {
	s, _ := Find(r.property)
	return s.check(v, given.Options{Options: property.Options{LockKind: r.kind}})
}

// comparePairs compares the pairs of holds that the sweep of the three exclusion properties finds.
func (r *propertyDifferential) comparePairs(v *bounds.View, holds []*naiveHold, got property.Result) error {
	all, inside := meetings(holds)
	if got.Outcome != property.NotApplicable && got.Total != all {
		return fmt.Errorf("readers-writer finds %d pairs, brute force %d", got.Total, all)
	}
	if n := exclusion.Check(v, given.Options{}).Total; n != all {
		return fmt.Errorf("exclusion finds %d pairs, brute force %d", n, all)
	}
	if n := exclusion.CheckLeases(v, given.Options{}).Total; n != inside {
		return fmt.Errorf("lease-exclusion finds %d pairs, brute force %d", n, inside)
	}
	return nil
}

// soundTokens compares the tokens of a semaphore: in real time, and no two equal.
func (r *propertyDifferential) soundTokens(v *bounds.View, got property.Result) error {
	want := false
	for i := range v.H.Spans {
		for n := range v.H.Spans {
			x, y := &v.H.Spans[i], &v.H.Spans[n]
			if x.Op == history.OpRelease || y.Op == history.OpRelease || x.Outcome != history.OK || y.Outcome != history.OK {
				continue
			}
			both := i != n && x.Token > 0 && y.Token > 0
			single := r.draw.permits == 1
			want = want || both && (x.Return < y.Call && x.Token >= y.Token || single && x.Token == y.Token)
		}
	}
	if v.H.Limits[0] == 1 && got.Outcome == property.Violated && !want { // one permit is a mutex: holders have an order
		return nil
	}
	if want != (got.Outcome == property.Violated) {
		return fmt.Errorf("brute force finds a violation: %v; fencing is %s: %s", want, got.Outcome, got.Summary)
	}
	return nil
}

// comparePorcupine compares with porcupine, which is independent of holds. A violated history has no legal order; one
// without a legal order is violated, if nothing else can be wrong with it.
func (r *propertyDifferential) comparePorcupine(v *bounds.View, violated bool) error {
	k := &linear.KeyedOps(v)[0]
	if k.Kind == search.Unmodelled || r.slow(v) {
		return nil
	}
	linear.Prepare(v, k)
	if k.Unjudgeable {
		return nil
	}
	ops := search.Operations(linear.ModelOps(v, k), 0)
	permits := max(0, k.Permits)
	legal := porcupine.CheckOperations(r.models[k.Kind][permits], ops)
	r.searched++
	if violated && legal {
		return fmt.Errorf("%s is violated, and porcupine finds an order", r.property)
	}
	only := k.Exact && len(k.Busy) == 0 && len(k.Orphans) == 0 && len(k.Drops) == 0 && len(k.Renumbered) == 0 &&
		len(v.H.Notices) == 0 && !slices.ContainsFunc(v.H.Spans, failedRelease)
	if legal || violated || !only {
		return nil
	}
	if r.property == property.Fencing && (r.atOnce(v) || !porcupine.CheckOperations(r.models[search.ReentrantMutex][0],
		ops)) {
		return nil // not because of its tokens; or at one instant, which fencing does not judge
	}
	return fmt.Errorf("porcupine finds no order, and %s is not violated", r.property)
}

func failedRelease(s history.Span) bool {
	return s.Op == history.OpRelease && s.Outcome == history.Fail
}

// atOnce reports whether two grants returned at the same instant.
func (r *propertyDifferential) atOnce(v *bounds.View) bool {
	for n := 1; n < len(v.Holds); n++ {
		if v.Holds[n].From == v.Holds[n-1].From {
			return true
		}
	}
	return false
}

// slow reports whether a reply came after its promise had ended, or its owner had an unknown outcome before:
// porcupine's models do not use the token then.
func (r *propertyDifferential) slow(v *bounds.View) bool {
	return r.property == property.Fencing && slices.ContainsFunc(v.Holds, func(h ledger.Hold) bool {
		return h.ExpiredOnArrival || v.OwnerOrder[h.Owner] != ledger.OrdSequential
	})
}

// compareCounts compares hold-count, rule by rule. Losses and failed releases, after which depths are unknown, are
// not drawn here.
func (r *propertyDifferential) compareCounts(v *bounds.View) error {
	if len(v.H.Notices) > 0 || slices.ContainsFunc(v.H.Spans, failedRelease) {
		r.left++
		return nil
	}
	want := miscounted(v.H, r.kind)
	names := holdcount.Rules().Names()
	for rule := range names {
		if rule == holdcount.CountLapsed || rule == holdcount.CountUnproved {
			continue
		}
		o := given.Options{Options: property.Options{LockKind: r.kind},
			Off: given.DisabledRules{Of: property.HoldCount,
				Rules: ^uint64(1<<rule | 1<<holdcount.CountLapsed | 1<<holdcount.CountUnproved)}}
		got := holdcount.Check(v, o)
		if (got.Outcome == property.Violated) != want[rule] {
			return fmt.Errorf("brute force finds %v broken: %v; hold-count: %s", names[rule], want[rule], got.Summary)
		}
	}
	if slices.Contains(slices.Collect(maps.Values(want)), true) {
		r.violated++
	}
	return nil
}

func TestDifferentialProperties(t *testing.T) {
	race.Skip(t)
	for _, p := range []property.Name{property.Permits, property.ReadersWriter, property.Fencing, property.HoldCount} {
		if *onlyProperty != "" && *onlyProperty != string(p) {
			continue
		}
		t.Run(string(p), func(t *testing.T) {
			rivals := newRivals(p)
			start := time.Now()
			for n := range uint64(random(*differentialHistories)) {
				r := rivals[n%uint64(len(rivals))]
				h := r.draw.draw(*differentialSeed + n)
				if err := r.compare(h); err != nil {
					t.Fatalf("seed %d: %v (%s, permits %d)\n%s%s", *differentialSeed+n, err, r.draw.kind, r.draw.permits,
						dump(h), tokensOf(h))
				}
			}
			var all propertyDifferential
			for _, r := range rivals {
				all.add(r)
			}
			t.Logf("%d histories: %d violated, %d searched by porcupine, %d with refused tries, %d with unknown outcomes, "+
				"%d with leases, %d left out; %.0f/s", all.histories, all.violated, all.searched, all.tries, all.unknown,
				all.leases, all.left, float64(all.histories)/time.Since(start).Seconds())
			if share := float64(all.violated) / float64(all.histories-all.left); share < 0.1 || share > 0.5 {
				t.Errorf("%.0f %% of the histories are convicted: the test has lost its edge", 100*share)
			}
			if least := all.histories / 20; min(all.tries, all.unknown, all.leases) < least {
				t.Errorf("too few of the histories have what is to be compared")
			}
		})
	}
}

func (r *propertyDifferential) add(o *propertyDifferential) {
	r.histories += o.histories
	r.left += o.left
	r.violated += o.violated
	r.searched += o.searched
	r.tries += o.tries
	r.unknown += o.unknown
	r.leases += o.leases
}
