package suite

import (
	"fmt"
	"strconv"
	"strings"
)

// Shard is a part of a suite: every Of-th row, beginning with the Index-th. The zero value is the whole.
type Shard struct {
	Index int `json:"index"` // from 1
	Of    int `json:"of"`
}

// ParseShard parses "2/4". An empty text is the whole.
func ParseShard(text string) (Shard, error) {
	if text == "" {
		return Shard{1, 1}, nil
	}
	index, of, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(of)
	if !ok || err1 != nil || err2 != nil || i < 1 || i > n {
		return Shard{}, fmt.Errorf("shard %q: expected INDEX/COUNT with INDEX from 1 to COUNT, such as 2/4", text)
	}
	return Shard{i, n}, nil
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// missing is the note that a merged suite lacks the shard.
func (s Shard) missing() string { return fmt.Sprintf("shard %s is missing", s) }

// has reports whether the n-th row, from 0, is in the shard.
func (s Shard) has(n int) bool { return s.Of <= 1 || n%s.Of == s.Index-1 }
