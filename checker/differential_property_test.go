package checker

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

var onlyProperty = flag.String("differential.property", "", "compare only the checker of this property")

// propertyDifferential compares the checker of one property with brute force, and with porcupine where that applies.
type propertyDifferential struct {
	property Property
	draw     *sketcher
	models   [search.Unmodelled][9]porcupine.Model
	kind     LockKind // the intended kind of the lock

	histories, left, violated, searched, tries, unknown, leases int
}

// kindsFor are the kinds of lock on whose histories a property is compared.
func kindsFor(p Property) []search.Kind {
	switch p {
	case Permits:
		return []search.Kind{search.Semaphore}
	case ReadersWriter:
		return []search.Kind{search.ReadersWriter}
	case Fencing:
		return []search.Kind{search.FencedMutex, search.ReentrantFenced, search.ReadersWriter, search.Semaphore}
	}
	return []search.Kind{search.ReentrantMutex, search.ReentrantMutex, search.ReadersWriter}
}

func newRivals(p Property) (all []*propertyDifferential) {
	for n, kind := range kindsFor(p) {
		r := &propertyDifferential{property: p, draw: newSketcher(kind)}
		r.draw.rich, r.draw.tokens, r.draw.counts = true, p == Fencing, p == HoldCount
		if p == HoldCount && n == 1 {
			r.kind = Mutex
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
	v := newView(h, Options{LockKind: r.kind})
	if v.unknownOwners > 0 {
		r.left++
		return nil
	}
	r.count(h)
	if r.property == HoldCount {
		return r.compareCounts(v)
	}
	got := r.judge(v)
	if got.Outcome == Violated {
		r.violated++
	}
	var want bool
	holds := naiveHolds(h)
	switch r.property {
	case Permits:
		want = crowdedAt(h, int64(r.draw.permits))
	case Fencing:
		if h.Limits != nil { // each acquire is a hold: tokens are compared in real time only
			return r.soundTokens(v, got)
		}
		want = wrongTokens(holds, false)
	case ReadersWriter:
		if err := r.comparePairs(v, holds, got); err != nil {
			return err
		}
		all, _ := meetings(holds)
		want = all > 0 && got.Outcome != NotApplicable
	}
	if want != (got.Outcome == Violated) {
		return fmt.Errorf("brute force finds a violation: %v; %s is %s: %s", want, r.property, got.Outcome, got.Summary)
	}
	if r.property == Fencing && !r.draw.kind.Fenced() {
		return nil // the models of these kinds have no tokens
	}
	return r.comparePorcupine(v, want || r.property == ReadersWriter && checkExclusion(v, Options{}).Outcome == Violated)
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

func (r *propertyDifferential) judge(v *view) Result {
	s, _ := Find(r.property)
	return s.check(v, Options{LockKind: r.kind})
}

// comparePairs compares the pairs of holds that the sweep of the three exclusion properties finds.
func (r *propertyDifferential) comparePairs(v *view, holds []*naiveHold, got Result) error {
	all, inside := meetings(holds)
	if got.Outcome != NotApplicable && got.Total != all {
		return fmt.Errorf("readers-writer finds %d pairs, brute force %d", got.Total, all)
	}
	if n := checkExclusion(v, Options{}).Total; n != all {
		return fmt.Errorf("exclusion finds %d pairs, brute force %d", n, all)
	}
	if n := checkLeaseExclusion(v, Options{}).Total; n != inside {
		return fmt.Errorf("lease-exclusion finds %d pairs, brute force %d", n, inside)
	}
	return nil
}

// soundTokens compares the tokens of a semaphore: in real time, and no two equal.
func (r *propertyDifferential) soundTokens(v *view, got Result) error {
	want := false
	for i := range v.h.Spans {
		for n := range v.h.Spans {
			x, y := &v.h.Spans[i], &v.h.Spans[n]
			if x.Op == history.OpRelease || y.Op == history.OpRelease || x.Outcome != history.OK || y.Outcome != history.OK {
				continue
			}
			both := i != n && x.Token > 0 && y.Token > 0
			single := r.draw.permits == 1
			want = want || both && (x.Return < y.Call && x.Token >= y.Token || single && x.Token == y.Token)
		}
	}
	if v.h.Limits[0] == 1 && got.Outcome == Violated && !want { // one permit is a mutex: holders have an order
		return nil
	}
	if want != (got.Outcome == Violated) {
		return fmt.Errorf("brute force finds a violation: %v; fencing is %s: %s", want, got.Outcome, got.Summary)
	}
	return nil
}

// comparePorcupine compares with porcupine, which is independent of holds. A violated history has no legal order; one
// without a legal order is violated, if nothing else can be wrong with it.
func (r *propertyDifferential) comparePorcupine(v *view, violated bool) error {
	k := &v.keyedOps()[0]
	if k.kind == search.Unmodelled || r.slow(v) {
		return nil
	}
	v.prepare(k)
	if k.unjudgeable {
		return nil
	}
	ops := search.Operations(v.modelOps(k), 0)
	permits := max(0, k.permits)
	legal := porcupine.CheckOperations(r.models[k.kind][permits], ops)
	r.searched++
	if violated && legal {
		return fmt.Errorf("%s is violated, and porcupine finds an order", r.property)
	}
	only := k.exact && len(k.busy) == 0 && len(k.orphans) == 0 && len(k.drops) == 0 && len(k.renumbered) == 0 &&
		len(v.h.Notices) == 0 && !slices.ContainsFunc(v.h.Spans, failedRelease)
	if legal || violated || !only {
		return nil
	}
	if r.property == Fencing && (r.atOnce(v) || !porcupine.CheckOperations(r.models[search.ReentrantMutex][0], ops)) {
		return nil // not because of its tokens; or at one instant, which fencing does not judge
	}
	return fmt.Errorf("porcupine finds no order, and %s is not violated", r.property)
}

func failedRelease(s history.Span) bool {
	return s.Op == history.OpRelease && s.Outcome == history.Fail
}

// atOnce reports whether two grants returned at the same instant.
func (r *propertyDifferential) atOnce(v *view) bool {
	for n := 1; n < len(v.holds); n++ {
		if v.holds[n].from == v.holds[n-1].from {
			return true
		}
	}
	return false
}

// slow reports whether a reply came after its promise had ended, or its owner had an unknown outcome before:
// porcupine's models do not use the token then.
func (r *propertyDifferential) slow(v *view) bool {
	return r.property == Fencing && slices.ContainsFunc(v.holds, func(h hold) bool {
		return h.expiredOnArrival || v.ownerOrder[h.owner] != ordSequential
	})
}

// compareCounts compares hold-count, rule by rule. Losses and failed releases, after which depths are unknown, are
// not drawn here.
func (r *propertyDifferential) compareCounts(v *view) error {
	if len(v.h.Notices) > 0 || slices.ContainsFunc(v.h.Spans, failedRelease) {
		r.left++
		return nil
	}
	want := miscounted(v.h, r.kind)
	names := holdCountRules()
	for rule := range names {
		if rule == countLapsed || rule == countUnproved {
			continue
		}
		o := Options{LockKind: r.kind}
		o.off = disabledRules{of: HoldCount, rules: ^uint64(1<<rule | 1<<countLapsed | 1<<countUnproved)}
		got := checkHoldCount(v, o)
		if (got.Outcome == Violated) != want[rule] {
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
	for _, p := range []Property{Permits, ReadersWriter, Fencing, HoldCount} {
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
