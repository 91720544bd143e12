package checker

import (
	"os"
	"path/filepath"
	"testing"
)

// EachOfTestdata calls do with the path and the text of each history of testdata.
func EachOfTestdata(t *testing.T, do func(file, text string)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.history")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d histories found: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		do(file, string(text))
	}
}

// Rules are the names of a property's rules.
func Rules(p Property) []string {
	s, _ := Find(p)
	return s.rules
}

// Without is o with one rule of a property switched off.
func Without(o Options, p Property, rule int) Options {
	o.off = disabledRules{of: p, rules: 1 << rule}
	return o
}

// Absent are the reasons for which a property is not applicable.
func Absent(p Property) []string {
	s, _ := Find(p)
	return s.absent
}
