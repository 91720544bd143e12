package fencing

import (
	"fmt"
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of damage.
const (
	lostUpdate    = iota
	staleWrite    // with an older token than one already seen
	foreignLost   // data of another program, under the name of a lock, were changed or deleted
	latestGrant   // acquits: its writer was the latest to be granted the lock, whatever its token is
	stalledWriter // acquits: a writer's hold ended while it or the harness was stopped, or too few servers replied
)

func DamageRules() finding.Rules {
	return finding.Rules{
		lostUpdate: {Name: "lost-update"}, staleWrite: {Name: "stale-write"}, foreignLost: {Name: "foreign-data"},
		latestGrant: {Name: "latest-grant"}, stalledWriter: {Name: "stalled-writer"},
	}
}

// touchLog is the known accesses to the guarded resource, by key.
type touchLog struct {
	token []uint64 // greatest token seen
	by    []int32  // the touch with that token; -1: none
	write []int32  // the last touch that was accepted; -1: none
	stale []uint64 // tokens up to this one are from before the counter restarted
}

func newTouchLog(keys int) *touchLog {
	return &touchLog{token: make([]uint64, keys), by: slices.Repeat([]int32{refs.None}, keys),
		write: slices.Repeat([]int32{refs.None}, keys), stale: make([]uint64, keys)}
}

// newest is the greatest token seen before t, and the touch that had it. What the resource itself reports to have
// seen counts too: it may see tokens when it is read, which leaves no touch.
func (l *touchLog) newest(t *history.Touched) (token uint64, by int32) {
	if t.MaxSeen > max(l.token[t.Key], l.stale[t.Key]) {
		return t.MaxSeen, -1
	}
	return l.token[t.Key], l.by[t.Key]
}

func (l *touchLog) add(i int32, t *history.Touched) {
	if t.Token > l.token[t.Key] {
		l.token[t.Key], l.by[t.Key] = t.Token, i
	}
	if t.Accepted {
		l.write[t.Key] = i
	}
}

// restart forgets the tokens seen before t: the counter that they come from was lost.
func (l *touchLog) restart(t *history.Touched) {
	l.stale[t.Key] = max(l.stale[t.Key], l.token[t.Key], t.MaxSeen)
	l.token[t.Key], l.by[t.Key] = 0, -1
}

// damageLog is the state of CheckDamage.
type damageLog struct {
	fence   *touchLog // the writes that an enforcing resource would have seen
	seen    *touchLog // the same, without the tokens from before the counter restarted
	counts  map[string]int64
	stalled int                       // lost or stale writes that a stall, or the silence of servers, may explain
	granted map[int32]map[uint64]bool // by key: the tokens of known grants, see tokenGranted
}

func newDamageLog(keys int) *damageLog {
	return &damageLog{fence: newTouchLog(keys), seen: newTouchLog(keys), granted: make(map[int32]map[uint64]bool),
		counts: map[string]int64{"writes": 0, "lost": 0, "stale": 0, "refused": 0, "refused_if_fenced": 0}}
}

// CheckDamage counts the damage that the lock should have prevented, at the one place where it can be observed with
// certainty: the guarded resource. A write is lost if the counter had not the value that the writer had read: it
// overwrites the write before it. A write is stale if a newer token had been seen.
//
// The first is exact: the resource is part of the harness, arrivals have one order, and a client that held the lock
// alone would have found the value that it had read. The second relies on the tokens, unless they are certainly wrong:
// if its writer was the latest to be granted the lock, it has the small token of a counter that restarted (a failover
// may lose the counter). That is a violation of fencing, not damage.
//
// The count refused_if_fenced is the number of writes that an enforcing resource would have refused: any write with an
// older token than one already seen, whichever client made it.
func CheckDamage(v *bounds.View, o given.Options) property.Result {
	found, log, excuses := finding.New(o), newDamageLog(len(v.H.Keys)), v.ExcusesFor(o)
	excused := func(touch int32) bool { return !found.Off.Has(stalledWriter) && writtenStalled(v, touch, o, excuses) }
	for i := range v.H.Touches {
		damage(v, log, int32(i), excused, found)
	}
	foreignDamage(v, o, found)
	return damageResult(v, found, log)
}

// damage judges one arrival at the resource.
func damage(v *bounds.View, log *damageLog, i int32, excused func(touch int32) bool, found *finding.Findings) {
	t := &v.H.Touches[i]
	log.counts["writes"]++
	if newest, _ := log.fence.newest(t); t.Token < newest {
		log.counts["refused_if_fenced"]++
	}
	newest, by := log.seen.newest(t)
	stale, lost := t.Token < newest, t.Read != t.Found
	if stale && tokenGranted(v, log, t.Key, newest) && isLatest(v, t) && !found.Off.Has(latestGrant) {
		log.seen.restart(t)
		stale = false
	}
	f := finding.Finding{Rule: staleWrite, X: by, Y: i, Start: t.Time, End: t.Time}
	if !stale {
		f.Rule, f.X = lostUpdate, log.seen.write[t.Key]
	}
	switch {
	case !t.Accepted:
		log.counts["refused"]++
	case !stale && !lost:
	case excused(i) || !stale && f.X >= 0 && excused(f.X):
		log.stalled++
	default:
		found.Add(f)
	}
	if t.Accepted && stale {
		log.counts["stale"]++
	}
	if t.Accepted && lost {
		log.counts["lost"]++
	}
	log.fence.add(i, t)
	log.seen.add(i, t)
}

// tokenGranted reports whether a known grant has a token. A token that only the resource has seen belongs to an acquire
// of unknown outcome, which may be later than all known ones.
func tokenGranted(v *bounds.View, log *damageLog, key int32, token uint64) bool {
	tokens := log.granted[key]
	if tokens == nil {
		tokens = make(map[uint64]bool)
		for _, i := range v.ByKey[key] {
			tokens[v.Holds[i].Token] = true
		}
		log.granted[key] = tokens
	}
	return tokens[token]
}

// isLatest reports whether the writer of t was certainly the latest to be granted the lock when t arrived: every other
// known grant had returned before the writer's request, or its hold was over when the writer's grant returned, whose
// promise was in force then. The order of the two is certain in both cases, see Check.
func isLatest(v *bounds.View, t *history.Touched) bool {
	holds := v.ByKey[t.Key]
	end := sort.Search(len(holds), func(n int) bool { return v.Holds[holds[n]].From > t.Time })
	at := end - 1
	for ; at >= 0 && (v.Holds[holds[at]].Owner != t.Owner || v.Holds[holds[at]].Inner); at-- {
		if v.Holds[holds[at]].From < v.Holds[holds[end-1]].From {
			return false
		}
	}
	if at < 0 || t.Token == 0 || v.Holds[holds[at]].Token != t.Token {
		return false
	}
	h := &v.Holds[holds[at]]
	for n := end - 1; n >= 0 && v.Holds[holds[n]].From >= h.Asked; n-- {
		g := &v.Holds[holds[n]]
		if n != at && !(g.Inner && g.Owner == t.Owner) && (g.From > h.From || g.Until > h.From || !h.PromisedAt(h.From)) {
			return false
		}
	}
	return true
}

func damageResult(v *bounds.View, found *finding.Findings, log *damageLog) property.Result {
	r, counts := found.Result(property.Damage, func(f finding.Finding) property.Violation {
		return damageViolation(v,
			f)
	}), log.counts
	r.Counts = counts
	switch {
	case r.Outcome == property.Violated && r.Violations[0].Rule == foreignRule:
	case len(v.H.Touches) == 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.NoWrites
	case r.Outcome == property.Holds && log.stalled > 0:
		r.Outcome = property.Undecided
		r.Summary = fmt.Sprintf("%d of %s lost or stale, from holds that ended while the client or the harness was "+
			"stopped or too few servers replied", log.stalled, format.Count(len(v.H.Touches), "guarded write"))
	case r.Outcome == property.Holds && counts["refused"] > 0:
		r.Summary = fmt.Sprintf("%s; fencing refused %d, none of the others was lost or stale",
			format.Count(len(v.H.Touches), "guarded write"), counts["refused"])
	case r.Outcome == property.Holds:
		r.Summary = format.Count(len(v.H.Touches), "guarded write") + ", none lost or stale"
	default:
		r.Summary += fmt.Sprintf("; %d of %s lost, %d stale; fencing would have refused %d",
			counts["lost"], format.Count(len(v.H.Touches), "write"), counts["stale"], counts["refused_if_fenced"])
	}
	return r
}

// writerOf is the hold in which a touch was made: the last one of the same owner that was granted before it; nil if
// there is none.
func writerOf(v *bounds.View, touch int32) *ledger.Hold {
	t := &v.H.Touches[touch]
	holds := v.ByKey[t.Key]
	n := sort.Search(len(holds), func(n int) bool { return v.Holds[holds[n]].From > t.Time })
	for n--; n >= 0; n-- {
		if h := &v.Holds[holds[n]]; h.Owner == t.Owner && (!h.Inner || t.Time <= h.Until) {
			return h
		}
	}
	return nil
}

// touchEvidence is the evidence against touch y: the touch x before it or, without one, the grant in whose hold it
// was made.
func touchEvidence(v *bounds.View, x, y int32) []int {
	last := int(v.H.Touches[y].Index)
	if x >= 0 {
		return []int{int(v.H.Touches[x].Index), last}
	}
	if h := writerOf(v, y); h != nil {
		return []int{v.Granted(h), last}
	}
	return []int{last}
}

// touchViolation is a violation by touch y, after touch x if there is one, and the newest token seen before y.
func touchViolation(v *bounds.View, f finding.Finding) (w property.Violation, newest uint64) {
	w.Events = touchEvidence(v, f.X, f.Y)
	for _, i := range []int32{f.X, f.Y} {
		if i < 0 {
			continue
		}
		t := &v.H.Touches[i]
		w.Key = v.H.Keys[t.Key]
		w.Clients = append(w.Clients, t.Process.Client(v.H.Clients))
		w.Owners = append(w.Owners, v.H.Owners[t.Owner])
		if newest = max(newest, t.MaxSeen); i != f.Y {
			newest = max(newest, t.Token)
		}
	}
	return w, newest
}

func damageViolation(v *bounds.View, f finding.Finding) property.Violation {
	if f.Rule == foreignLost {
		return foreignViolation(v, f)
	}
	w, newest := touchViolation(v, f)
	w.Class = damageClass(v, f)
	t, who, key := &v.H.Touches[f.Y], w.Clients[len(w.Clients)-1], finding.LockName(w.Key)
	if f.Rule == staleWrite {
		w.Rule = "a write with an older token than one already seen is not accepted"
		w.Text = fmt.Sprintf("client %d wrote under %s at %s with token %d after token %d had been seen",
			who, key, format.Instant(t.Time), t.Token, newest)
		return w
	}
	w.Rule = "a writer finds the value that it read: no other client writes during its critical section"
	w.Text = fmt.Sprintf("client %d wrote under %s at %s over a value that it had not read (read %d, found %d)",
		who, key, format.Instant(t.Time), t.Read, t.Found)
	if f.X >= 0 {
		x := &v.H.Touches[f.X]
		w.Text += fmt.Sprintf(": the write of client %d at %s is lost", w.Clients[0], format.Instant(x.Time))
	}
	return w
}

// damageClass is a broken promise only if both writers held the lock and were inside their promises.
func damageClass(v *bounds.View, f finding.Finding) property.Class {
	for _, i := range []int32{f.X, f.Y} {
		if i < 0 {
			continue
		}
		t := v.H.Touches[i].Time
		if h := writerOf(v, i); h == nil || t > h.Until || !h.PromisedAt(t) || t >= v.UnrenewedFrom(h) {
			return property.OutlivedLease
		}
	}
	return property.BrokenPromise
}
