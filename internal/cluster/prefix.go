package cluster

import (
	"crypto/rand"
	"strings"
)

// AllPrefixes begins the keys of every run.
const AllPrefixes = "lockchaos:"

// NewPrefix is the prefix of a new run's keys; no other run has it.
func NewPrefix() string { return AllPrefixes + strings.ToLower(rand.Text()[:nameLength]) + ":" }

// nameLength is the length of the part of a prefix that is drawn for each run: letters and digits.
const nameLength = 10

// IsPrefix reports whether a run may have that prefix, as [NewPrefix] makes it.
func IsPrefix(prefix string) bool {
	rest, begins := strings.CutPrefix(prefix, AllPrefixes)
	name, ends := strings.CutSuffix(rest, ":")
	return begins && ends && len(name) == nameLength && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
