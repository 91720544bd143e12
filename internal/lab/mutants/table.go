// Package mutants measures the detection power of the harness: it plants bugs in package lock and the packages below
// it, one at a time, explores scenarios with each, and counts how many are convicted.
//
// Read [Row] first, then [Build], which makes one program of all of them, and [Measurer.Measure].
package mutants

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/goccy/go-yaml"
)

// Row is one change to package lock or to a package below it: a planted bug, or a harmless change that must not be
// convicted.
type Row struct {
	Name     string `yaml:"name"`
	Kind     string `yaml:"-"`        // of lock: the name of the file that has the row
	File     string `yaml:"file"`     // in directory lock, such as etcd/claim.go
	Old      string `yaml:"old"`      // occurs exactly once in File
	New      string `yaml:"new"`      // takes its place
	Harm     string `yaml:"harm"`     // how it harms a user
	Harmless string `yaml:"harmless"` // instead: why it harms nobody
	// Equivalent is instead of that: why the change does not do the harm that it looks like. Such a row is explored, and
	// counts neither as planted nor as harmless.
	Equivalent string   `yaml:"equivalent"`
	Source     string   `yaml:"source"`   // a library that had this bug
	First      []string `yaml:"first"`    // scenarios to explore before the others of the kind, with more seeds
	Survives   string   `yaml:"survives"` // why it is not convicted, if that is known
}

//go:embed rows
var rowFiles embed.FS

// Kinds of lock that are packages below lock.
const (
	zooKeeper = "zookeeper"
	etcd      = "etcd"
)

// OnServers reports whether the row can only be run on real servers.
func (r Row) OnServers() bool { return r.Kind == etcd }

// kinds are the kinds of lock, in the order in which tables list them.
func kinds() []string {
	return []string{
		"mutex", "non-reentrant", "fencing", "quorum", "fair", "readers-writer", "semaphore", "multi", "latch",
		zooKeeper, etcd,
	}
}

// Rows is the table, by kind.
func Rows() ([]Row, error) {
	var all []Row
	for _, kind := range kinds() {
		text, err := fs.ReadFile(rowFiles, path.Join("rows", kind+".yaml"))
		if err != nil {
			return nil, fmt.Errorf("reading planted bugs: %w", err)
		}
		var rows []Row
		if err := yaml.UnmarshalWithOptions(text, &rows, yaml.DisallowUnknownField()); err != nil {
			return nil, fmt.Errorf("reading planted bugs of %s: %w", kind, err)
		}
		for i := range rows {
			rows[i].Kind = kind
		}
		all = append(all, rows...)
	}
	return all, nil
}

// Lua reports whether the row changes a script.
func (r Row) Lua() bool { return strings.HasSuffix(r.File, ".lua") }

// Apply makes the change.
func (r Row) Apply(source string) (string, error) {
	if n := strings.Count(source, r.Old); n != 1 {
		return "", fmt.Errorf("%s: its old text occurs %d times in lock/%s, not once", r.Name, n, r.File)
	}
	return strings.Replace(source, r.Old, r.New, 1), nil
}
