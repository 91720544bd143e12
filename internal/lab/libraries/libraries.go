// Package libraries records the results of `chaos test` with the locks of other libraries, and writes the page that
// shows them.
package libraries

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Load reads stored results; none if there is no such file.
func Load(file string) (all []evaluation.Report, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// Read adds the results of the tests whose directories are in dir, in place of older ones of the same locks. Of each,
// the parts remain that the page shows.
func Read(dir string, all []evaluation.Report) ([]evaluation.Report, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", evaluation.JSONFile))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		var r evaluation.Report
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		r.Client, r.Held, r.NotTested, r.Notes = r.WrongClient(), nil, nil, nil
		for i := range r.Findings {
			f := &r.Findings[i]
			if f.File != "" { // not in the repository
				f.Repeat = fmt.Sprintf("chaos test --lock %s --seed %d", r.Lock, r.Seed)
			}
			f.Advice, f.Steps, f.Run, f.File = nil, nil, "", ""
		}
		all = slices.DeleteFunc(all, func(old evaluation.Report) bool { return old.Lock == r.Lock })
		all = append(all, r)
	}
	return all, nil
}

// Save writes results, sorted.
func Save(file string, all []evaluation.Report) error {
	slices.SortFunc(all, func(a, b evaluation.Report) int { return cmp.Compare(a.Lock, b.Lock) })
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

//go:embed head.md
var head string

//go:embed causes.tsv
var causes string

// Why is the cause of a finding in its library: the first line of causes.tsv (lock, property, cause, text) that is
// about it; a star matches the kinds of a library, or any cause. "": none is known.
func Why(lock string, f evaluation.Finding) string {
	for line := range strings.Lines(causes) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) != 4 || fields[1] != string(f.Property) || fields[2] != "*" && fields[2] != f.Cause {
			continue
		}
		if is, err := path.Match(fields[0], lock); err == nil && is {
			return fields[3]
		}
	}
	return ""
}

// Picture is the file, in the repository, of the picture of a run that shows a finding. Not every finding has one.
func Picture(lock string, f evaluation.Finding) string {
	return "docs/images/findings/" + strings.ReplaceAll(lock, "/", "-") + "-" + f.ID() + ".svg"
}

// Document is docs/contributors/verdicts.md.
func Document(all []evaluation.Report) (string, error) {
	var b, own strings.Builder
	b.WriteString(head)
	catalog, err := adapters.Catalog()
	if err != nil {
		return "", err
	}
	for _, a := range catalog {
		fmt.Fprintf(&b, "\n## %s %s (%s)\n\n%s", a.Library, a.Version, a.Language, TableHead)
		own.Reset()
		for _, k := range a.Kinds {
			lock := a.Library + "/" + k.Name
			i := slices.IndexFunc(all, func(r evaluation.Report) bool { return r.Lock == lock })
			if i < 0 {
				fmt.Fprintf(&b, "| %s | not tested |  |  |  |  |\n", lock)
				continue
			}
			b.WriteString(Row(all[i]))
			for _, f := range all[i].Own() {
				fmt.Fprintf(&own, "| %s | %s | %s | %s | %s: %s | %s |\n", lock, f.Property, f.ID(), f.Frequency(), f.Scenario,
					f.Sentence, Why(lock, f))
			}
		}
		if own.Len() > 0 {
			b.WriteString("\n| lock | violated | finding | runs | example | cause in the library |\n" +
				"| --- | --- | --- | --- | --- | --- |\n" + own.String())
		}
	}
	return b.String(), nil
}

// TableHead begins a table of locks.
const TableHead = "| lock | runs | safe | unsafe | findings of this lock | of any such lock |\n" +
	"| --- | --- | --- | --- | --- | --- |\n"

// Row is the line of a lock in the table that begins with TableHead.
func Row(r evaluation.Report) string {
	own := names(r.Own())
	for _, f := range r.Client {
		own = append(own, "client: "+f.Check)
	}
	if len(own) == 0 && r.TooLittle() {
		own = append(own, fmt.Sprintf("too little was tested: %s decided, %d not started",
			format.Count(r.Runs.Safe+r.Runs.Unsafe, "run"), r.Runs.Failed))
	}
	return fmt.Sprintf("| %s | %s, %s generated | %d | %d | %s | %s |\n", r.Lock, format.Number(r.Runs.All),
		format.Number(r.Runs.Generated), r.Runs.Safe, r.Runs.Unsafe, strings.Join(own, ", "),
		strings.Join(names(r.Common()), ", "))
}

// names are the causes of findings, or the properties where the cause is not known.
func names(findings []evaluation.Finding) []string {
	all := format.Texts(findings, evaluation.Finding.ID)
	slices.Sort(all)
	return slices.Compact(all)
}
