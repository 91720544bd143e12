package explore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// seedsOf are the seeds that a shard runs, with a variation between any two if varied is true.
func seedsOf(t *testing.T, o Options, varied bool) (seeds []uint64) {
	e := &explorer{Options: o, report: Report{States: map[string]int{}}, done: map[int]bool{}}
	for {
		if varied {
			e.varied = append(e.varied, Job{Seed: 1 << 60})
		}
		j, ok := e.nextJob(t.Context())
		if !ok {
			return seeds
		}
		if j.number > 0 {
			seeds = append(seeds, j.Seed)
		}
	}
}

// TestShardsShareNoSeed: the shards of an exploration run every seed once, also when they are continued.
func TestShardsShareNoSeed(t *testing.T) {
	const total = 24
	want := seedsOf(t, Options{First: 7, Seeds: total}, false)
	for _, of := range []int{1, 2, 3, 4} {
		var all, varied []uint64
		for i := range of {
			o := Options{First: 7 + uint64(i), Step: uint64(of), Seeds: total / of / 2}
			all = append(all, seedsOf(t, o, false)...)
			varied = append(varied, seedsOf(t, o, true)...)
			o.Shard.Covered = o.Seeds
			all = append(all, seedsOf(t, o, false)...)
		}
		slices.Sort(all)
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("%d shards (-one +together):\n%s", of, diff)
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(varied)))); n != len(varied) || n == 0 {
			t.Errorf("%d shards with variations: %d of %d seeds differ", of, n, len(varied))
		}
	}
}

// TestCovered: a seed counts when all before it have ended, in whatever order they end.
func TestCovered(t *testing.T) {
	e := &explorer{report: Report{States: map[string]int{}, Covered: 2}, done: map[int]bool{}}
	for _, row := range []struct{ number, want int }{{4, 2}, {0, 2}, {6, 2}, {3, 4}, {5, 6}} {
		e.count(Job{number: row.number}, Result{Verdict: "safe"})
		if e.report.Covered != row.want {
			t.Errorf("after number %d: %d seeds are covered, want %d", row.number, e.report.Covered, row.want)
		}
	}
}

// TestCorpus: writing again changes nothing, a lost shard loses only its own seeds, and partial writes of a lost
// machine are left out.
func TestCorpus(t *testing.T) {
	dir := t.TempDir()
	open := func(scenario string) *Corpus {
		c, err := OpenCorpus(dir, scenario)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a, b := open("name: a"), open("name: b")
	records := []ShardRecord{{First: 1, Index: 1, Of: 3, Covered: 10}, {First: 1, Index: 3, Of: 3, Covered: 5}}
	for range 2 {
		for _, r := range records {
			must(a.Record(r))
		}
		must(a.AddState("two holders at once", Job{Seed: 3}))
		must(a.AddState("two holders at once", Job{Seed: 9}))
	}
	must(a.Record(ShardRecord{First: 2, Index: 1, Of: 3, Covered: 99}))
	must(os.WriteFile(filepath.Join(dir, shortHash("name: a"), "shards", "1-2-of-3.json"), []byte(`{"first_se`), 0o644))
	got, err := a.Shards(1, 3)
	must(err)
	if diff := cmp.Diff(records, got, cmpopts.EquateEmpty()); diff != "" || Covered(got) != 15 {
		t.Errorf("%d seeds (-want +got):\n%s", Covered(got), diff)
	}
	if states, err := a.States(); err != nil || !slices.Equal(states, []string{"two holders at once"}) {
		t.Errorf("states: %q, %v", states, err)
	}
	if states, err := b.States(); err != nil || states != nil {
		t.Errorf("another scenario has %q, %v", states, err)
	}
}

// TestConcurrentWriters: a reader never sees a part of a record, however many write it, and no temporary file is left.
func TestConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	c, err := OpenCorpus(dir, "name: a")
	if err != nil {
		t.Fatal(err)
	}
	r := ShardRecord{First: 1, Index: 1, Of: 1, Kinds: map[string]int{strings.Repeat("kind ", 2000): 1}}
	if err := c.Record(r); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 50 {
				if err := c.Record(r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		if got, err := c.Shards(1, 1); err != nil || !cmp.Equal(got, []ShardRecord{r}) {
			t.Fatalf("%d records: %v", len(got), err)
		}
	}
	writers.Wait()
	if files, err := os.ReadDir(filepath.Join(c.dir, shardsFolder)); err != nil || len(files) != 1 {
		t.Errorf("files: %v, %v", files, err)
	}
}
