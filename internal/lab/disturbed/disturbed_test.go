package disturbed

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReached: a history is read from its end, also while a line is being written.
func TestReached(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.jsonl")
	if reached(file, 0) {
		t.Error("a file that does not exist has an event")
	}
	text := `{"index":0,"time":1000000000,"type":"invoke"}` + "\n" + `{"index":1,"time":25000000`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if !reached(file, time.Second) || reached(file, time.Second+1) {
		t.Error("the latest event is not that of 1 s")
	}
}

// TestNotRun: a program that exits with the code of a usage error has not run the scenario.
func TestNotRun(t *testing.T) {
	for code, notRun := range map[string]bool{"64": true, "69": true, "70": false} {
		_, err := Disturbance{Victim: Harness}.Disturb(t.Context(), Run{
			Program: []string{"sh", "-c", "echo >&2 no server; exit " + code}, Scenario: "none", Out: t.TempDir()})
		if err == nil || errors.Is(err, ErrNotRun) != notRun {
			t.Errorf("exit code %s: %v", code, err)
		}
	}
}
