package style

import (
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxPackage = 2500 // lines of a package without its tests
	maxSlack   = 500  // by how much a package of largePackages may have shrunk before its entry does
)

// largePackages are larger packages, with a size that they must not exceed. The list only shrinks: a package with more
// than one job becomes several, each named after its own.
func largePackages() map[string]int {
	return map[string]int{
		"cmd/chaos":                   5400,
		"faults":                      3950,
		"internal/cluster/process":    3410,
		"internal/cluster/sim":        3600,
		"internal/cluster/sim/engine": 8400,
		"internal/locks":              3400,
		"lock":                        6900,
	}
}

// TestPackagesAreSmall: a reader can hold a package in mind.
func TestPackagesAreSmall(t *testing.T) {
	large := largePackages()
	for dir, paths := range packages(t) {
		lines := 0
		for _, file := range paths {
			lines += strings.Count(read(t, file), "\n")
		}
		switch limit, listed := large[dir]; {
		case !listed && lines > maxPackage:
			t.Errorf("package %s has %d lines, more than %d: give its parts packages of their own", dir, lines, maxPackage)
		case listed && lines > limit:
			t.Errorf("package %s has grown to %d lines; it is listed with %d", dir, lines, limit)
		case listed && (lines <= maxPackage || lines < limit-maxSlack):
			t.Errorf("package %s has only %d lines now: lower its entry of %d, or remove it", dir, lines, limit)
		}
		delete(large, dir)
	}
	for _, dir := range slices.Sorted(maps.Keys(large)) {
		t.Errorf("package %s is listed and does not exist", dir)
	}
}

// TestPackagesNameTheirJob: the doc comment of each package begins with its name and states its job.
func TestPackagesNameTheirJob(t *testing.T) {
	for dir, paths := range packages(t) {
		doc, name := "", ""
		for _, file := range paths {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil,
				parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			name = "Package " + parsed.Name.Name + " "
			if parsed.Name.Name == "main" {
				name = "Command " + path.Base(dir) + " "
			}
			if text := parsed.Doc.Text(); strings.HasPrefix(text, name) {
				doc = text
			}
		}
		if first, _, _ := strings.Cut(doc, "."); len(strings.Fields(first)) < 4 {
			t.Errorf("package %s: no doc comment that begins with %q and says what the package does: %q", dir, name, first)
		}
	}
}

// packages are the files of each package, without tests and without programs that go run builds alone.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, file := range files(t, ".go") {
		if ignored := strings.Contains(read(t, file), "//go:build ignore\n"); !ignored && !strings.HasSuffix(file, "_test.go") {
			all[path.Dir(file)] = append(all[path.Dir(file)], file)
		}
	}
	return all
}
