package scenarios

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/lockchaos/lockchaos/internal/format"
)

//go:embed stories probes
var files embed.FS

// Kind is the kind of a named scenario.
type Kind string

// The kinds of named scenarios.
const (
	Story Kind = "story" // something that happens in production, in a file of its own
	Probe Kind = "probe" // a row of a family that exists to find bugs of locks
)

// Entry is a named scenario and its place in the catalog.
type Entry struct {
	Name  string
	Kind  Kind
	Group string // the chapter of a story, the family of a probe
}

// Chapter is a folder of stories.
type Chapter struct {
	Name  string
	Title string
}

// Chapters are the chapters in the order of the catalog.
func Chapters() []Chapter {
	return []Chapter{
		{"failover", "Failover: Sentinel, replicas, and addresses that move"},
		{"redlock", "RedLock: a majority of independent masters"},
		{"cluster", "Redis Cluster"},
		{"clients", "Clients that stall or die"},
		{"leaders", "Leader election"},
		{"clocks", "Clocks"},
		{"disks", "Disks, restarts and power failures"},
		{"servers", "Data that disappears, and servers at their limits"},
		{"network", "Lost, late and repeated messages"},
		{"queues", "Waiting and wake-up"},
		{"sharing", "Readers, permits, latches and shared layouts"},
		{"classics", "Locks as many articles print them"},
		{"load", "Everyday load, and random faults"},
		{"zookeeper", "ZooKeeper"},
		{"etcd", "etcd"},
		{"sql", "PostgreSQL and MySQL"},
	}
}

// Family is a file of probes: a base, and how each row differs from it.
type Family struct {
	Name  string         `yaml:"-"`
	About string         `yaml:"about"`
	Base  map[string]any `yaml:"base"`
	Rows  []Row          `yaml:"rows"`
}

// Row is a probe of a family.
type Row struct {
	Name    string         `yaml:"name"`
	Summary string         `yaml:"summary"`
	Source  string         `yaml:"source,omitempty"`
	About   string         `yaml:"about"`
	With    map[string]any `yaml:"with,omitempty"` // replaces keys of the base; sections are merged key by key
}

// Families are the families of probes by name. The error is one of the embedded files; tests hold that there is none.
func Families() ([]Family, error) { return families() }

//nolint:gochecknoglobals // read once, never changed
var families = sync.OnceValues(func() (all []Family, err error) {
	paths, _ := fs.Glob(files, "probes/*.yaml") // the pattern is valid
	for _, name := range paths {
		text, err := files.ReadFile(name)
		if err != nil {
			return all, err
		}
		f := Family{Name: base(name)}
		if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, f)
	}
	return all, nil
})

// text is the row as a scenario.
func (f Family) text(r Row) ([]byte, error) {
	tree := merged(f.Base, r.With)
	for key, value := range map[string]string{
		"name": r.Name, "summary": r.Summary, "source": r.Source, "about": r.About,
	} {
		if value != "" {
			tree[key] = value
		}
	}
	return yaml.Marshal(tree)
}

// merged is base with the values of with in it. Sections are merged, everything else is replaced.
func merged(base, with map[string]any) map[string]any {
	all := map[string]any{}
	for key, value := range base {
		all[key] = value
	}
	for key, value := range with {
		section, ok := value.(map[string]any)
		if old, both := all[key].(map[string]any); ok && both {
			value = merged(old, section)
		}
		all[key] = value
	}
	return all
}

// Stories are the stories, chapter by chapter.
func Stories() (all []Entry) {
	for _, c := range Chapters() {
		paths, _ := fs.Glob(files, "stories/"+c.Name+"/*.yaml") // the pattern is valid
		names := format.Texts(paths, base)
		slices.Sort(names)
		for _, name := range names {
			all = append(all, Entry{name, Story, c.Name})
		}
	}
	return all
}

// base is the name of a file without its folder and extension.
func base(name string) string { return strings.TrimSuffix(path.Base(name), path.Ext(name)) }

// Entries are all named scenarios: the stories, then the probes.
func Entries() []Entry {
	all := Stories()
	list, _ := families()
	for _, f := range list {
		for _, r := range f.Rows {
			all = append(all, Entry{r.Name, Probe, f.Name})
		}
	}
	return all
}

// Names are the names of the named scenarios, in the order of Entries.
func Names() []string {
	return format.Texts(Entries(), func(e Entry) string { return e.Name })
}

// Catalog is every named scenario, in the order of Entries.
func Catalog() ([]Scenario, error) {
	var list []Scenario
	for _, name := range Names() {
		s, err := Load(name)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// named is the text of a named scenario; nil: there is none.
func named(name string) ([]byte, error) {
	all := Stories() // to read the families takes longer
	if i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name }); i >= 0 {
		return files.ReadFile(path.Join("stories", all[i].Group, name+".yaml"))
	}
	list, err := families()
	for _, f := range list {
		if i := slices.IndexFunc(f.Rows, func(r Row) bool { return r.Name == name }); i >= 0 {
			return f.text(f.Rows[i])
		}
	}
	return nil, err
}
