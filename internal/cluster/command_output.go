package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// RoleNamed is the role in a history that a word of the user's servers stands for; "" if none.
func RoleNamed(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "leader", "master", "primary":
		return "master"
	case "follower", "slave", "replica", "standby", "secondary":
		return "slave"
	}
	return ""
}

// maxSeconds is far in the future; milliseconds since 1970 are more.
const maxSeconds = 1 << 40

// ParseSeconds reads seconds since 1970, as the program of topology.clock prints them.
func ParseSeconds(out []byte) (time.Time, error) {
	seconds, err := strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
	if err != nil || !(math.Abs(seconds) < maxSeconds) {
		return time.Time{}, fmt.Errorf("topology.clock printed %.60q, not seconds since 1970", bytes.TrimSpace(out))
	}
	return time.UnixMicro(int64(seconds * 1e6)), nil
}

// printedHold is a lock in the output of topology.sample.
type printedHold struct {
	Owner   string   `json:"owner"`
	Owners  []string `json:"owners"`
	Count   int      `json:"count"`
	Permits int      `json:"permits"`
	TTL     *int64   `json:"ttl_ms"` // nil: the hold does not expire
	Token   uint64   `json:"token"`
}

// ParseHolders reads {"orders": {"owner": "a", "ttl_ms": 1500}}: the locks that are held.
func ParseHolders(out []byte) (map[string]history.KeyState, error) {
	read := json.NewDecoder(bytes.NewReader(out))
	read.DisallowUnknownFields()
	var held map[string]printedHold
	if err := read.Decode(&held); err != nil {
		return nil, fmt.Errorf("topology.sample printed %.60q: %w", bytes.TrimSpace(out), err)
	}
	if _, err := read.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("topology.sample printed more than one object")
	}
	keys := map[string]history.KeyState{}
	for name, h := range held {
		state := history.KeyState{
			Owner: h.Owner, Owners: slices.Sorted(slices.Values(h.Owners)), Count: h.Count, Permits: h.Permits,
			TTL: -1, Token: h.Token,
		}
		if h.Owner == "" && len(h.Owners) > 0 {
			state.Owner = state.Owners[0]
		}
		if h.TTL != nil {
			state.TTL = time.Duration(*h.TTL) * time.Millisecond
		}
		keys[name] = state
	}
	return keys, nil
}
