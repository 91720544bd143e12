package checker

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// outageWindows are the times in which the servers were unavailable: a lock owes no progress while more of them than
// it tolerates were down, cut off or not responding, nor until it has settled afterwards.
type outageWindows struct{ windows []segment } // disjoint, by time

// outages are the outages of the whole lock, see outagesFor.
func (v *view) outages(o Options) outageWindows { return v.outagesFor(wholeLock(), o) }

// outagesFor finds the outages of a scope from the faults and the notes about servers. A fault that only delays traffic
// a little is no outage, nor is a fault that does not affect the scope (see fault_scope.go). A target that is no single
// server stands for all servers.
func (v *view) outagesFor(part scope, o Options) outageWindows {
	type mark struct {
		at     time.Duration
		target string
		by     int // +1: down, -1: available again
	}
	var marks []mark
	since, open := map[int]time.Duration{}, map[int][]string{} // by fault id: its beginning; the servers that it affects
	bridged := make(map[int]bool)                              // by fault id: waiters ask again by themselves
	outlasts := func(node string, f *history.Fault) bool { return v.doesNotAffect(f.ID, node, f.Affects, part, o) }
	for _, f := range refs(v.h.Faults) {
		_, in := open[f.ID]
		switch {
		case strings.HasPrefix(f.Target, clientTarget), f.Affects == history.AffectsDelays:
		case f.Phase == history.Injected && !in:
			affected := slices.DeleteFunc(targetNodes(f.Target), func(node string) bool { return outlasts(node, f) })
			open[f.ID], since[f.ID] = affected, f.Time
			for _, target := range affected {
				marks = append(marks, mark{f.Time, target, +1})
				// Until its end, where it is one again.
				if bridged[f.ID] = o.states(promise.PollsWithoutMessages) && onlyMessages(f.Affects); bridged[f.ID] {
					marks = append(marks, mark{later(f.Time, o.slack()), target, -1})
				}
			}
		case f.Phase == history.Healed && in:
			over := v.noticedBy(segment{since[f.ID], f.Time})
			for _, target := range open[f.ID] {
				if bridged[f.ID] {
					marks = append(marks, mark{f.Time, target, +1})
				}
				marks = append(marks, mark{later(over, o.slack()), target, -1})
			}
			delete(open, f.ID)
		case f.Phase == history.Noted && (f.Name == history.NodeSilent || f.Name == history.NodeReplies), // see silences
			f.Phase == history.Noted && isServer(f.Target) && !changesRoles(f.Name) && outlasts(f.Target, f):
		case f.Phase == history.Noted && f.Name == history.HarnessStalled:
			marks = append(marks, mark{f.Time - f.Lasted, "", +1}, mark{later(f.Time, o.slack()), "", -1})
		case f.Phase == history.Noted: // a promotion: the lock may have to find its master
			marks = append(marks, mark{f.Time, "", +1}, mark{later(f.Time, o.slack()), "", -1})
		}
	}
	for _, s := range v.silences() {
		if !v.doesNotAffect(0, s.target, "", part, o) {
			marks = append(marks, mark{s.from, s.target, +1}, mark{later(s.until, o.slack()), s.target, -1})
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	var away outageWindows
	down, rough := make(map[string]int), false
	for _, m := range marks {
		if down[m.target] += m.by; down[m.target] == 0 {
			delete(down, m.target)
		}
		_, all := down[""]
		now := all || len(down) > max(0, o.MayBeDown)
		switch {
		case now && !rough:
			away.windows = append(away.windows, segment{m.at, never})
		case !now && rough:
			away.windows[len(away.windows)-1].until = m.at
		}
		rough = now
	}
	return away
}

// findSilences finds the times in which a server did not reply, for whatever reason.
func (v *view) findSilences() (all []faultTime) {
	since := make(map[string]int) // by server: index in all
	for _, f := range refs(v.h.Faults) {
		n, silent := since[f.Target]
		switch {
		case f.Phase == history.Noted && f.Name == history.NodeSilent && !silent:
			since[f.Target] = len(all)
			all = append(all, faultTime{segment: segment{f.Time - f.Lasted, never}, target: f.Target})
		case f.Phase == history.Noted && f.Name == history.NodeReplies && silent:
			all[n].until = f.Time
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

// targetNodes are the servers in a fault's target: several with a + between them, two ends of a link with a >. ""
// stands for all servers, as does every word that is not the name of one.
func targetNodes(target string) (nodes []string) {
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

// touches reports whether one of the windows has a part in s.
func (c outageWindows) touches(s segment) bool { return len(within(c.windows, s)) > 0 }

// longestOutside is the longest part of s outside the segments of all lists.
func longestOutside(s segment, without ...[]segment) segment {
	best := segment{s.from, s.from}
	var near []segment
	for _, list := range without {
		for _, w := range list {
			if w.until > s.from && w.from < s.until {
				near = append(near, w)
			}
		}
	}
	eachOutside(s, merged(near), func(part segment) {
		if part.until-part.from > best.until-best.from {
			best = part
		}
	})
	return best
}

// eachOutside visits the parts of s outside the segments of without, which are sorted by their beginnings.
func eachOutside(s segment, without []segment, visit func(part segment)) {
	for _, w := range without {
		if w.until <= s.from || w.from >= s.until {
			continue
		}
		if w.from > s.from {
			visit(segment{s.from, w.from})
		}
		s.from = w.until
	}
	if s.from < s.until {
		visit(s)
	}
}
