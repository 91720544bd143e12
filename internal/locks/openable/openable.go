// Package openable looks up the locks of the catalog so that each can be opened. It links the clients of ZooKeeper,
// etcd and databases, which package locks does not.
package openable

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/internal/locks/etcd"
	"github.com/lockchaos/lockchaos/internal/locks/mysql"
	"github.com/lockchaos/lockchaos/internal/locks/postgres"
	"github.com/lockchaos/lockchaos/internal/locks/zookeeper"
)

// Lookup is [locks.Lookup] with Open for every lock that is not a program.
func Lookup(name string) (client.Spec, error) {
	row, err := locks.Lookup(name)
	return mysql.Opens(postgres.Opens(etcd.Opens(zookeeper.Opens(row)))), err
}
