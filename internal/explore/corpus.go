package explore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file:///DIR; a build with another import has s3:// or gs://
	"gocloud.dev/gcerrors"

	"github.com/lockchaos/lockchaos/scenarios"
)

// Corpus is what the shards of an exploration share: which states were reached, and how far each shard has come. Each
// object is written by one shard, or means the same from any shard, so that shards need no lock, a repetition
// changes nothing, and a lost shard loses only its own seeds. Its methods may be called concurrently.
type Corpus struct {
	bucket *blob.Bucket
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

// OpenCorpus opens the corpus of a scenario in a bucket, such as file:///mnt/shared/corpus. Another text of the
// scenario has another corpus. The caller closes it.
func OpenCorpus(ctx context.Context, url, scenario string) (*Corpus, error) {
	bucket, err := blob.OpenBucket(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("opening the corpus: %w", err)
	}
	return &Corpus{bucket: blob.PrefixedBucket(bucket, shortHash(scenario)+"/")}, nil
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Close closes the bucket.
func (c *Corpus) Close() error { return c.bucket.Close() }

// Folders of a corpus.
const (
	statesFolder = "states/"
	shardsFolder = "shards/"
)

// AddState records a run that reaches a state, unless one is known.
func (c *Corpus) AddState(ctx context.Context, state string, j Job) error {
	key := stateKey(state)
	known, err := c.bucket.Exists(ctx, key)
	if err != nil || known {
		return err
	}
	return c.write(ctx, key, stateRecord{state, j.Seed, j.Variation})
}

// States are the states that some shard has reached, sorted.
func (c *Corpus) States(ctx context.Context) (states []string, err error) {
	return c.newStates(ctx, nil)
}

// newStates are the states of the corpus that are not known; the objects of known ones are not read again.
func (c *Corpus) newStates(ctx context.Context, known map[string]bool) (states []string, err error) {
	skip := map[string]bool{}
	for state := range known { // in any order: it makes a set
		skip[stateKey(state)] = true
	}
	err = each(ctx, c, statesFolder, skip, func(r stateRecord) { states = append(states, r.State) })
	slices.Sort(states)
	return states, err
}

func stateKey(state string) string { return statesFolder + shortHash(state) + ".json" }

// Record replaces the record of a shard.
func (c *Corpus) Record(ctx context.Context, r ShardRecord) error {
	return c.write(ctx, shardsFolder+fmt.Sprintf("%d-%d-of-%d.json", r.First, r.Index, r.Of), r)
}

// Shards are the records of all shards of the exploration that begins with seed first and has so many shards.
func (c *Corpus) Shards(ctx context.Context, first uint64, of int) (all []ShardRecord, err error) {
	err = each(ctx, c, shardsFolder, nil, func(r ShardRecord) {
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

func (c *Corpus) write(ctx context.Context, key string, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = c.bucket.WriteAll(ctx, key, append(text, '\n'), nil)
	}
	if err != nil {
		return fmt.Errorf("writing %s to the corpus: %w", key, err)
	}
	return nil
}

// each reads every object in a folder but those in skip. One that is not JSON, such as the part that a lost machine has
// written, is left out: its shard writes it again.
func each[T any](ctx context.Context, c *Corpus, folder string, skip map[string]bool, add func(T)) error {
	list := c.bucket.List(&blob.ListOptions{Prefix: folder})
	for {
		object, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing the corpus: %w", err)
		}
		if !strings.HasSuffix(object.Key, ".json") || skip[object.Key] {
			continue
		}
		text, err := c.bucket.ReadAll(ctx, object.Key)
		if gcerrors.Code(err) == gcerrors.NotFound {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s of the corpus: %w", object.Key, err)
		}
		var v T
		if json.Unmarshal(text, &v) == nil {
			add(v)
		}
	}
}
