package sim_test

import (
	"fmt"
	"strconv"
	"strings"
)

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

// breaks describes violations of rules that hold at any speed, at every node: an epoch never goes back; no configEpoch
// is above the current epoch; a replica that is not asked to by hand takes over after FAIL and a new epoch.
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
