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
	for _, test := range []struct{ scenario, lock, cause, words string }{
		{"client-restart", "writer-preference", "owner-name-reused", "n1 counted 2 holds of it"},
		{"split-brain", "set-nx-ex", "split-brain", "n2 was seen as master from"}, // its value does not name the owner
		{"split-brain", "semaphore", "split-brain", "n2 was seen as master from"},
		{"skewed-replica", "setnx-expire", "replica-clock-ahead", "n2 was seen as master from"},
		{"cluster-lost-write", "mutex", "lost-in-failover", "n4 was seen as master from"},
		{"clock-jump", "redisson-old-unlock", "loss-confirmed", "although the key had expired early on n1"},
		{"busy-script", "setnx", "no-lease", "with an unknown outcome (n1 was busy with a script"},
		{"expiry-while-down", "setnx", "no-lease", "asked to release it"},
		{"mixed-spin", "set-nx-ex", "foreign-release", "did not hold it"},
		{"mixed-spin", "redisson-old-unlock", "lease-shortened", "set a lease that ended before that"},
		{"contention", "setnx-del", "taken-over-twice", "and asked for it again at"},
		{"partitioned-holder", "setnx-getset", "foreign-release", "(`partition`)"},
		{"slow-grants", "set-nx-px", "late-reply-accepted", "when its validity had ended"},
		{"mixed-replies", "set-nx-px", "refused-by-own-key", "had set the key"},
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
			r := runScenario(t, "sim", s)
			if r.Judgement.Verdict != checker.Unsafe || r.story.Cause != test.cause ||
				!strings.Contains(r.story.Sentence, test.words) {
				t.Errorf("%s, cause %s, want %s with %q: %s", r.Judgement.Verdict, r.story.Cause, test.cause, test.words,
					r.story.Sentence)
			}
			checkProofs(t, r)
			checkSteps(t, r)
		})
	}
}
