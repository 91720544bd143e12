package explore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/scenarios"
)

// Corpus is a folder that the shards of an exploration share: which states were reached, and how far each shard has
// come. Each file is written by one shard, or means the same from any shard, so that shards need no lock, a repetition
// changes nothing, and a lost shard loses only its own seeds. Its methods may be called concurrently.
type Corpus struct {
	dir string
}

// ShardRecord is how far one shard has come.
type ShardRecord struct {
	First   uint64         `json:"first_seed"` // of the whole exploration
	Index   int            `json:"shard"`      // from 1
	Of      int            `json:"of"`
	Covered int            `json:"covered"` // seeds FIRST+INDEX-1, that plus OF, …: all of the first so many were run
	Runs    int            `json:"runs"`
	Unsafe  int            `json:"unsafe"`
	Kinds   map[string]int `json:"kinds,omitempty"` // runs that show each kind of violation
	Updated time.Time      `json:"updated"`
}

// stateRecord is the first run that is known to reach a state.
type stateRecord struct {
	State     string              `json:"state"`
	Seed      uint64              `json:"seed"`
	Variation scenarios.Variation `json:"variation,omitempty"`
}

// OpenCorpus opens the corpus of a scenario in a folder, which it creates if it does not exist. Another text of the
// scenario has another corpus.
func OpenCorpus(folder, scenario string) (*Corpus, error) {
	c := &Corpus{dir: filepath.Join(folder, shortHash(scenario))}
	for _, name := range []string{statesFolder, shardsFolder} {
		if err := os.MkdirAll(filepath.Join(c.dir, name), 0o777); err != nil {
			return nil, fmt.Errorf("opening the corpus: %w", err)
		}
	}
	return c, nil
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Folders of a corpus.
const (
	statesFolder = "states"
	shardsFolder = "shards"
)

// AddState records a run that reaches a state, unless one is known.
func (c *Corpus) AddState(state string, j Job) error {
	_, err := os.Stat(filepath.Join(c.dir, statesFolder, stateFile(state)))
	if errors.Is(err, fs.ErrNotExist) {
		return c.write(statesFolder, stateFile(state), stateRecord{state, j.Seed, j.Variation})
	}
	return err
}

// States are the states that some shard has reached, sorted.
func (c *Corpus) States() (states []string, err error) { return c.newStates(nil) }

// newStates are the states of the corpus that are not known; the files of known ones are not read again.
func (c *Corpus) newStates(known map[string]bool) (states []string, err error) {
	skip := map[string]bool{}
	for state := range known { // in any order: it makes a set
		skip[stateFile(state)] = true
	}
	err = each(c, statesFolder, skip, func(r stateRecord) { states = append(states, r.State) })
	slices.Sort(states)
	return states, err
}

func stateFile(state string) string { return shortHash(state) + ".json" }

// Record replaces the record of a shard.
func (c *Corpus) Record(r ShardRecord) error {
	return c.write(shardsFolder, fmt.Sprintf("%d-%d-of-%d.json", r.First, r.Index, r.Of), r)
}

// Shards are the records of all shards of the exploration that begins with seed first and has so many shards.
func (c *Corpus) Shards(first uint64, of int) (all []ShardRecord, err error) {
	err = each(c, shardsFolder, nil, func(r ShardRecord) {
		if r.First == first && r.Of == of {
			all = append(all, r)
		}
	})
	slices.SortFunc(all, func(a, b ShardRecord) int { return a.Index - b.Index })
	return all, err
}

// Covered is how many seeds the shards of an exploration have run together; shards share none.
func Covered(shards []ShardRecord) (seeds int) {
	for _, r := range shards {
		seeds += r.Covered
	}
	return seeds
}

// write replaces a file at once: a reader sees the old text or the new one, also while another shard writes the file.
func (c *Corpus) write(folder, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Join(c.dir, folder), ".new-*") // on the same file system, for the rename
	if err != nil {
		return fmt.Errorf("writing to the corpus: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Close()) // shards of other users read it
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(c.dir, folder, name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("writing %s to the corpus: %w", name, err)
	}
	return nil
}

// each reads every record in a folder except skip. A file that is not JSON, such as the part that a file system kept of
// the last write of a lost machine, is left out: its shard writes it again.
func each[T any](c *Corpus, folder string, skip map[string]bool, add func(T)) error {
	entries, err := os.ReadDir(filepath.Join(c.dir, folder))
	if err != nil {
		return fmt.Errorf("listing the corpus: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if filepath.Ext(name) != ".json" || skip[name] {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.dir, folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the corpus: %w", err)
		}
		var v T
		if json.Unmarshal(text, &v) == nil {
			add(v)
		}
	}
	return nil
}
