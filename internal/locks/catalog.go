// Package locks is the catalog of the locks that `chaos` can drive without a program of the user: the locks of this
// repository on Redis, ZooKeeper and etcd, the mutexes of two client libraries, locks on PostgreSQL and MySQL, and the
// locks of well-known articles.
// Each is opened behind the interface of package client.
//
// Read [Catalog] first.
package locks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/session"
	"github.com/lockchaos/lockchaos/promise"
)

// Catalog returns every lock that has a native client, in the order in which people read it. Locks on ZooKeeper,
// etcd and databases have no Open: see package openable.
func Catalog() []client.Spec {
	others := slices.Concat(session.ZooKeeperRows(), session.EtcdRows(), session.DatabaseRows())
	rows := withoutReentry(slices.Concat(
		[]client.Spec{reentrantSpec(), redlockSpec()}, kindSpecs(), others, historicSpecs()))
	for i, row := range rows {
		rows[i].CanWith = func(options map[string]string) promise.Set { return canWith(row, options) }
	}
	return rows
}

// Lookup returns the lock of that name: a row of the catalog, or one with Command for a name with [client.ExecPrefix].
func Lookup(name string) (client.Spec, error) {
	if line, own := strings.CutPrefix(name, client.ExecPrefix); own {
		if command := strings.Fields(line); len(command) > 0 {
			return client.Spec{Name: name, Doc: "a client of your own: " + command[0], Command: command}, nil
		}
	}
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return client.Spec{}, fmt.Errorf("unknown lock %q", name)
}
