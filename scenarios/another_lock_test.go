package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOfAnotherLock: an unsafe verdict is about the lock of the text. Another lock may end safe, but not break a
// promise that no fault takes from it.
func TestOfAnotherLock(t *testing.T) {
	const (
		paused  = "faults: [{fault: pause-client}]\n"
		flushed = "faults: [{fault: flushall}]\n"
		cut     = "faults: [{fault: partition, target: master}]\n"
		leak    = "  except:\n    leak: {outcome: violated, because: a}\n"
		lease   = "safe or unsafe, outlived lease"
		either  = "safe or unsafe, outlived lease or broken promise"
	)
	for _, tt := range []struct {
		name, text, want string
		except           map[string]string
	}{
		{"safe", "expect: safe\n" + flushed, "safe", nil},
		{"inconclusive", "expect: inconclusive\n" + flushed, "safe or inconclusive", nil},
		{"nothing", flushed, "", nil},
		{"outlived lease", "expect: unsafe, outlived lease\n" + paused, lease, nil},
		{"the lock of the text breaks its promise", "expect: unsafe, broken promise\n" + paused, lease, nil},
		{"the servers lose the grant", "expect: unsafe, broken promise\n" + flushed, either, nil},
		{"any violation", "expect: unsafe\n" + flushed, either, nil},
		{"drawn faults", "expect: unsafe, broken promise\nfaults: [{random: {of: [pause-client, flushall], every: 400ms}}]\n",
			either, nil},
		{"a master that is cut off", "expect: unsafe, broken promise\n" + cut, lease, nil},
		{"a master that is cut off, and replaced", "topology: {kind: sentinel}\nexpect: unsafe, broken promise\n" + cut,
			either, nil},
		{"a lease that servers forget", "expect: unsafe, outlived lease\n" + flushed, lease, nil},
		{"a violation of the lock of the text", "expect:\n  verdict: unsafe\n" + leak + flushed, lease,
			map[string]string{"leak": "holds or not-applicable"}},
		{"a violation that servers may cause", "expect:\n  verdict: unsafe, broken promise\n" + leak + flushed, either,
			map[string]string{"leak": "holds or violated or not-applicable"}},
		{"no overlap with the lock of the text", "expect:\n  verdict: unsafe, outlived lease\n  except:\n" +
			"    exclusion: {outcome: holds, because: a}\n    lease-exclusion: {outcome: holds, because: a}\n", lease,
			map[string]string{"exclusion": "holds or violated or not-applicable", "lease-exclusion": "holds or not-applicable"}},
		{"a run that tests nothing with a correct lock", "expect:\n  verdict: unsafe\n" + leak +
			"    exercised: {outcome: undecided, because: a}\n", "safe or inconclusive or unsafe, outlived lease",
			map[string]string{"leak": "holds or not-applicable", "exercised": "holds or undecided or not-applicable"}},
		{"a property that does not apply", except("linearizable: {outcome: not-applicable, because: a}"), "safe",
			map[string]string{"linearizable": "holds or not-applicable"}},
	} {
		text := "name: mine\nlock: reentrant\nduration: 1s\n" + tt.text
		if !strings.Contains(text, "topology:") {
			text += "topology: {kind: single}\n"
		}
		s, err := Parse([]byte(text), Override{As: "--lock", Path: "lock", Value: "mutex"})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		again, err := Parse([]byte(s.YAML())) // as a replay reads it
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		third, err := Parse([]byte(s.YAML()), Override{As: "--lock", Path: "lock", Value: "redisson"})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, s := range []Scenario{s, again, third} {
			var got map[string]string
			for name, x := range s.Expect.Except {
				if got == nil {
					got = map[string]string{}
				}
				got[name] = x.Outcome
			}
			if diff := cmp.Diff(fmt.Sprint(tt.want, tt.except), fmt.Sprint(s.Expect.Verdict, got)); diff != "" {
				t.Errorf("%s, lock %s (-want +got):\n%s", tt.name, s.Lock, diff)
			}
		}
	}
}

// TestProductionOfAnotherLock: the meaning of a verdict in production is not that of another lock's verdict.
func TestProductionOfAnotherLock(t *testing.T) {
	for lock, kept := range map[string]bool{"setnx-del-unchecked": true, "mutex": false} {
		s, err := Load("setnx-del-unchecked", Override{As: "--lock", Path: "lock", Value: lock})
		if err != nil {
			t.Fatal(err)
		}
		if (s.Production != "") != kept {
			t.Errorf("lock %s: %q", lock, s.Production)
		}
	}
}
