package nearest

import "testing"

func TestTo(t *testing.T) {
	names := []string{"failover", "gc-pause", "redlock-two-masters-down"}
	for word, want := range map[string]string{
		"failovr":  "failover",
		"Failover": "failover",
		"gcpause":  "gc-pause",
		"redlock":  "redlock-two-masters-down",
		"elephant": "",
		"":         "",
	} {
		if got := To(word, names); got != want {
			t.Errorf("To(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	if got := Hint("failovr", []string{"failover"}); got != " (did you mean failover?)" {
		t.Errorf("Hint: %q", got)
	}
	if got := Hint("xyzzy", []string{"a", "b"}); got != "; known are a, b" {
		t.Errorf("Hint: %q", got)
	}
	if got := Or("xyzzy", []string{"a", "b"}, " (see list)"); got != " (see list)" {
		t.Errorf("Or: %q", got)
	}
}
