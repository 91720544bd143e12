package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about faults that do not excuse a lock, because it states that they do not affect it: a server that
// hangs does not affect what another one keeps (Options.Isolates), full memory affects neither releases nor renewals
// (Options.FullMemory), and keys that move affect neither acquires, releases nor renewals (Options.Migrates).

// concern is what an operation is about.
type concern struct {
	key       int32 // none: any
	givesBack bool  // it is a release or a renewal, or what follows from one that the lock makes by itself
	aside     bool  // it is what only operators do: an inspection, a release by force, a new number of permits
}

// anything is what every fault concerns that the lock does not outlast as a whole.
func anything() concern { return concern{key: none} }

// concernOf is that of an operation.
func concernOf(s *history.Span) concern {
	givesBack := s.Op == history.OpRelease || s.Op == history.OpRenew
	return concern{s.Key, givesBack, !givesBack && !isAcquire(s.Op)}
}

// spares reports whether a fault that affects what the words say at a server does not concern c. "": all servers.
func (v *view) spares(node, affects string, c concern, o Options) bool {
	switch {
	case o.Migrates && !c.aside && affectsWord(affects, history.AffectsSlots),
		o.FullMemory && c.givesBack && affectsWord(affects, history.AffectsMemory):
		return true
	case o.Isolates == 0 || c.key == none || !isServer(node):
		return false
	}
	home := v.homes()[c.key]
	return home != "" && home != node
}

// unhurried is o for a rule about how long an acquire, a try or a release takes, if the rule that acquits applies.
// While a slot migrates, each of them takes many requests, one after the other: where a connection may be slow without
// a fault, these alone may take longer than the slack.
func (o Options) unhurried(acquits int) Options {
	o.Migrates = o.Migrates && !(o.Starves && o.applies(acquits))
	return o
}

// findHomes finds, by key, the only server that has kept a hold, by the samples of its masters; "" if there are
// several, as after a failover, or if none is known. After a server was away for longer than Options.Isolates, the
// others may have refused all commands: then none counts as known.
func (v *view) findHomes(isolates time.Duration) []string {
	homes, s := make([]string, len(v.h.Keys)), v.servers()
	if s == nil || v.longestOutage() > isolates {
		return homes
	}
	for key := range homes {
		for node, samples := range s.nodes {
			switch {
			case s.named[nodeKey{int32(node), int32(key)}] == nil:
			case homes[key] != "":
				homes[key] = several
			default:
				homes[key] = s.h.Samples[samples[0]].Node
			}
		}
		if homes[key] == several {
			homes[key] = ""
		}
	}
	return homes
}

// several stands for the servers of a key that has more than one.
const several = "several"

// longestOutage is for how long a fault, or a server that did not reply, lasted at most.
func (v *view) longestOutage() (longest time.Duration) {
	silent := make(map[string]time.Duration)
	for _, f := range v.faultTimes() {
		if f.client() < 0 {
			longest = max(longest, min(f.until, v.h.End)-f.from)
		}
	}
	for _, f := range every(v.h.Faults) {
		switch {
		case f.Phase != history.Noted:
		case f.Name == history.NodeSilent:
			silent[f.Target] = f.Time - f.Lasted
		case f.Name == history.NodeReplies:
			if from, is := silent[f.Target]; is {
				longest = max(longest, f.Time-from)
				delete(silent, f.Target)
			}
		}
	}
	for _, from := range silent {
		longest = max(longest, v.h.End-from)
	}
	return longest
}

// sparesAll reports whether a fault spares c at each of the servers that it is aimed at.
func (v *view) sparesAll(f *faultTime, c concern, o Options) bool {
	return f.client() < 0 && !f.changesRoles && !slices.ContainsFunc(targetNodes(f.target), func(node string) bool {
		return !v.spares(node, f.affects, c, o)
	})
}

// concerning is what may explain the lock's behavior about c in place of the lock.
func (v *view) concerning(c concern, o Options) disturbances {
	d := v.allDisturbances(o)
	d.times = slices.DeleteFunc(slices.Clone(d.times), func(f faultTime) bool { return v.sparesAll(&f, c, o) })
	return d
}

// excuses are what may explain the lock's behavior about one thing.
type excuses struct {
	away outageWindows
	dis  disturbances
}

// excusesOf returns a function that finds them, each once.
func (v *view) excusesOf(o Options) func(c concern) excuses {
	known := make(map[concern]excuses)
	return func(c concern) excuses {
		if o.Isolates == 0 {
			c.key = none
		}
		e, is := known[c]
		if !is {
			e = excuses{v.outagesFor(c, o), v.concerning(c, o)}
			known[c] = e
		}
		return e
	}
}
