package excuse

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// OutageWindows are the times in which the servers were unavailable: a lock owes no progress while more of them than
// it tolerates were down, cut off or not responding, nor until it has settled afterwards.
type OutageWindows struct{ Windows []segment.Segment } // disjoint, by time

// Outages are the outages of the whole lock, see OutagesFor.
func (v *View) Outages(o given.Options) OutageWindows { return v.OutagesFor(wholeLock(), o) }

// OutagesFor finds the outages of a scope from the faults and the notes about servers. A fault that only delays traffic
// a little is no outage, nor is a fault that does not affect the scope (see scope.go). A target that is no single
// server stands for all servers.
func (v *View) OutagesFor(part Scope, o given.Options) OutageWindows {
	type mark struct {
		at     time.Duration
		target string
		by     int // +1: down, -1: available again
	}
	var marks []mark
	since, open := map[int]time.Duration{}, map[int][]string{} // by fault id: its beginning; the servers that it affects
	bridged := make(map[int]bool)                              // by fault id: waiters ask again by themselves
	outlasts := func(node string, f *history.Fault) bool { return v.doesNotAffect(f.ID, node, f.Affects, part, o) }
	for _, f := range refs.All(v.H.Faults) {
		_, in := open[f.ID]
		switch {
		case strings.HasPrefix(f.Target, ClientTarget), f.Affects == history.AffectsDelays:
		case f.Phase == history.Injected && !in:
			affected := slices.DeleteFunc(TargetNodes(f.Target), func(node string) bool { return outlasts(node, f) })
			open[f.ID], since[f.ID] = affected, f.Time
			for _, target := range affected {
				marks = append(marks, mark{f.Time, target, +1})
				// Until its end, where it is one again.
				if bridged[f.ID] = o.States(promise.PollsWithoutMessages) && onlyMessages(f.Affects); bridged[f.ID] {
					marks = append(marks, mark{segment.Later(f.Time, o.Slack()), target, -1})
				}
			}
		case f.Phase == history.Healed && in:
			over := v.noticedBy(segment.Of(since[f.ID], f.Time))
			for _, target := range open[f.ID] {
				if bridged[f.ID] {
					marks = append(marks, mark{f.Time, target, +1})
				}
				marks = append(marks, mark{segment.Later(over, o.Slack()), target, -1})
			}
			delete(open, f.ID)
		case f.Phase == history.Noted && (f.Name == history.NodeSilent || f.Name == history.NodeReplies), // see silences
			f.Phase == history.Noted && isServer(f.Target) && !changesRoles(f.Name) && outlasts(f.Target, f):
		case f.Phase == history.Noted && f.Name == history.HarnessStalled:
			marks = append(marks, mark{f.Time - f.Lasted, "", +1}, mark{segment.Later(f.Time, o.Slack()), "", -1})
		case f.Phase == history.Noted: // a promotion: the lock may have to find its master
			marks = append(marks, mark{f.Time, "", +1}, mark{segment.Later(f.Time, o.Slack()), "", -1})
		}
	}
	for _, s := range v.Silences() {
		if !v.doesNotAffect(0, s.Target, "", part, o) {
			marks = append(marks, mark{s.From, s.Target, +1}, mark{segment.Later(s.Until, o.Slack()), s.Target, -1})
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	var away OutageWindows
	down, rough := make(map[string]int), false
	for _, m := range marks {
		if down[m.target] += m.by; down[m.target] == 0 {
			delete(down, m.target)
		}
		_, all := down[""]
		now := all || len(down) > max(0, o.MayBeDown)
		switch {
		case now && !rough:
			away.Windows = append(away.Windows, segment.Of(m.at, segment.Never))
		case !now && rough:
			away.Windows[len(away.Windows)-1].Until = m.at
		}
		rough = now
	}
	return away
}

// findSilences finds the times in which a server did not reply, for whatever reason.
func (v *View) findSilences() (all []FaultTime) {
	since := make(map[string]int) // by server: index in all
	for _, f := range refs.All(v.H.Faults) {
		n, silent := since[f.Target]
		switch {
		case f.Phase == history.Noted && f.Name == history.NodeSilent && !silent:
			since[f.Target] = len(all)
			all = append(all, FaultTime{Segment: segment.Of(f.Time-f.Lasted, segment.Never), Target: f.Target})
		case f.Phase == history.Noted && f.Name == history.NodeReplies && silent:
			all[n].Until = f.Time
			delete(since, f.Target)
		}
	}
	return all
}

// onlyMessages reports whether a fault affects subscriptions, and nothing but them and their messages.
func onlyMessages(affects string) bool {
	words := strings.Fields(affects)
	return slices.Contains(words, history.AffectsSubscriptions) && !slices.ContainsFunc(words, func(w string) bool {
		return w != history.AffectsSubscriptions && w != history.AffectsMessages && w != history.AffectsRights
	})
}

// TargetNodes are the servers in a fault's target: several with a + between them, two ends of a link with a >. ""
// stands for all servers, as does every word that is not the name of one.
func TargetNodes(target string) (nodes []string) {
	for _, node := range strings.FieldsFunc(target, func(r rune) bool { return r == '+' || r == '>' }) {
		if !isServer(node) {
			node = ""
		}
		nodes = append(nodes, node)
	}
	if len(nodes) == 0 {
		return []string{""}
	}
	return nodes
}

// isServer reports whether name is a server's: n1, s2, or another name that ends with a digit.
func isServer(name string) bool {
	return name != "" && name[len(name)-1] >= '0' && name[len(name)-1] <= '9'
}

// Touches reports whether one of the windows has a part in s.
func (c OutageWindows) Touches(s segment.Segment) bool { return len(segment.Within(c.Windows, s)) > 0 }
