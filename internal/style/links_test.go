package style

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s#]+)(#[^)\s]*)?\)`)
	docsPath = regexp.MustCompile(`\bdocs/[a-z/-]+\.(?:md|json|png)\b`)
)

// templates are the parts of generated pages; their links are relative to the page.
func templates() map[string]string {
	return map[string]string{
		"internal/lab/mutants/head.md":   "docs/contributors/detection.md",
		"internal/lab/mutants/bugs.md":   "docs/contributors/bugs.md",
		"internal/lab/libraries/head.md": "docs/contributors/verdicts.md",
	}
}

// TestLinksLeadToFiles: each relative link of a page, and each path in docs that a text names, is a file of the
// repository.
func TestLinksLeadToFiles(t *testing.T) {
	links := 0
	check := func(from, target string) {
		links++
		if _, err := os.Stat(filepath.Join(root, target)); err != nil {
			t.Errorf("%s: there is no %s", from, target)
		}
	}
	for _, from := range files(t, ".md", ".go", ".yaml", ".yml", ".py", ".mjs", ".html", ".js") {
		text := read(t, from)
		for _, target := range docsPath.FindAllString(text, -1) {
			check(from, target)
		}
		if path.Ext(from) != ".md" {
			continue
		}
		page := from
		if generated, is := templates()[from]; is {
			page = generated
		}
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[1], "://") {
				check(from, path.Join(path.Dir(page), m[1]))
			}
		}
	}
	if links < 100 {
		t.Errorf("found only %d links and paths: the search is wrong", links)
	}
}

// TestEveryPageIsInTheIndex: docs/README.md links to each page.
func TestEveryPageIsInTheIndex(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, page := range files(t, ".md") {
		if name, is := strings.CutPrefix(page, "docs/"); is && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
}
