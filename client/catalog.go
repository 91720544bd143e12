package client

import (
	"fmt"
	"slices"
	"strings"
)

// Catalog returns every lock that has a native client, in the order in which people read it.
func Catalog() []Spec {
	ensembles := slices.Concat(zkSpecs(), []Spec{goZooKeeperSpec}, etcdSpecs(), []Spec{etcdSpec})
	rows := withoutReentry(slices.Concat(
		[]Spec{reentrantSpec(), redlockSpec()}, kindSpecs(), ensembles, historicSpecs()))
	for i, row := range rows {
		rows[i].CanWith = func(options map[string]string) Capabilities { return canWith(row, options) }
	}
	return rows
}

// Lookup returns the lock of that name: a row of the catalog, or one without Open for a name with [ExecPrefix].
func LookupLock(name string) (Spec, error) {
	if line, own := strings.CutPrefix(name, ExecPrefix); own {
		if command := strings.Fields(line); len(command) > 0 {
			return Spec{Name: name, Doc: "a client of your own: " + command[0], Command: command}, nil
		}
	}
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return Spec{}, fmt.Errorf("unknown lock %q", name)
}
