package timeline

import "github.com/lockchaos/lockchaos/checker"

// VerdictStyle is how the page shows a verdict: a CSS class, and a shape for readers without colors.
func VerdictStyle(v checker.Verdict) (class, shape string) {
	switch v {
	case checker.Safe:
		return "safe", "✓"
	case checker.Unsafe:
		return "unsafe", "✕"
	case checker.Inconclusive:
		return "inconclusive", "?"
	}
	return "none", "–"
}

// OutcomeStyle is how an outcome is shown: a class, and a shape that does without color.
func OutcomeStyle(o checker.Outcome) (class, shape string) {
	switch o {
	case checker.Holds:
		return "good", "✓"
	case checker.Violated:
		return "bad", "✕"
	case checker.Undecided:
		return "maybe", "?"
	}
	return "quiet", "–"
}
