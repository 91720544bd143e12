package scenarios

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/promise"
)

// TestExpectedOfLock: the properties that apply follow from the lock that runs, not from the lock in the file.
func TestExpectedOfLock(t *testing.T) {
	none := promise.Set(0)
	for _, tt := range []struct {
		name, text string
		can        promise.Set
		want       map[checker.Property]string
	}{
		{"a promise that is stated", "expect: safe", promise.Fair | promise.Fenced | promise.CountsHolds,
			map[checker.Property]string{"order": "holds", "fencing": "holds", "hold-count": "holds", "damage": "holds"}},
		{"a promise that is not stated", "expect: safe", none, map[checker.Property]string{
			"order": "not-applicable", "fencing": "holds or not-applicable", "hold-count": "holds or not-applicable",
			"recovery": "holds", "wake-up": "holds", "exclusion": "holds", "permits": "not-applicable"}},
		{"broken promise", "expect: unsafe, broken promise", none, map[checker.Property]string{
			"exclusion": "violated", "lease-exclusion": "violated", "damage": "violated", "linearizable": "violated",
			"readers-writer": "not-applicable", "honesty": "holds", "fencing": "holds or not-applicable"}},
		{"outlived lease", "expect: unsafe, outlived lease", none, map[checker.Property]string{
			"exclusion": "violated", "lease-exclusion": "holds", "damage": "violated"}},
		{"outlived lease, and a resource that checks tokens",
			"expect: unsafe, outlived lease\nworkload: {fenced: true}", promise.Fenced,
			map[checker.Property]string{"exclusion": "violated", "damage": "holds"}},
		{"either class", "expect: unsafe, outlived lease or broken promise", none,
			map[checker.Property]string{"lease-exclusion": "holds or violated", "exclusion": "holds or violated"}},
		{"a class, or none", "expect: safe or unsafe, outlived lease", none,
			map[checker.Property]string{"lease-exclusion": "holds", "exclusion": "holds or violated",
				"damage": "holds or violated", "honesty": "holds"}},
		{"either class, or none", "expect: safe or unsafe, outlived lease or broken promise", none,
			map[checker.Property]string{"lease-exclusion": "holds or violated", "damage": "holds or violated"}},
		{"a class, or inconclusive", "expect: inconclusive or unsafe, broken promise", none, map[checker.Property]string{
			"lease-exclusion": "holds or violated or undecided or not-applicable",
			"exercised":       "holds or undecided or not-applicable", "leak": "holds or undecided or not-applicable"}},
		{"a semaphore", "expect: unsafe, broken promise\nworkload: {kind: semaphore}",
			promise.Permits, map[checker.Property]string{"permits": "violated",
				"exclusion": "not-applicable", "lease-exclusion": "not-applicable", "damage": "not-applicable"}},
		{"readers", "expect: unsafe, outlived lease\nworkload: {kind: readers-writer}",
			promise.ReadWrite, map[checker.Property]string{"readers-writer": "violated"}},
		{"a latch", "expect: safe\nworkload: {kind: latch}", promise.Latch,
			map[checker.Property]string{"latch": "holds", "exclusion": "not-applicable", "wake-up": "not-applicable",
				"recovery": "not-applicable", "exercised": "holds"}},
		{"a violation by name, or inconclusive",
			"expect:\n  verdict: inconclusive or unsafe\n  except: {leak: {outcome: holds or violated, because: a}}", none,
			map[checker.Property]string{"leak": "holds or violated", "exercised": "holds or undecided or not-applicable"}},
		{"inconclusive", "expect: inconclusive", none, map[checker.Property]string{
			"exclusion": "holds or undecided or not-applicable", "exercised": "holds or undecided or not-applicable"}},
		{"an exception", except("order: {outcome: holds, because: a}"), promise.Fair,
			map[checker.Property]string{"order": "holds"}},
		{"an exception beyond what this lock states", except("order: {outcome: holds, because: a}"), none,
			map[checker.Property]string{"order": "holds or not-applicable"}},
		{"only a verdict", "expect: unsafe", none, map[checker.Property]string{"exclusion": "", "exercised": ""}},
		{"a violation by name", "expect:\n  verdict: unsafe\n  except: {leak: {outcome: violated, because: a}}", none,
			map[checker.Property]string{"leak": "violated", "exclusion": "holds"}},
		{"nothing", "", none, map[checker.Property]string{"exclusion": ""}},
	} {
		s, err := Parse(fmt.Appendf(nil, "name: a\ntopology: {kind: single}\nlock: exec:a\nduration: 1s\n%s\n", tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, all := map[checker.Property]string{}, s.Expected(tt.can)
		for name := range tt.want {
			got[name] = all[name].Outcome
			if (all[name].Because == "") != (got[name] == "") {
				t.Errorf("%s: %s has the reason %q", tt.name, name, all[name].Because)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
