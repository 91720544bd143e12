// Package advice has the advice against violations, by the mechanism of their causes.
package advice

import (
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Against is the advice against a mechanism of package cause, the best first; nil: there is none.
func Against(mechanism string) []evidence.Advice {
	for _, all := range []map[string][]evidence.Advice{ofRequests(), ofTakeovers(), ofNodes(), ofReplies(), ofTables()} {
		if list := all[mechanism]; list != nil {
			return list
		}
	}
	return nil
}

// For is the advice against violations of a property whose mechanism is not known; nil: there is none.
func For(p checker.Property) []evidence.Advice {
	switch p {
	case checker.Exclusion:
		return []evidence.Advice{{
			Text: "Let one command or script find out whether the lock is free and take it (`SET key value NX PX lease`), " +
				"with a value that is unique to the hold, and release it only if the key still has that value.",
		}}
	case checker.Permits:
		return []evidence.Advice{{
			Text: "In one script, compare the limit with the permits of all holds and those of the request together, and " +
				"store with each hold how many it has: a hold may have several.",
		}}
	case checker.Recovery:
		return Against("no-lease")
	}
	return nil
}

// ofRequests: a holder is stalled or cut off, or requests are executed twice, too late, for another owner, or refused.
func ofRequests() map[string][]evidence.Advice {
	return map[string][]evidence.Advice{
		"stolen": {{
			Text: "Compare before you renew: extend the lease only if the key still has the value of the hold, in one script, " +
				"and otherwise report that the hold is lost. `SET key value XX PX lease` takes the lock from its next holder.",
			Cost: "a script instead of SET or PEXPIRE",
		}},
		"overwritten": {{
			Text: "Acquire with one command that sets the key only if it is absent and lets the server end the lease " +
				"(`SET key value NX PX lease`): between GET and SET another client can set it.",
			Cost: "none: it is one command instead of two",
		}},
		"not-recorded": {{
			Text: "Enter the protected block only if the server has granted the lock: check the result of the command that " +
				"takes it, also where a wait ends without the lock or an error is caught.",
			Cost: "none: it is a check of a result",
		}},
		"stalled-holder": {{
			Text: "No lease prevents this: a paused client cannot notice that its lease has expired, and its watchdog is " +
				"paused with it (Kleppmann 2016). A longer lease makes it rarer.",
			Cost: "after a crash, others wait for the rest of the longer lease",
		}},
		"cut-off-holder": {{
			Text: "A client that is cut off can notice: measure the validity on the client's own clock, from its last request " +
				"that was answered, and stop working when it ends.",
			Cost: "work stops although the lock may still be free; a client that is paused cannot notice",
		}},
		"executed-twice": {{
			Text: "Send an id with each request and store it at the server, with the reply, so that a request that arrives " +
				"twice has no second effect; and delete a key only if its value is that of the client's own hold.",
			Cost: "a field or a key for each hold, and a script in place of a single command",
		}},
		"foreign-release": {{
			Text: "Store a value that is unique to the hold, and delete the key only if it still has it, in one script " +
				"(compare and delete).",
			Cost: "a script instead of DEL",
		}},
		"demoted-server": {{
			Text: "When a server refuses a request because it is a replica (READONLY), close the connection, look the name of " +
				"the master up again, connect, and send the request again; do so for renewals and releases as well.",
			Cost: "a new connection for each change of the master",
		}},
		"granted-too-late": {{
			Text: "Count the validity from before the first request, and release the lock if no validity is left (RedLock, " +
				"step 3).",
			Cost: "an acquire fails when a majority is slow",
		}},
	}
}

// ofTakeovers: other servers grant the lock than before.
func ofTakeovers() map[string][]evidence.Advice {
	return map[string][]evidence.Advice{
		"forgotten-by-majority": {{
			Text: "A master must not come back without its grants: `appendonly yes` with `appendfsync always`.",
			Cost: "an fsync for each grant, renewal and release on every master",
		}, {
			Text: "Keep a restarted master away from clients for longer than the longest lease.",
			Cost: "one master fewer meanwhile",
		}},
		"clock-in-majority": {{
			Text: "Two majorities may share only one master, so one wrong clock is enough: slew clocks " +
				"(`chronyd`, `ntpd -x`) and never step them while locks are held.",
			Cost: "a clock that is far off takes a long time to correct",
		}, {
			Text: "Require one grant more than a majority: a single wrong clock then does not decide.",
			Cost: "of five masters only one may be down, instead of two",
		}},
		"forgotten-by-ensemble": {{
			Text: "The ensemble keeps only what a majority has on disk. Replace disks one member at a time, and wait until " +
				"each has copied the leader's data before replacing the next.",
			Cost: "maintenance takes as many steps as there are members",
		}, {
			Text: "After the loss of a majority of the disks, block clients for as long as the longest session timeout or " +
				"lease, so that every hold that was granted before has expired.",
			Cost: "no lock is granted meanwhile",
		}},
		// The members keep their disks, but do not sync them.
		"forgotten-unsynced": {{
			Text: "Acknowledge a write only when a majority has it on disk: ZooKeeper's `forceSync=yes`, etcd without " +
				"`--unsafe-no-fsync`. Both are the defaults.",
			Cost: "an fsync on a majority of the members for each write",
		}, {
			Text: "Otherwise, after a power loss that hit a majority, block clients for as long as the longest " +
				"session timeout or lease, so that every hold that was granted before has expired.",
			Cost: "no lock is granted meanwhile",
		}},
		"moved-address": {{
			Text: "Make a grant wait for a replica (`WAIT 1`), or set `min-replicas-to-write 1` with a short " +
				"`min-replicas-max-lag`: the replicas follow the new master, so the old one can no longer grant the lock.",
			Cost: "each grant takes a replication round trip, and fails while no replica is attached",
		}, {
			Text: "Resolve the name at every connect, with a short time to live in every cache " +
				"(`networkaddress.cache.ttl` of a JVM), and close a client's connections when the address has changed.",
			Cost: "more lookups; clients use the old address for a shorter time, but still for some time",
		}, quorum()},
		"split-brain": {{
			Text: "Set `min-replicas-to-write 1` and a short `min-replicas-max-lag`: a master that is cut off from its " +
				"replicas then refuses to grant the lock.",
			Cost: "no grants while no replica is attached, such as right after a failover",
		}, quorum()},
		"replica-clock-ahead": {{
			Text: "Monitor the clocks of all servers, slew them instead of stepping them, and keep Sentinel from promoting a " +
				"server whose clock is off by more than the safety margin of the leases (`replica-priority 0`).",
			Cost: "monitoring; fewer servers that can take over",
		}, quorum()},
		"lost-in-failover": {{
			Text: "Make a grant wait for all replicas that may be promoted: `WAIT n` on the connection of the write (on " +
				"another connection it waits for other writes), and give the lock back if fewer acknowledge it. `WAIT` for some " +
				"of them is not enough, because another one may be promoted.",
			Cost: "each grant takes a replication round trip, and fails while a replica is away",
		}, quorum()},
	}
}

// ofNodes: data on which the lock relies are gone or end early.
func ofNodes() map[string][]evidence.Advice {
	return map[string][]evidence.Advice{
		"forgotten-in-restart": {{
			Text: "A node that forgets its grants breaks the lock: use `appendonly yes` with `appendfsync always`.",
			Cost: "an fsync for each grant, renewal and release",
		}, {
			Text: "Keep a restarted node away from clients for longer than the longest lease (the delayed restart of " +
				"RedLock).",
			Cost: "the node is missing meanwhile, and a clock has to measure that time",
		}},
		"key-removed": {{
			Text: "Keep locks on a server of their own, with `maxmemory-policy noeviction` and without FLUSHALL, FLUSHDB and " +
				"DEL for operators (ACL).",
			Cost: "one more server; a full memory then refuses new locks instead of dropping old ones",
		}},
		"node-removed": {{
			Text: "Allow only the clients of the lock to delete its nodes: ACLs on the nodes (ZooKeeper), or authentication " +
				"and a role for their range of keys (etcd).",
			Cost: "credentials for each client; a client of the lock can still delete what another one holds",
		}, {
			Text: "Use fencing at the guarded resource as well: a holder that does not watch its own node is not notified " +
				"of the deletion, and one that does may already have decided what to write.",
			Cost: "the resource has to store and compare the token of every write",
		}},
		"expired-early": {{
			Text: "Redis counts leases on the wall clock: slew clocks (`chronyd`, `ntpd -x`) and never step them while locks " +
				"are held.",
			Cost: "a clock that is far off takes a long time to correct",
		}, quorum()},
		"client-clocks": {{
			Text: "Let the server end the lease (`SET key value NX PX lease`): then clocks do not have to agree.",
			Cost: "none: it is one command instead of two",
		}},
		"outlived-lease": {{
			Text: "Renew the lock while the work lasts (a watchdog), or request a longer lease, and stop working when the " +
				"context of the hold ends.",
			Cost: "a request for each renewal; after a crash, others wait for the rest of a longer lease",
		}},
		"owner-name-reused": {{
			Text: "Draw a random id when the process starts, and begin the names of its owners with it. A name made of a host " +
				"name, a process id or a counter can recur after a restart.",
			Cost: "after a crash, the new process waits like any other client until the lease of the dead one has ended",
		}, {
			Text: "Use a lock that is not reentrant: it refuses an owner that already holds it.",
			Cost: "an owner cannot acquire it again while it holds it",
		}},
	}
}

// ofReplies: a reply, a message or a release is lost, late or untrue.
func ofReplies() map[string][]evidence.Advice {
	return map[string][]evidence.Advice{
		"counted-twice": {{
			Text: "Send an id with each request and store it with the hold, so that a request that is sent again counts once; " +
				"or do not send commands again when no reply came (`MaxRetries -1`).",
			Cost: "a field of the key for each hold; without retries, an acquire of unknown outcome",
		}},
		"left-behind": {{
			Text: "When an acquire gives up without a reply, remove what it may have created, and retry until a server " +
				"replies. The client has to choose the id of the request, so that it can find what the request created.",
			Cost: "a request for each acquire that gives up; until it is answered, the outcome of the acquire is unknown",
		}},
		"no-lease": {{
			Text: "Set the lease in the command that takes the lock (`SET key value NX PX lease`), so that the server ends " +
				"the hold of a client that died or is cut off. In a semaphore, store the end of its lease with each permit, and " +
				"remove those that have ended before you count them.",
			Cost: "work that takes longer than the lease has to renew it",
		}},
		"release-lost-in-failover": {{
			Text: "Give each hold a lease, also each permit of a semaphore: a hold whose release is lost in a failover then " +
				"ends with its lease.",
			Cost: "work that takes longer than the lease has to renew it",
		}},
		"message-lost": {{
			Text: "Pub/sub delivers at most once: a waiter has to ask for the lock from time to time, with or without a " +
				"message.",
			Cost: "a request per waiter and interval",
		}},
		"split-votes": {{
			Text: "Retry after a random delay, several times as long as it takes to ask all masters, so that one client " +
				"asks alone.",
			Cost: "some of the delays are longer than needed",
		}, {
			Text: "Ask all masters in parallel: the shorter an attempt is, the less often two attempts overlap.",
			Cost: "a connection to each master is in use at the same time",
		}},
		"loss-confirmed": {{
			Text: "A release must report success only if it found the hold, or a record that the same release was executed " +
				"before. If the key is gone, the hold was lost.",
			Cost: "a record of each release, kept for as long as a release may be sent again",
		}},
		"late-reply-accepted": {{
			Text: "Count the validity from before the request is sent, and release the lock if no validity is left when the " +
				"reply arrives.",
			Cost: "an acquire fails when its reply is late",
		}},
		"lease-shortened": {{
			Text: "A re-entry, or the release of an inner level, must not shorten the lease: the key has to last until the " +
				"latest deadline that was promised to its owner.",
			Cost: "the script has to read the time to live before it sets it",
		}},
		"refused-by-own-key": {{
			Text: "When a request is sent again, compare the stored value: if it is that of this acquire, the lock was " +
				"granted. An acquire that gives up has to remove what it may have set.",
			Cost: "a script instead of SET; a request for each acquire that gives up",
		}},
		"taken-over-twice": {{
			Text: "Acquire with one command that sets the key only if it is absent and lets the server end the lease " +
				"(`SET key value NX PX lease`), so that two clients cannot both read an expired value.",
			Cost: "none: it is one command instead of several",
		}},
		"foreign-data": {{
			Text: "Give the keys of locks a prefix that no other program uses, and check the type and format of a value " +
				"before overwriting or deleting it.",
			Cost: "a script instead of a single command",
		}},
	}
}

// OfTables begins the name of a mechanism whose advice is another one if a relational database has the locks.
const OfTables = "table-"

// ofTables: the same mechanisms, and one of sessions, where a relational database has the locks.
func ofTables() map[string][]evidence.Advice {
	lease := evidence.Advice{
		Text: "Keep the hold in a row with an owner, the end of a lease and a token, which one statement compares and " +
			"replaces: it outlives the connection and the server, and its holder knows when it ends.",
		Cost: "waiters poll; work that takes longer than the lease has to renew it",
	}
	return map[string][]evidence.Advice{
		"session-ended": {lease, {
			Text: "Otherwise let the work ask the session before each step whether it still exists, and keep the timeouts of " +
				"idle sessions longer than the longest work.",
			Cost: "a statement for each step, and a rest of the danger: the session may end after the answer",
		}},
		OfTables + "forgotten-in-restart": {lease, {
			Text: "Let commits wait for the log on disk: `fsync` and `synchronous_commit` of PostgreSQL, " +
				"`innodb_flush_log_at_trx_commit=1` of MySQL.",
			Cost: "a write to disk for each grant and each release",
		}, {
			Text: "After the restore of a backup, or on a new server, keep clients away for longer than the longest lease, " +
				"and let the tokens continue above the last one.",
			Cost: "no lock is granted meanwhile",
		}},
		OfTables + "client-clocks": {{
			Text: "Let the database compare and set the end of the lease with its own clock (`clock_timestamp()` of " +
				"PostgreSQL, `UTC_TIMESTAMP()` of MySQL): then clocks of clients do not have to agree.",
			Cost: "none: it is the same statement",
		}},
		OfTables + "expired-early": {{
			Text: "The database counts leases on its wall clock: slew clocks (`chronyd`, `ntpd -x`) and never step them while " +
				"locks are held.",
			Cost: "a clock that is far off takes a long time to correct",
		}},
		OfTables + "lost-in-failover": {{
			Text: "Keep the hold in a row, and let its commit wait for the standby that may be promoted " +
				"(`synchronous_standby_names`). Locks of sessions, transactions and rows end with their session, and no session " +
				"moves to a standby.",
			Cost: "each grant takes a replication round trip, and none is possible while no standby follows the primary",
		}},
		OfTables + "split-brain": {{
			Text: "End the old primary before the standby is promoted (fencing of the node, a watchdog of the host), and let " +
				"commits wait for the standby (`synchronous_standby_names`): then a primary that is cut off grants nothing.",
			Cost: "nothing is granted while no standby follows the primary",
		}},
		OfTables + "replica-clock-ahead": {{
			Text: "Monitor the clocks of all servers, slew them instead of stepping them, and promote no server whose clock " +
				"is off by more than the safety margin of the leases.",
			Cost: "monitoring; fewer servers that can take over",
		}},
		OfTables + "no-lease":    {lease},
		OfTables + "left-behind": {lease},
	}
}

// quorum is advice against the loss of one master.
func quorum() evidence.Advice {
	return evidence.Advice{
		Text: "Do not rely on one master: a quorum of independent masters with `appendfsync always`, or with restarts " +
			"delayed by more than the longest lease, survives the loss of any minority.",
		Cost: "five independent servers; each grant asks all of them",
	}
}
