package suite

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

// key identifies a row.
type key struct {
	scenario, backend string
	number            int
}

func keyOf(r Row) key { return key{r.Scenario, r.Backend, r.Number} }

// part is one directory of a merge.
type part struct {
	dir string
	Suite
	total int // rows of a suite that was killed; 0: it ended
}

// readPart reads the suite in dir, or as much of it as there is if it was killed.
func readPart(dir string) (part, error) {
	s, err := Read(dir)
	p := part{dir: dir, Suite: s}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		progress, perr := ReadProgress(os.DirFS(dir))
		switch {
		case errors.Is(perr, fs.ErrNotExist) || perr == nil && progress.Suite.Started.Equal(s.Started):
		case perr != nil:
			err = fmt.Errorf("%s: %w", dir, perr)
		case progress.Suite.Format != Format:
			err = formatError(dir, progress.Suite.Format)
		default: // suite.json, if there is one, is of an earlier suite
			p.Suite, p.total, err = progress.Suite, max(progress.Total, 1), nil
			p.Finished = progress.Updated
		}
	}
	if err == nil && (p.of() == 0 || p.total > 0 && len(p.Shards) == 0) {
		err = fmt.Errorf("reading the suite in %s: it lists no shards, so chaos suite did not write it", dir)
	}
	if err == nil && p.total > 0 {
		for i := range p.Rows {
			p.Rows[i].Partial, p.Rows[i].Begun = p.Shards[0], p.Started
		}
		p.Notes = append(p.Notes, fmt.Sprintf("shard %s did not end: %d of %d rows are in %s", p.Shards[0], len(p.Rows),
			p.total, p.dir))
		p.Missing, p.Shards = p.Shards, nil
	}
	return p, err
}

// of is the number of shards of the whole suite; 0: it is not known.
func (p part) of() int {
	for _, s := range slices.Concat(p.Shards, p.Missing) {
		return s.Of
	}
	return 0
}

// Merge joins the suites in dirs, and copies the runs that they kept to out. A suite may itself be a merged one: in
// which order and in how many steps shards are joined makes no difference. A shard that is given twice counts once. A
// shard that was killed is missing, but its rows so far count until it is given as a whole; if it was killed more than
// once, the latest of each row. It is an error if two suites are not parts of one, or disagree on a row.
func Merge(dirs []string, out string) (Suite, error) {
	if len(dirs) == 0 {
		return Suite{}, errors.New("merging suites: name at least one directory")
	}
	var parts []part
	var complete []Shard
	for _, dir := range dirs {
		p, err := readPart(dir)
		if err != nil {
			return Suite{}, err
		}
		parts, complete = append(parts, p), append(complete, p.Shards...)
	}
	all, of := parts[0].Suite, parts[0].of()
	all.Rows, all.Shards, all.Missing, all.Notes = nil, nil, nil, nil
	seen := map[key]origin{}
	for _, p := range parts {
		p.supersede(complete)
		if err := all.join(p, of, seen); err != nil {
			return all, fmt.Errorf("merging the suite in %s: %w", p.dir, err)
		}
	}
	for _, r := range all.Rows {
		dir := seen[rowOf(r)].dir
		if err := copyRuns(dir, out, []Row{r}); err != nil {
			return all, fmt.Errorf("merging the suite in %s: %w", dir, err)
		}
	}
	slices.SortFunc(all.Shards, func(a, b Shard) int { return cmp.Compare(a.Index, b.Index) })
	all.sortRows()
	for i := range of {
		if shard := (Shard{i + 1, of}); !slices.Contains(all.Shards, shard) {
			all.Missing = append(all.Missing, shard)
			all.Notes = append(all.Notes, shard.missing())
		}
	}
	slices.Sort(all.Notes)
	return all, nil
}

// supersede drops the rows of shards that did not end and are given as a whole elsewhere, and the notes about them.
func (p *part) supersede(complete []Shard) {
	p.Rows = slices.DeleteFunc(p.Rows, func(r Row) bool { return slices.Contains(complete, r.Partial) })
	p.Notes = slices.DeleteFunc(p.Notes, func(note string) bool {
		return slices.ContainsFunc(p.Missing, func(s Shard) bool {
			return note == s.missing() || slices.Contains(complete, s) && strings.HasPrefix(note, "shard "+s.String()+" ")
		})
	})
}

// rowOf is the key of a row in one suite. Its backend is left out: a row that did not run has none.
func rowOf(r Row) key { return key{scenario: r.Scenario, number: r.Number} }

// origin is where a row of a merged suite is from.
type origin struct {
	dir string // of its suite
	row int    // index in the merged suite
}

// compareAttempts orders rows with the same scenario and number. The greatest one counts: a row of a shard which ended,
// else of the latest suite. The last criterion has no meaning; it makes the order of a merge irrelevant.
func compareAttempts(a, b Row) int {
	ended := func(r Row) int {
		if r.Partial == (Shard{}) {
			return 1
		}
		return 0
	}
	text := func(r Row) string {
		b, _ := json.Marshal(r) // no value of a row fails
		return string(b)
	}
	return cmp.Or(cmp.Compare(ended(a), ended(b)), a.Begun.Compare(b.Begun), cmp.Compare(text(a), text(b)))
}

// join adds a part to s.
func (s *Suite) join(p part, of int, seen map[key]origin) error {
	settings := func(s Suite) [6]any { return [6]any{s.Backend, s.Filter, s.Lock, s.Libraries, s.Seed, s.Repeat} }
	if settings(*s) != settings(p.Suite) {
		return fmt.Errorf("it belongs to another suite: its backend, filter, lock, libraries, seed and repeat are %v, not %v",
			settings(p.Suite), settings(*s))
	}
	for _, shard := range slices.Concat(p.Shards, p.Missing) {
		if shard.Of != of {
			return fmt.Errorf("it is shard %s, but the suite has %d", shard, of)
		}
	}
	s.Shards, s.Notes = addNew(s.Shards, p.Shards), addNew(s.Notes, p.Notes)
	for _, r := range p.Rows {
		k := rowOf(r)
		from, ok := seen[k]
		if !ok {
			seen[k] = origin{p.dir, len(s.Rows)}
			s.Rows = append(s.Rows, r)
			continue
		}
		was := s.Rows[from.row]
		if r.Partial == (Shard{}) && was.Partial == (Shard{}) && !reflect.DeepEqual(was, r) {
			return fmt.Errorf("%s (number %d, backend %s) was run twice: %s here and %s in another suite; merge one of them",
				r.Scenario, r.Number, r.Backend, r.Outcome, was.Outcome)
		}
		if compareAttempts(r, was) > 0 {
			s.Rows[from.row], seen[k] = r, origin{p.dir, from.row}
		}
	}
	s.Started = earlier(s.Started, p.Started)
	if p.Finished.After(s.Finished) {
		s.Finished = p.Finished
	}
	return nil
}

// addNew appends the entries of more that all does not have.
func addNew[T comparable](all, more []T) []T {
	for _, x := range more {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (s *Suite) sortRows() {
	slices.SortStableFunc(s.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Backend, b.Backend))
	})
}

// copyRuns copies the runs of rows from one suite's directory to another's, unless they are there.
func copyRuns(from, to string, rows []Row) error {
	for _, r := range rows {
		if r.Run == "" {
			continue
		}
		if !filepath.IsLocal(r.Run) {
			return fmt.Errorf("the run directory of %s is outside of the suite: %q", r.Scenario, r.Run)
		}
		target := filepath.Join(to, filepath.FromSlash(r.Run))
		if _, err := os.Stat(target); err == nil {
			continue
		}
		next := target + ".new" // a copy that was not completed is made again
		err := os.RemoveAll(next)
		if err == nil {
			err = os.MkdirAll(next, 0o755)
		}
		if err == nil {
			err = os.CopyFS(next, os.DirFS(filepath.Join(from, filepath.FromSlash(r.Run))))
		}
		if err == nil {
			err = os.Rename(next, target)
		}
		if err != nil {
			return fmt.Errorf("copying the run of %s: %w", r.Scenario, errors.Join(err, os.RemoveAll(next)))
		}
	}
	return nil
}
