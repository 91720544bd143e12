// Package adapters has clients of the protocol (docs/reference/protocol.md) for lock libraries that people use, and
// builds them from pinned releases of the libraries. A directory for each library holds adapter.yaml, one source file,
// the pins, expect.tsv and a README; no code of the libraries is part of this repository. Its Go API is not a promise.
package adapters

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/promise"

	"github.com/goccy/go-yaml"

	"github.com/lockchaos/lockchaos/client"
)

//go:embed */*
var files embed.FS

// manifestFile describes an adapter.
const manifestFile = "adapter.yaml"

// InitTimeout is the override of a scenario that gives the client of a library time to start.
const InitTimeout = "init_timeout=60s"

// Adapter is a library whose locks can be tested.
type Adapter struct {
	Library  string `yaml:"-" json:"library"` // also the name of its directory
	Version  string `yaml:"version" json:"version"`
	Language string `yaml:"language" json:"language"`
	Homepage string `yaml:"homepage" json:"homepage"`
	Kinds    []Kind `yaml:"kinds" json:"kinds"`

	Needs  []string   `yaml:"needs" json:"needs"`   // programs that building and running it needs
	Shared []string   `yaml:"shared" json:"shared"` // files of directory protocol that it is built with
	Build  [][]string `yaml:"build" json:"build"`   // commands, run in the build directory; {dir} is its path
	Run    []string   `yaml:"run" json:"run"`       // the command of a client; {dir}, and {kind} is the name of the kind
}

// Kind is one lock of a library.
type Kind struct {
	Name       string      `yaml:"name" json:"name"`
	Doc        string      `yaml:"doc" json:"doc"`
	Topologies []string    `yaml:"topologies" json:"topologies"`
	Can        promise.Set `yaml:"can" json:"can,omitempty"` // promises in its client's reply to init
}

// catalog is read once: the files are part of the program.
//
//nolint:gochecknoglobals // computed once, never changed
var catalog = sync.OnceValues(func() ([]Adapter, error) {
	found, err := fs.Glob(files, "*/"+manifestFile)
	if err != nil {
		return nil, err
	}
	var all []Adapter
	for _, file := range found {
		text, err := files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		a := Adapter{Library: path.Dir(file)}
		if err := yaml.UnmarshalWithOptions(text, &a, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("adapters/%s: %w", file, err)
		}
		all = append(all, a)
	}
	return all, nil
})

// Catalog returns every adapter, by name. The error is a defect of this package: a file that cannot be read.
func Catalog() ([]Adapter, error) {
	all, err := catalog()
	return slices.Clone(all), err
}

// Names are the locks of all adapters, as LIBRARY/KIND.
func Names() []string {
	var names []string
	all, _ := catalog()
	for _, a := range all {
		for _, k := range a.Kinds {
			names = append(names, a.Library+"/"+k.Name)
		}
	}
	return names
}

// Find returns the adapter of a library.
func Find(library string) (Adapter, error) {
	all, err := catalog()
	if err != nil {
		return Adapter{}, err
	}
	i := slices.IndexFunc(all, func(a Adapter) bool { return a.Library == library })
	if i < 0 {
		return Adapter{}, fmt.Errorf("unknown library %q", library)
	}
	return all[i], nil
}

// errUnknown: no lock has that name.
var errUnknown = errors.New("unknown lock")

// cutName splits the name of an adapter's lock; false: the lock is another's.
func cutName(lock string) (library, kind string, isAdapter bool) {
	if strings.HasPrefix(lock, client.ExecPrefix) {
		return "", "", false
	}
	return strings.Cut(lock, "/")
}

// Lookup returns the lock of that name: one of the catalog of package client, a program ("exec:COMMAND"), or an
// adapter's (LIBRARY/KIND), which may not have been built yet, see [Adapter.Ready].
func Lookup(name string) (client.Spec, error) {
	library, kind, isAdapter := cutName(name)
	if !isAdapter {
		return locks.Lookup(name)
	}
	a, err := Find(library)
	if err != nil {
		return client.Spec{}, fmt.Errorf("%w %q: %w", errUnknown, name, err)
	}
	i := slices.IndexFunc(a.Kinds, func(k Kind) bool { return k.Name == kind })
	if i < 0 {
		var names []string
		for _, k := range a.Kinds {
			names = append(names, k.Name)
		}
		return client.Spec{}, fmt.Errorf("%w %q: %s has %s", errUnknown, name, library, strings.Join(names, ", "))
	}
	k := a.Kinds[i]
	dir, err := a.Dir()
	if err != nil {
		return client.Spec{}, err
	}
	return client.Spec{
		Name: name, Doc: k.Doc, Source: a.Homepage, Topologies: k.Topologies, Can: k.Can,
		Command: expand(a.Run, dir, k.Name),
	}, nil
}

// expand replaces the placeholders in the words of a command.
func expand(words []string, dir, kind string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = strings.NewReplacer("{dir}", dir, "{kind}", kind).Replace(word)
	}
	return out
}
