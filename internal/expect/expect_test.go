package expect

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
)

func TestExpectationsAreComplete(t *testing.T) {
	judged := func(v checker.Verdict, outcomes ...string) (j checker.Judgement) {
		j.Verdict = v
		for _, o := range outcomes {
			name, outcome, _ := strings.Cut(o, "=")
			j.Results = append(j.Results, checker.Result{Property: checker.Property(name), Outcome: checker.Outcome(outcome)})
		}
		return j
	}
	overlap := judged(checker.Unsafe, "exclusion=violated", "leak=violated", "order=not-applicable")
	tests := []struct {
		name   string
		j      checker.Judgement
		expect map[string]string
		want   string // the differences
	}{
		{"another violation", overlap, map[string]string{"exclusion": "violated"},
			"leak: violated, which the scenario does not expect"},
		{"each is named", overlap, map[string]string{"exclusion": "violated", "leak": "violated"}, ""},
		{"one of two outcomes", overlap, map[string]string{"exclusion": "violated", "leak": "holds or violated"}, ""},
		{"none of two outcomes", overlap, map[string]string{"exclusion": "violated", "leak": "holds or undecided"},
			"leak: expected holds or undecided, got violated"},
		{"only the verdict", overlap, map[string]string{"verdict": "unsafe"}, ""},
		{"safe, and violated", overlap, map[string]string{"verdict": "safe"}, "verdict: expected safe, got unsafe; " +
			"exclusion: violated, which the scenario does not expect; leak: violated, which the scenario does not expect"},
		{"undecided", judged(checker.Inconclusive, "exclusion=holds", "exercised=undecided"), map[string]string{"exclusion": "holds"},
			"exercised: undecided, which the scenario does not expect"},
		{"not judged", overlap, map[string]string{"exclusion": "violated", "leak": "violated", "permits": "holds"},
			"permits: expected holds, got not judged"},
		{"no class", overlap, map[string]string{"class": "outlived lease"}, "class: expected outlived lease, got none"},
		{"a class, or safe", judged(checker.Safe, "exclusion=holds"),
			map[string]string{"verdict": "safe or unsafe", "class": "outlived lease"}, ""},
		{"a class, or inconclusive", judged(checker.Inconclusive, "exclusion=holds"),
			map[string]string{"verdict": "safe or unsafe", "class": "outlived lease"},
			"verdict: expected safe or unsafe, got inconclusive; class: expected outlived lease, got none"},
		{"unsafe without the class", overlap,
			map[string]string{"verdict": "safe or unsafe", "class": "outlived lease"},
			"class: expected outlived lease, got none"},
		{"no expectation", overlap, nil, ""},
	}
	for _, tt := range tests {
		if got := strings.Join(Unexpected(tt.j, tt.expect), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
