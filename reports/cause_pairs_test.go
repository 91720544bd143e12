package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/scenarios"
)

// TestCausesOfOtherLocks: a scenario with a lock that it was not written for has a cause, too. Each row is a way to
// fail that no scenario of the catalog plans.
func TestCausesOfOtherLocks(t *testing.T) {
	for _, test := range []struct {
		seed                         uint64
		scenario, lock, cause, words string
	}{
		{7, "client-restart", "writer-preference", "owner-name-reused", "n1 counted 2 holds of it"},
		{7, "split-brain", "set-nx-ex", "split-brain", "n2 was seen as master from"}, // its value does not name the owner
		{7, "split-brain", "semaphore", "split-brain", "n2 was seen as master from"},
		{7, "skewed-replica", "setnx-expire", "replica-clock-ahead", "n2 was seen as master from"},
		{7, "cluster-lost-write", "mutex", "lost-in-failover", "n4 was seen as master from"},
		{7, "clock-jump", "redisson-old-unlock", "loss-confirmed", "although the key had expired early on n1"},
		{7, "busy-script", "setnx", "no-lease", "with an unknown outcome (n1 was busy with a script"},
		{7, "expiry-while-down", "setnx", "no-lease", "asked to release it"},
		{7, "mixed-spin", "set-nx-ex", "foreign-release", "did not hold it"},
		{1, "mixed-spin", "redisson-old-unlock", "lease-shortened", "set a lease that ended before that"},
		{7, "contention", "setnx-del", "taken-over-twice", "and asked for it again at"},
		{7, "partitioned-holder", "setnx-getset", "foreign-release", "(`partition`)"},
		{7, "slow-grants", "set-nx-px", "late-reply-accepted", "when its validity had ended"},
		{7, "mixed-replies", "set-nx-px", "refused-by-own-key", "had set the key"},
	} {
		t.Run(test.scenario+"/"+test.lock, func(t *testing.T) {
			s, err := scenarios.Load(test.scenario)
			if err != nil {
				t.Fatal(err)
			}
			s.Lock, s.Options, s.Twin = test.lock, nil, nil
			if s.Workload.Lease == 0 {
				s.Workload.Lease = ms(2000)
			}
			r := runSeed(t, "sim", s, test.seed)
			if r.Judgement.Verdict != checker.Unsafe || r.Story.Cause != test.cause ||
				!strings.Contains(r.Story.Sentence, test.words) {
				t.Errorf("%s, cause %s, want %s with %q: %s", r.Judgement.Verdict, r.Story.Cause, test.cause, test.words,
					r.Story.Sentence)
			}
			checkProofs(t, r)
			checkSteps(t, r)
		})
	}
}
