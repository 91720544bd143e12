package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// part sets the seeds of the shard and opens the corpus, if there is one.
func (o exploreOptions) part(e *explore.Options) error {
	shard, err := suite.ParseShard(o.shard)
	if err != nil {
		return usage(err)
	}
	index, of := max(shard.Index, 1), max(shard.Of, 1)
	e.First, e.Step = o.first+uint64(index)-1, uint64(of)
	if e.Seeds = (o.seeds - index + of) / of; e.Seeds < 1 {
		return usage(fmt.Errorf("shard %s has no seed of %d", shard, o.seeds))
	}
	e.Shard = explore.ShardRecord{First: o.first, Index: index, Of: of}
	if o.corpus == "" {
		return nil
	}
	folder, err := corpusFolder(o.corpus)
	if err != nil {
		return usage(fmt.Errorf("--corpus: %w", err))
	}
	if e.Corpus, err = explore.OpenCorpus(folder, e.Scenario); err != nil {
		return &codeError{exitEnvironment, err}
	}
	records, err := e.Corpus.Shards(o.first, of)
	for _, r := range records {
		if r.Index == index {
			e.Shard = r
		}
	}
	if err != nil {
		return &codeError{exitEnvironment, err}
	}
	return nil
}

// corpusFolder is the folder of a corpus, which may be written as file:///DIR.
func corpusFolder(text string) (string, error) {
	if !strings.Contains(text, "://") {
		return text, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", err
	case u.Scheme != "file":
		return "", fmt.Errorf("%s is not a folder: mount the bucket and name the folder", text)
	case u.Host != "" || u.Path == "":
		return "", fmt.Errorf("%s is not a folder of this machine: file:///DIR has three slashes", text)
	}
	return filepath.FromSlash(u.Path), nil
}

func (o exploreOptions) shardText() string {
	if o.shard == "" {
		return ""
	}
	return ", shard " + o.shard
}

// corpus is the progress of all shards, as --json prints it.
type corpus struct {
	Covered int                   `json:"covered"` // seeds, each of one shard
	Of      int                   `json:"of"`      // shards
	States  int                   `json:"states"`
	Shards  []explore.ShardRecord `json:"shards"`
}

// corpusState reads the corpus at the end of an exploration; nil if there is none.
func corpusState(e explore.Options) (*corpus, error) {
	if e.Corpus == nil {
		return nil, nil
	}
	shards, err := e.Corpus.Shards(e.Shard.First, e.Shard.Of)
	states, statesErr := e.Corpus.States()
	return &corpus{explore.Covered(shards), e.Shard.Of, len(states), shards}, errors.Join(err, statesErr)
}

func (c *corpus) String() string {
	unsafe := 0
	for _, r := range c.Shards {
		unsafe += r.Unsafe
	}
	return fmt.Sprintf("corpus: %s covered by %d of %s, %s unsafe, %s", format.Count(c.Covered, "seed"), len(c.Shards),
		format.Count(c.Of, "shard"), format.Count(unsafe, "run"), format.Count(c.States, "state"))
}
