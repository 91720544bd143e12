package checker

import (
	"fmt"
	"slices"
	"sort"

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

func damageRules() []string {
	return []string{lostUpdate: "lost-update", staleWrite: "stale-write", foreignLost: "foreign-data",
		latestGrant: "latest-grant", stalledWriter: "stalled-writer"}
}

// touchLog is the known accesses to the guarded resource, by key.
type touchLog struct {
	token []uint64 // greatest token seen
	by    []int32  // the touch with that token; -1: none
	write []int32  // the last touch that was accepted; -1: none
	stale []uint64 // tokens up to this one are from before the counter restarted
}

func newTouchLog(keys int) *touchLog {
	return &touchLog{token: make([]uint64, keys), by: slices.Repeat([]int32{none}, keys),
		write: slices.Repeat([]int32{none}, keys), stale: make([]uint64, keys)}
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

// damageLog is the state of checkDamage.
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

// checkDamage counts the damage that the lock should have prevented, at the one place where it can be observed with
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
func checkDamage(v *view, o Options) Result {
	found, log, excuses := newFindings(o), newDamageLog(len(v.h.Keys)), v.excusesFor(o)
	excused := func(touch int32) bool { return !found.off.has(stalledWriter) && v.writtenStalled(touch, o, excuses) }
	for i := range v.h.Touches {
		v.damage(log, int32(i), excused, found)
	}
	v.foreignDamage(o, found)
	return v.damageResult(found, log)
}

// damage judges one arrival at the resource.
func (v *view) damage(log *damageLog, i int32, excused func(touch int32) bool, found *findings) {
	t := &v.h.Touches[i]
	log.counts["writes"]++
	if newest, _ := log.fence.newest(t); t.Token < newest {
		log.counts["refused_if_fenced"]++
	}
	newest, by := log.seen.newest(t)
	stale, lost := t.Token < newest, t.Read != t.Found
	if stale && v.tokenGranted(log, t.Key, newest) && v.isLatest(t) && !found.off.has(latestGrant) {
		log.seen.restart(t)
		stale = false
	}
	f := finding{rule: staleWrite, x: by, y: i, start: t.Time, end: t.Time}
	if !stale {
		f.rule, f.x = lostUpdate, log.seen.write[t.Key]
	}
	switch {
	case !t.Accepted:
		log.counts["refused"]++
	case !stale && !lost:
	case excused(i) || !stale && f.x >= 0 && excused(f.x):
		log.stalled++
	default:
		found.add(f)
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
func (v *view) tokenGranted(log *damageLog, key int32, token uint64) bool {
	tokens := log.granted[key]
	if tokens == nil {
		tokens = make(map[uint64]bool)
		for _, i := range v.byKey[key] {
			tokens[v.holds[i].token] = true
		}
		log.granted[key] = tokens
	}
	return tokens[token]
}

// isLatest reports whether the writer of t was certainly the latest to be granted the lock when t arrived: every other
// known grant had returned before the writer's request, or its hold was over when the writer's grant returned, whose
// promise was in force then. The order of the two is certain in both cases, see checkFencing.
func (v *view) isLatest(t *history.Touched) bool {
	holds := v.byKey[t.Key]
	end := sort.Search(len(holds), func(n int) bool { return v.holds[holds[n]].from > t.Time })
	at := end - 1
	for ; at >= 0 && (v.holds[holds[at]].owner != t.Owner || v.holds[holds[at]].inner); at-- {
		if v.holds[holds[at]].from < v.holds[holds[end-1]].from {
			return false
		}
	}
	if at < 0 || t.Token == 0 || v.holds[holds[at]].token != t.Token {
		return false
	}
	h := &v.holds[holds[at]]
	for n := end - 1; n >= 0 && v.holds[holds[n]].from >= h.asked; n-- {
		g := &v.holds[holds[n]]
		if n != at && !(g.inner && g.owner == t.Owner) && (g.from > h.from || g.until > h.from || !h.promisedAt(h.from)) {
			return false
		}
	}
	return true
}

func (v *view) damageResult(found *findings, log *damageLog) Result {
	r, counts := found.result(Damage, v.damageViolation), log.counts
	r.Counts = counts
	switch {
	case r.Outcome == Violated && r.Violations[0].Rule == foreignRule:
	case len(v.h.Touches) == 0:
		r.Outcome, r.Summary = NotApplicable, noWrites
	case r.Outcome == Holds && log.stalled > 0:
		r.Outcome = Undecided
		r.Summary = fmt.Sprintf("%d of %s lost or stale, from holds that ended while the client or the harness was "+
			"stopped or too few servers replied", log.stalled, format.Count(len(v.h.Touches), "guarded write"))
	case r.Outcome == Holds && counts["refused"] > 0:
		r.Summary = fmt.Sprintf("%s; fencing refused %d, none of the others was lost or stale",
			format.Count(len(v.h.Touches), "guarded write"), counts["refused"])
	case r.Outcome == Holds:
		r.Summary = format.Count(len(v.h.Touches), "guarded write") + ", none lost or stale"
	default:
		r.Summary += fmt.Sprintf("; %d of %s lost, %d stale; fencing would have refused %d",
			counts["lost"], format.Count(len(v.h.Touches), "write"), counts["stale"], counts["refused_if_fenced"])
	}
	return r
}

// writerOf is the hold in which a touch was made: the last one of the same owner that was granted before it; nil if
// there is none.
func (v *view) writerOf(touch int32) *hold {
	t := &v.h.Touches[touch]
	holds := v.byKey[t.Key]
	n := sort.Search(len(holds), func(n int) bool { return v.holds[holds[n]].from > t.Time })
	for n--; n >= 0; n-- {
		if h := &v.holds[holds[n]]; h.owner == t.Owner && (!h.inner || t.Time <= h.until) {
			return h
		}
	}
	return nil
}

// touchEvidence is the evidence against touch y: the touch x before it or, without one, the grant in whose hold it
// was made.
func (v *view) touchEvidence(x, y int32) []int {
	last := int(v.h.Touches[y].Index)
	if x >= 0 {
		return []int{int(v.h.Touches[x].Index), last}
	}
	if h := v.writerOf(y); h != nil {
		return []int{v.granted(h), last}
	}
	return []int{last}
}

// touchViolation is a violation by touch y, after touch x if there is one, and the newest token seen before y.
func (v *view) touchViolation(f finding) (w Violation, newest uint64) {
	w.Events = v.touchEvidence(f.x, f.y)
	for _, i := range []int32{f.x, f.y} {
		if i < 0 {
			continue
		}
		t := &v.h.Touches[i]
		w.Key = v.h.Keys[t.Key]
		w.Clients = append(w.Clients, t.Process.Client(v.h.Clients))
		w.Owners = append(w.Owners, v.h.Owners[t.Owner])
		if newest = max(newest, t.MaxSeen); i != f.y {
			newest = max(newest, t.Token)
		}
	}
	return w, newest
}

func (v *view) damageViolation(f finding) Violation {
	if f.rule == foreignLost {
		return v.foreignViolation(f)
	}
	w, newest := v.touchViolation(f)
	w.Class = v.damageClass(f)
	t, who, key := &v.h.Touches[f.y], w.Clients[len(w.Clients)-1], lockName(w.Key)
	if f.rule == staleWrite {
		w.Rule = "a write with an older token than one already seen is not accepted"
		w.Text = fmt.Sprintf("client %d wrote under %s at %s with token %d after token %d had been seen",
			who, key, format.Instant(t.Time), t.Token, newest)
		return w
	}
	w.Rule = "a writer finds the value that it read: no other client writes during its critical section"
	w.Text = fmt.Sprintf("client %d wrote under %s at %s over a value that it had not read (read %d, found %d)",
		who, key, format.Instant(t.Time), t.Read, t.Found)
	if f.x >= 0 {
		x := &v.h.Touches[f.x]
		w.Text += fmt.Sprintf(": the write of client %d at %s is lost", w.Clients[0], format.Instant(x.Time))
	}
	return w
}

// damageClass is a broken promise only if both writers held the lock and were inside their promises.
func (v *view) damageClass(f finding) Class {
	for _, i := range []int32{f.x, f.y} {
		if i < 0 {
			continue
		}
		t := v.h.Touches[i].Time
		if h := v.writerOf(i); h == nil || t > h.until || !h.promisedAt(t) || t >= v.unrenewedFrom(h) {
			return OutlivedLease
		}
	}
	return BrokenPromise
}
