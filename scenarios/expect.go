package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/nearest"
)

// Expect is the expected end of a run. The outcome of each property is derived from it, see [Scenario.Expected]. In
// YAML it is its verdict, or a section if it has exceptions. The zero value expects nothing.
type Expect struct {
	// Verdict is the verdict and its class, such as "safe" or "unsafe, broken promise". Several verdicts are separated by
	// " or ", as in "safe or unsafe, outlived lease".
	Verdict string               `yaml:"verdict"`
	Except  map[string]Exception `yaml:"except,omitempty"` // by property: an outcome other than the derived one
}

// Exception is the expected outcome of one property.
type Exception struct {
	Outcome string `yaml:"outcome"` // several are separated by " or "
	Because string `yaml:"because"` // why it is not the derived one
}

// classWord separates a verdict from its class.
const classWord = ", "

// Is reports whether v is an expected verdict.
func (e Expect) Is(v checker.Verdict) bool {
	verdict, _ := e.Split()
	return slices.Contains(expect.Outcomes(verdict), string(v))
}

// Text is the expected verdict and its class, for people. A scenario that expects nothing should end safe.
func (e Expect) Text() string {
	if e.IsZero() {
		return string(checker.Safe)
	}
	return e.Verdict
}

// Split is the verdict and its class; several are separated by " or ", and the class "" is none.
func (e Expect) Split() (verdict, class string) {
	verdict, class, _ = strings.Cut(e.Verdict, classWord)
	return verdict, class
}

// IsZero reports whether e expects nothing.
func (e Expect) IsZero() bool { return e.Verdict == "" && len(e.Except) == 0 }

// expectSection is Expect where YAML has it as a section.
type expectSection Expect

// UnmarshalYAML reads a verdict or a section.
func (e *Expect) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&e.Verdict) == nil {
		return nil
	}
	return unmarshal((*expectSection)(e))
}

// MarshalYAML writes the form that UnmarshalYAML reads.
func (e Expect) MarshalYAML() (any, error) {
	if len(e.Except) == 0 {
		return e.Verdict, nil
	}
	return expectSection(e), nil
}

func checkExpect(c *mistakes, e Expect) {
	if e.IsZero() {
		if c.at("$.expect") != nil {
			c.add("$.expect", "expect is empty, so nothing is expected: write safe, inconclusive or unsafe, or "+
				"leave the key out")
		}
		return
	}
	path := "$.expect.verdict"
	if c.at(path) == nil {
		path = "$.expect"
	}
	checkVerdict(c, path, e)
	for _, name := range slices.Sorted(maps.Keys(e.Except)) {
		checkException(c, e, name)
	}
}

func checkVerdict(c *mistakes, path string, e Expect) {
	verdicts := []string{string(checker.Safe), string(checker.Unsafe), string(checker.Inconclusive)}
	classes := []string{string(checker.BrokenPromise), string(checker.OutlivedLease)}
	verdict, class := e.Split()
	for _, one := range expect.Outcomes(verdict) {
		if !slices.Contains(verdicts, one) {
			near := slices.Clone(verdicts)
			for _, class := range classes {
				near = append(near, "\""+string(checker.Unsafe)+classWord+class+"\"")
			}
			c.add(path, "the verdict cannot be %q%s", one, nearest.Hint(one, near))
			return
		}
	}
	switch hasClass := strings.Contains(e.Verdict, classWord); {
	case hasClass && !e.Is(checker.Unsafe):
		c.add(path, "only the verdict unsafe has a class; several verdicts are separated by \"or\"")
	case hasClass:
		for _, one := range expect.Outcomes(class) {
			switch {
			case slices.Contains(verdicts, one):
				c.add(path, "the verdict %s follows a class: write all verdicts first, as in \"safe or unsafe, outlived lease\"",
					one)
			case !slices.Contains(classes, one):
				c.add(path, "the class cannot be %q%s", one, nearest.Hint(one, classes))
			}
		}
	}
}

func checkException(c *mistakes, e Expect, name string) {
	path, x := "$.expect.except."+name, e.Except[name]
	if _, known := checker.Find(checker.Property(name)); !known {
		c.add(path, "unknown property %q%s", name, nearest.Hint(name, properties()))
		return
	}
	outcomes := []string{
		string(checker.Holds), string(checker.Violated), string(checker.Undecided), string(checker.NotApplicable),
	}
	for _, word := range expect.Outcomes(x.Outcome) {
		if !slices.Contains(outcomes, word) {
			c.add(path, "%s cannot be %q%s", name, word, nearest.Hint(word, outcomes))
		}
		if word == string(checker.Violated) && !e.Is(checker.Unsafe) {
			c.add(path, "%s cannot be violated in a run with the verdict %s", name, e.Text())
		}
	}
	if strings.TrimSpace(x.Because) == "" {
		c.add(path, "an exception needs its reason: %s: {outcome: %s, because: …}", name, x.Outcome)
	}
}

// properties are the names of all properties.
func properties() (names []string) {
	for _, row := range checker.Catalog() {
		names = append(names, string(row.Name))
	}
	return names
}

// formerExpect is how a key that a section expect once had is written now; "": it had no such key.
func formerExpect(key string) string {
	if key == expect.Class {
		return "the class follows the verdict: \"unsafe, broken promise\""
	}
	if slices.Contains(properties(), key) {
		return fmt.Sprintf("outcomes are derived; one that differs is in the section except: "+
			"{%s: {outcome: …, because: …}}", key)
	}
	return ""
}
