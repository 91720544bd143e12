// Package style tests rules of this project that no linter knows: the catalogs, the docs, the words, and the downloads
// of a user of package lock. Everything else is in .golangci.yml.
package style

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

// files are the paths of the repository's files with one of the extensions, relative to the root, without test data.
func files(t *testing.T, extensions ...string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		hidden := strings.HasPrefix(name, ".") && path != root && name != ".ci"
		if d.IsDir() && (hidden || slices.Contains([]string{"testdata", "bin", "dist", "chaos-runs"}, name)) {
			return filepath.SkipDir
		}
		if d.IsDir() || !slices.Contains(extensions, filepath.Ext(path)) {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		paths = append(paths, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 5 {
		t.Fatalf("found only %d files with %v: the walk is wrong", len(paths), extensions)
	}
	return paths
}
