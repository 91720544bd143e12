package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// seen is when each change was seen first in a recording: "n1 n4=master" at 45 ms.
func (r recorded) seen() map[string]int64 {
	first := map[string]int64{}
	for _, c := range r.Changes {
		key := c.node + " " + c.what
		if _, ok := first[key]; !ok {
			first[key] = c.ms
		}
	}
	return first
}

// compareEvents describes what was seen in every real recording and not in every simulated one, or in a simulated one
// and never in a real one; and, node by node, what came first in every real recording and later in a simulated one, or
// first in every simulated one and later in most real ones (few are simulated, and TCP reverses some pairs sometimes).
func compareEvents(live, simulated []recorded) (differences []string) {
	a, b := collect(live), collect(simulated)
	for _, what := range slices.Sorted(maps.Keys(union(a.count, b.count))) {
		// Whether a node notices a failure before it is notified of it is a matter of when its timer runs.
		notices := strings.HasSuffix(what, "failure=fail?") && a.count[what] > 0
		if !notices && a.count[what] == len(live) && b.count[what] < len(simulated) || a.count[what] == 0 {
			differences = append(differences, fmt.Sprintf("%q was seen in %d of %d real and %d of %d simulated recordings",
				what, a.count[what], len(live), b.count[what], len(simulated)))
		}
	}
	for _, pair := range slices.Sorted(maps.Keys(union(a.before, b.before))) {
		earlier, later, _ := strings.Cut(pair, " < ")
		back := later + " < " + earlier
		if a.before[pair] == len(live) && b.before[back] > 0 || b.before[pair] == len(simulated) && a.before[back] > len(live)/2 {
			differences = append(differences, fmt.Sprintf("%q before %q: %d of %d real and %d of %d simulated recordings; "+
				"after it: %d and %d", earlier, later, a.before[pair], len(live), b.before[pair], len(simulated),
				a.before[back], b.before[back]))
		}
	}
	return differences
}

// statistics is in how many recordings something was seen, and was seen before something else at the same node.
type statistics struct{ count, before map[string]int }

func collect(all []recorded) statistics {
	s := statistics{map[string]int{}, map[string]int{}}
	for _, r := range all {
		seen := r.seen()
		for a, at := range seen { // order does not matter: it counts
			s.count[a]++
			for b, then := range seen {
				if at < then && a[:2] == b[:2] {
					s.before[a+" < "+b]++
				}
			}
		}
	}
	return s
}

func union(a, b map[string]int) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string]int{a, b} {
		for key := range m { // order does not matter: it fills a map
			all[key] = true
		}
	}
	return all
}

// bound is how long after one change, anywhere, another one is seen first, anywhere. From is empty for the start of the
// event.
type bound struct {
	event, from, to string
	min, max        int64 // milliseconds
}

// bounds follow from cluster.c (7.0) with cluster-node-timeout 500: a node is pinged when its last PONG is 250 ms old,
// at the next turn of a timer of 100 ms; PFAIL when the PONG is 500 ms late, at its next turn; a replica asks for
// votes 500 to 1,000 ms after FAIL; FORCE waits for the timer. 100 ms are allowed for the last messages, whose writes
// wait for an acknowledgement by TCP (40 ms) on links that have sent something else just before.
func bounds() []bound {
	const link = 100
	detect, gossip := int64(250+100+500+100), int64(250+100+100)
	return []bound{
		{"agreed failover", "", "n4=master", 0, 100 + link},
		{"takeover", "", "n1=master", 0, link},
		{"slot migration", "", "n2 slots=105 5461-10921", 0, link},
		{"forced failover", "", "n5=master", 0, 100 + link},
		{"kill of a master", "", "n3 failure=fail", 500 - link, detect + gossip},
		{"kill of a master", "n3 failure=fail", "n6=master", 500 - link, 1000 + 100 + link},
		{"restart of a master", "", "n3=replica of n6", 0, 100 + link},
		{"forced failover of a dead master", "", "n3=master", 0, 100 + link},
		{"forced failover of a dead master", "", "n6 failure=fail", 500 - link, detect + gossip},
		{"partition of a master", "", "n1 failure=fail", 500 - link, detect + gossip},
		{"partition of a master", "n1 failure=fail", "n4=master", 500 - link, 1000 + 100 + link},
		{"end of a partition", "", "n1=replica of n4", 0, 100 + 100 + link},
	}
}

// outOfBounds describes what took shorter or longer than it can.
func (r recorded) outOfBounds() (wrong []string) {
	first := func(what string) (int64, bool) {
		for _, c := range r.Changes {
			if c.what == what {
				return c.ms, true
			}
		}
		return 0, what == ""
	}
	for _, b := range bounds() {
		if b.event != r.Event {
			continue
		}
		from, ok1 := first(b.from)
		to, ok2 := first(b.to)
		if took := to - from; !ok1 || !ok2 || took < b.min || took > b.max {
			wrong = append(wrong, fmt.Sprintf("%q to %q took %d ms (seen: %v, %v), want %d to %d",
				b.from, b.to, took, ok1, ok2, b.min, b.max))
		}
	}
	return wrong
}

// breaks describes what breaks a rule that holds at any speed, at every node: an epoch never goes back; no
// configEpoch is above the current epoch; a replica that is not asked to by hand takes over after FAIL and a new epoch.
func (r recorded) breaks() (wrong []string) {
	epochs := map[string]int64{}
	seen := r.seen()
	for _, c := range r.Changes {
		field, value, _ := strings.Cut(c.what, "=")
		number, _ := strconv.ParseInt(value, 10, 64)
		switch {
		case field == "epoch" && number < epochs[c.node]:
			wrong = append(wrong, fmt.Sprintf("the epoch of %s went back to %d at %d ms", c.node, number, c.ms))
		case field == "epoch":
			epochs[c.node] = number
		case strings.HasSuffix(field, " config") && epochs[c.node] > 0 && number > epochs[c.node]:
			wrong = append(wrong, fmt.Sprintf("at %d ms %s reports %s in its epoch %d", c.ms, c.node, c.what, epochs[c.node]))
		}
	}
	for event, order := range map[string][]string{ // order does not matter: one of them is the event
		"kill of a master":      {"n6 n3 failure=fail", "n6 n6=master"},
		"partition of a master": {"n4 n1 failure=fail", "n4 n4=master"},
	} {
		if r.Event == event && seen[order[0]] > seen[order[1]] {
			wrong = append(wrong, fmt.Sprintf("%q at %d ms before %q at %d", order[1], seen[order[1]], order[0], seen[order[0]]))
		}
	}
	return wrong
}
