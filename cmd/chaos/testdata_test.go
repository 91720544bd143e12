package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestCheckJudgesTheTestdata: the command reads the histories that the checkers are tested with.
func TestCheckJudgesTheTestdata(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	paths, err := filepath.Glob("../../checker/testdata/*.history")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d histories, %v", len(paths), err)
	}
	words := map[int]string{exitSafe: "SAFE", exitUnsafe: "UNSAFE", exitInconclusive: "INCONCLUSIVE"}
	for i, path := range paths {
		if race.Short() && i%6 > 0 {
			continue
		}
		code, stdout, stderr := chaos("check", path)
		if word, ok := words[code]; !ok || !strings.Contains(stdout, word+":") {
			t.Errorf("%s: exit code %d\n%s%s", path, code, stdout, stderr)
		}
	}
}
