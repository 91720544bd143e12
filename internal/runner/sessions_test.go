package runner

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/scenarios"
)

// TestSessionsOfDeadClients: a client dies with a request in flight, shortly before the end of the run. ZooKeeper ends
// its session later than the lock promises: at the first tick after the timeout, which is longer than the promise. The
// harness looks at the servers after that, so the nodes of the session count as no leak.
func TestSessionsOfDeadClients(t *testing.T) {
	const text = `
name: dead-session
summary: a client of an ensemble dies with a request in flight
topology: {kind: zookeeper}
lock: %s
options: {session: %s}
workload: {kind: %s, clients: 1, keys: 1, hold: 10ms, think: 10ms, wait: 50ms, permits: %d}
faults:
- {after: %dms, when: granted, fault: client-crash, target: holder}
duration: 2s
expect: safe
`
	for _, of := range []struct {
		lock, session, workload string
		permits                 int
	}{{"zk-mutex", "20s", "mutex", 0}, {"zk-semaphore", "10s", "semaphore", 2}} {
		looked := 0
		for seed := range uint64(8) {
			yaml := fmt.Sprintf(text, of.lock, of.session, of.workload, of.permits, 1900+10*seed)
			s, err := scenarios.Parse([]byte(yaml))
			if err != nil {
				t.Fatal(err)
			}
			out, history := simulate(t, s, seed, 2)
			i := slices.IndexFunc(out.Judgement.Results, func(r checker.Result) bool { return r.Property == checker.Leak })
			switch leak := out.Judgement.Results[i]; leak.Outcome {
			case checker.Violated:
				t.Errorf("%s, seed %d: %s\n%s", of.lock, seed, leak.Violations[0].Text, history)
			case checker.Holds:
				looked++
			}
		}
		if looked == 0 {
			t.Errorf("%s: the servers were never looked at after the end of all leases", of.lock)
		}
	}
}
