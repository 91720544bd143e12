package checker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
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
func Rules(p property.Name) []string {
	s, _ := Find(p)
	return s.Rules()
}

// JudgeWithout judges a history by one property, with one of its rules switched off.
func JudgeWithout(h *history.History, o property.Options, p property.Name, rule int) property.Result {
	o.Only = []property.Name{p}
	return *judge(h, given.Options{Options: o, Off: given.DisabledRules{Of: p, Rules: 1 << rule}}).Result(p)
}

// Absent are the reasons for which a property is not applicable.
func Absent(p property.Name) []string {
	s, _ := Find(p)
	return s.absent
}
