package reports

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestScriptKeys: scripts/repeat reads keys of the JSON summary by name.
func TestScriptKeys(t *testing.T) {
	script, err := os.ReadFile("../scripts/repeat")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`\$\(field (\w+)`).FindAllStringSubmatch(string(script), -1)
	if len(keys) < 4 {
		t.Fatalf("scripts/repeat reads %q", keys)
	}
	summary := render(t, failoverRun("orders").load(t), "json")
	for _, key := range keys {
		if !strings.Contains(summary, `"`+key[1]+`": `) {
			t.Errorf("scripts/repeat reads %q, which the summary does not have", key[1])
		}
	}
}
