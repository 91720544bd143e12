package scenarios

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEveryScenarioAnswersAQuestion: the table of questions in docs/reference/scenarios.md names every story.
func TestEveryScenarioAnswersAQuestion(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n| question | unsafe | safe counterpart |\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatal("docs/reference/scenarios.md has no table of questions")
	}
	words := map[string]bool{}
	for _, word := range regexp.MustCompile(`[a-z0-9]+(-[a-z0-9]+)*`).FindAllString(table, -1) {
		words[word] = true
	}
	for _, e := range Stories() {
		if !words[e.Name] {
			t.Errorf("story %s is in no row of the table of questions in docs/reference/scenarios.md", e.Name)
		}
	}
}
