package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorsNameTheFile: with its line and column, if the error has them.
func TestErrorsNameTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.yaml")
	for text, want := range map[string]string{
		"name: a\nlok: mutex\n": name + `:2:1: unknown key "lok"`,
		"name: a\n":             name + ": duration: ",
		"":                      name + ": the text is empty",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(name); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "scenario: ") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
