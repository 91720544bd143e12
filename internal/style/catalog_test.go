package style

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/locks"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/workloads"
)

// row is a row of any catalog.
type row struct{ folder, name, doc, ending string }

// rows are all rows of all catalogs that have a file for each.
func rows(t *testing.T) []row {
	t.Helper()
	var all []row
	for _, r := range locks.Catalog() {
		all = append(all, row{"internal/locks", r.Name, r.Doc, ".go"})
	}
	for _, r := range faults.Catalog() {
		all = append(all, row{"faults", r.Name, r.Doc, ".go"})
	}
	for _, r := range workloads.Catalog() {
		all = append(all, row{"workloads", r.Name, r.Doc, ".go"})
	}
	for _, r := range checker.Catalog() {
		all = append(all, row{"checker", string(r.Name), r.Doc, ".go"}) // in one of checker/internal
	}
	return all
}

func TestEveryRowHasAFileASentenceAndATest(t *testing.T) {
	tests := map[string]string{} // folder → the text of its tests and their data
	for _, r := range rows(t) {
		base := r.name
		if r.ending == ".go" {
			base = strings.ReplaceAll(r.name, "-", "_")
		}
		if !exists(r.folder, base+r.ending) && !exists(r.folder, base) && !inFamily(r) {
			t.Errorf("%s: row %s has no file %s%s and no folder", r.folder, r.name, base, r.ending)
		}
		if len(strings.Fields(r.doc)) < 3 {
			t.Errorf("%s: row %s says nothing of itself: %q", r.folder, r.name, r.doc)
		}
		if tests[r.folder] == "" {
			tests[r.folder] = testText(t, r.folder)
		}
		if !strings.Contains(tests[r.folder], r.name) && !strings.Contains(tests[r.folder], "Catalog()") {
			t.Errorf("%s: no test speaks of row %s", r.folder, r.name)
		}
	}
}

// inFamily: the locks of the articles share one file, because they are one
// adapter with many rows.
func inFamily(r row) bool {
	return r.folder == "internal/locks" && exists("internal/locks", "historic.go")
}

func exists(folder, name string) bool {
	inside, _ := filepath.Glob(filepath.Join(root, folder, "internal", "*", name))
	_, err := os.Stat(filepath.Join(root, folder, name))
	return err == nil || len(inside) > 0
}

func testText(t *testing.T, folder string) string {
	t.Helper()
	var text strings.Builder
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "testdata/*"} {
		paths, err := filepath.Glob(filepath.Join(root, folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			b, _ := os.ReadFile(path)
			text.Write(b)
		}
	}
	return text.String()
}
