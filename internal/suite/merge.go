package suite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"
)

// key is what makes two rows the same one.
type key struct {
	scenario, backend string
	number            int
}

// Merge joins the suites in dirs, and copies the runs that they kept to out. A shard that is given twice counts
// once. It is an error if two suites are not parts of one, or disagree on a row.
func Merge(dirs []string, out string) (Suite, error) {
	if len(dirs) == 0 {
		return Suite{}, errors.New("merging suites: name at least one directory")
	}
	var all Suite
	seen := map[key]Row{}
	for i, dir := range dirs {
		s, err := Read(dir)
		if err != nil {
			return all, err
		}
		if i == 0 {
			all = s
			all.Rows, all.Shards, all.Notes = nil, nil, nil
		}
		if err := all.join(s, seen); err != nil {
			return all, fmt.Errorf("merging the suite in %s: %w", dir, err)
		}
		if err := copyRuns(dir, out, s.Rows); err != nil {
			return all, fmt.Errorf("merging the suite in %s: %w", dir, err)
		}
	}
	slices.SortFunc(all.Shards, func(a, b Shard) int { return cmp.Compare(a.Index, b.Index) })
	all.sortRows()
	for _, missing := range all.missingShards() {
		all.Notes = append(all.Notes, fmt.Sprintf("shard %s is missing", missing))
	}
	return all, nil
}

// join adds a suite to s.
func (s *Suite) join(part Suite, seen map[key]Row) error {
	of := func(s Suite) [5]any { return [5]any{s.Backend, s.Filter, s.Lock, s.Seed, s.Repeat} }
	if of(*s) != of(part) {
		return fmt.Errorf("it is part of another suite: backend, filter, lock, seed and repeat are %v, not %v",
			of(part), of(*s))
	}
	for _, shard := range part.Shards {
		if len(s.Shards) > 0 && s.Shards[0].Of != shard.Of {
			return fmt.Errorf("it is shard %s of a suite with %d shards", shard, s.Shards[0].Of)
		}
		if !slices.Contains(s.Shards, shard) {
			s.Shards = append(s.Shards, shard)
		}
	}
	for _, note := range part.Notes {
		if !slices.Contains(s.Notes, note) {
			s.Notes = append(s.Notes, note)
		}
	}
	for _, r := range part.Rows {
		k := key{r.Scenario, r.Backend, r.Number}
		if was, ok := seen[k]; !ok {
			s.Rows = append(s.Rows, r)
		} else if !reflect.DeepEqual(was, r) {
			return fmt.Errorf("%s (number %d, backend %s) is %s here and %s in another suite",
				r.Scenario, r.Number, r.Backend, r.Outcome, was.Outcome)
		}
		seen[k] = r
	}
	s.Started = earlier(s.Started, part.Started)
	if part.Finished.After(s.Finished) {
		s.Finished = part.Finished
	}
	return nil
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
			return fmt.Errorf("the run of %s is outside of the suite: %q", r.Scenario, r.Run)
		}
		target := filepath.Join(to, filepath.FromSlash(r.Run))
		if _, err := os.Stat(target); err == nil {
			continue
		}
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("copying the run of %s: %w", r.Scenario, err)
		}
		if err := os.CopyFS(target, os.DirFS(filepath.Join(from, filepath.FromSlash(r.Run)))); err != nil {
			return fmt.Errorf("copying the run of %s: %w", r.Scenario, err)
		}
	}
	return nil
}
