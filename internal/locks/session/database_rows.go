package session

import (
	"errors"
	"fmt"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// DatabaseRows describe the locks on PostgreSQL and MySQL. Packages locks/postgres and locks/mysql open them: only
// programs that do so link their drivers. None reports a loss: a session that has ended is noticed with the next
// request. The locks of sessions and transactions do not keep their grants when the server is killed.
func DatabaseRows() []client.Spec {
	row := func(kind, name, doc, source string, can promise.Set) client.Spec {
		return client.Spec{
			Name: name, Doc: doc, Source: source, Topologies: []string{kind}, Can: promise.Try | can,
			CheckOptions: native.CheckNoOptions,
			Definite: func(err error) bool {
				return errors.Is(err, lock.ErrHeld) || errors.Is(err, client.ErrNotHeld) || errors.Is(err, native.ErrNoSession)
			},
			Code: native.Code,
		}
	}
	const session, leased = promise.Unleased | promise.Wakes, promise.Renew | promise.Fenced | promise.KeepsGrants
	const postgres, mysql = topology.Postgres, topology.MySQL
	rows := []client.Spec{
		row(postgres, "pg-advisory", "PostgreSQL's advisory lock of a session, which ends with its connection; its holder "+
			"is not notified.", "PostgreSQL documentation, Explicit Locking, Advisory Locks", session),
		row(postgres, "pg-advisory-xact", "PostgreSQL's advisory lock of a transaction, which stays open while the lock is "+
			"held.", "PostgreSQL documentation, Explicit Locking, Advisory Locks", session),
		row(postgres, "pg-row", "SELECT … FOR UPDATE: a transaction locks a row and stays open while the lock is held.",
			"PostgreSQL documentation, Explicit Locking, Row-Level Locks", session),
		row(mysql, "mysql-get-lock", "GET_LOCK of MariaDB and MySQL, which ends with its connection; its holder is not "+
			"notified.", "MySQL Reference Manual, Locking Functions", session),
		row(mysql, "mysql-row", "SELECT … FOR UPDATE of InnoDB: a transaction locks a row and stays open while the lock is "+
			"held.", "MySQL Reference Manual, InnoDB Locking Reads", session),
	}
	unique := row(postgres, "sql-unique", "a row with a unique name: INSERT acquires the lock and DELETE releases it; a "+
		"holder that crashes keeps it forever.", "articles on database locks: a unique index",
		promise.Unleased|promise.KeepsGrants)
	lease := row(postgres, "sql-lease", "a row with an owner, a fencing token, and an end by the server's clock, which "+
		"one statement compares and replaces.", "ShedLock, JdbcTemplateLockProvider with usingDbTime", leased)
	skewed := row(postgres, "sql-lease-client-clock", "a row whose lease ends by the clock of its holder, compared with "+
		"the clock of the next client.", "ShedLock, JdbcTemplateLockProvider without usingDbTime", leased)
	unique.Topologies, lease.Topologies = []string{postgres, mysql}, []string{postgres, mysql}
	lease.CheckOptions, skewed.CheckOptions = checkSkew, checkSkew
	return append(rows, unique, lease, skewed)
}

// checkSkew is the CheckOptions of the locks whose lease ends by a clock.
func checkSkew(options map[string]string) error {
	for name := range options {
		if name != native.OptionSkew {
			return fmt.Errorf("unknown option %q; this lock has %s", name, native.OptionSkew)
		}
	}
	_, err := native.ClockOf(options, 0)
	return err
}
