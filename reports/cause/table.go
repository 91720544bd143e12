package cause

import (
	"slices"

	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Mechanisms that the code names.
const (
	ForgottenInRestart = "forgotten-in-restart"
	faultBetween       = "fault-between"
	unknownCause       = "unknown"
)

// mechanisms is the table, special causes before general ones: of those that fit
// the data, the first is the cause. The last two fit always.
func mechanisms() []mechanism {
	return slices.Concat(requestMechanisms(), takeoverMechanisms(), nodeMechanisms(), replyMechanisms(),
		[]mechanism{{Name: faultBetween, find: findBetween}, {Name: unknownCause, find: findUnknown}})
}

// requestMechanisms: a holder is stalled or cut off, or requests are executed twice, too late, or for another owner.
func requestMechanisms() []mechanism {
	return []mechanism{
		{"stalled-holder", findStall, []evidence.Advice{{
			Text: "No lease prevents this: a paused client cannot notice that its lease has expired, and its watchdog is " +
				"paused with it (Kleppmann 2016). A longer lease makes it rarer.",
			Cost: "after a crash, others wait for the rest of the longer lease",
		}}},
		{"cut-off-holder", findCutOff, []evidence.Advice{{
			Text: "A client that is cut off can notice: measure the validity on the client's own clock, from its last request " +
				"that was answered, and stop working when it ends.",
			Cost: "work stops although the lock may still be free; a client that is paused cannot notice",
		}}},
		{"executed-twice", findExecutedTwice, []evidence.Advice{{
			Text: "Send an id with each request and store it at the server, with the reply, so that a request that arrives " +
				"twice has no second effect; and delete a key only if its value is that of the client's own hold.",
			Cost: "a field or a key for each hold, and a script in place of a single command",
		}}},
		{"foreign-release", findForeignRelease, []evidence.Advice{{
			Text: "Store a value that is unique to the hold, and delete the key only if it still has it, in one script " +
				"(compare and delete).",
			Cost: "a script instead of DEL",
		}}},
		{"granted-too-late", findSlowGrant, []evidence.Advice{{
			Text: "Count the validity from before the first request, and release the lock if no validity is left (RedLock, " +
				"step 3).",
			Cost: "an acquire fails when a majority is slow",
		}}},
	}
}

// takeoverMechanisms: other servers grant the lock than those that had granted it before.
func takeoverMechanisms() []mechanism {
	return []mechanism{
		{"forgotten-by-majority", findForgottenMajority, []evidence.Advice{{
			Text: "A master must not come back without its grants: `appendonly yes` with `appendfsync always`.",
			Cost: "an fsync for each grant, renewal and release on every master",
		}, {
			Text: "Or keep a restarted master away from clients for longer than the longest lease.",
			Cost: "one master fewer meanwhile",
		}}},
		{"clock-in-majority", findAheadMajority, []evidence.Advice{{
			Text: "Two majorities may share only one master, so one wrong clock is enough: slew clocks " +
				"(`chronyd`, `ntpd -x`) and never step them while locks are held.",
			Cost: "a clock that is far off takes a long time to correct",
		}, {
			Text: "Or require one grant more than a majority: a single wrong clock then does not decide.",
			Cost: "of five masters only one may be down, instead of two",
		}}},
		{"forgotten-by-ensemble", findForgottenEnsemble, []evidence.Advice{{
			Text: "The ensemble keeps only what a majority has on disk. Replace disks one member at a time, and wait until " +
				"each has copied the leader's data before replacing the next.",
			Cost: "maintenance takes as many steps as there are members",
		}, {
			Text: "After the loss of a majority of the disks, block clients for as long as the longest session timeout or " +
				"lease, so that every hold that was granted before has expired.",
			Cost: "no lock is granted meanwhile",
		}}},
		{"moved-address", findMovedAddress, []evidence.Advice{{
			Text: "Make a grant wait for a replica (`WAIT 1`), or set `min-replicas-to-write 1` with a short " +
				"`min-replicas-max-lag`: the replicas follow the new master, so the old one can no longer grant the lock.",
			Cost: "each grant takes a replication round trip, and fails while no replica is attached",
		}, {
			Text: "Resolve the name at every connect, with a short time to live in every cache " +
				"(`networkaddress.cache.ttl` of a JVM), and close a client's connections when the address has changed.",
			Cost: "more lookups; clients use the old address for a shorter time, but still for some time",
		}, quorumAdvice()}},
		{"split-brain", findSplitBrain, []evidence.Advice{{
			Text: "Set `min-replicas-to-write 1` and a short `min-replicas-max-lag`: a master that is cut off from its " +
				"replicas then refuses to grant the lock.",
			Cost: "no grants while no replica is attached, such as right after a failover",
		}, quorumAdvice()}},
		{"replica-clock-ahead", findAheadReplica, []evidence.Advice{{
			Text: "Monitor the clocks of all servers, slew them instead of stepping them, and keep Sentinel from promoting a " +
				"server whose clock is off by more than the safety margin of the leases (`replica-priority 0`).",
			Cost: "monitoring; fewer servers that can take over",
		}, quorumAdvice()}},
		{"lost-in-failover", findFailover, []evidence.Advice{{
			Text: "Make a grant wait for all replicas that may be promoted: `WAIT n` on the connection of the write (on " +
				"another connection it waits for other writes), and give the lock back if fewer acknowledge it. `WAIT` for some " +
				"of them is not enough, because another one may be promoted.",
			Cost: "each grant takes a replication round trip, and fails while a replica is away",
		}, quorumAdvice()}},
	}
}

// nodeMechanisms: what the lock relies on is gone or ends early, although servers and clients are the same as before.
func nodeMechanisms() []mechanism {
	return []mechanism{
		{ForgottenInRestart, findRestart, []evidence.Advice{{
			Text: "A node that forgets its grants breaks the lock: use `appendonly yes` with `appendfsync always`.",
			Cost: "an fsync for each grant, renewal and release",
		}, {
			Text: "Or keep a restarted node away from clients for longer than the longest lease (the delayed restart of " +
				"RedLock).",
			Cost: "the node is missing meanwhile, and a clock has to measure that time",
		}}},
		{"key-removed", findDeleted, []evidence.Advice{{
			Text: "Keep locks on a server of their own, with `maxmemory-policy noeviction` and without FLUSHALL, FLUSHDB and " +
				"DEL for operators (ACL).",
			Cost: "one more server; a full memory then refuses new locks instead of dropping old ones",
		}}},
		// That of ZooKeeper and etcd, which evict nothing and have no FLUSHALL.
		{"key-removed", findDeletedNode, []evidence.Advice{{
			Text: "Allow only the clients of the lock to delete its nodes: ACLs on the nodes (ZooKeeper), or authentication " +
				"and a role for their range of keys (etcd).",
			Cost: "credentials for each client; a client of the lock can still delete what another one holds",
		}, {
			Text: "Use fencing at the guarded resource as well: a holder that does not watch its own node is not notified " +
				"of the deletion, and one that does may already have decided what to write.",
			Cost: "the resource has to store and compare the token of every write",
		}}},
		{"expired-early", findEarlyExpiry, []evidence.Advice{{
			Text: "Redis counts leases on the wall clock: slew clocks (`chronyd`, `ntpd -x`) and never step them while locks " +
				"are held.",
			Cost: "a clock that is far off takes a long time to correct",
		}, quorumAdvice()}},
		{"client-clocks", findClientClocks, []evidence.Advice{{
			Text: "Let the server end the lease (`SET key value NX PX lease`): then clocks do not have to agree.",
			Cost: "none: it is one command instead of two",
		}}},
		{"outlived-lease", findOutlived, []evidence.Advice{{
			Text: "Renew the lock while the work lasts (a watchdog), or request a longer lease, and stop working when the " +
				"context of the hold ends.",
			Cost: "a request for each renewal; after a crash, others wait for the rest of a longer lease",
		}}},
		{"owner-name-reused", findReusedName, []evidence.Advice{{
			Text: "Draw a random id when the process starts, and begin the names of its owners with it. A name made of a host " +
				"name, a process id or a counter can recur after a restart.",
			Cost: "after a crash, the new process waits like any other client until the lease of the dead one has ended",
		}, {
			Text: "Or use a lock that is not reentrant: it refuses an owner that already holds it.",
			Cost: "an owner cannot acquire it again while it holds it",
		}}},
	}
}

// replyMechanisms: a reply, a message or a release is lost, late or not what it says.
func replyMechanisms() []mechanism {
	return []mechanism{
		{"counted-twice", findCountedTwice, []evidence.Advice{{
			Text: "Send an id with each request and store it with the hold, so that a request that is sent again counts once; " +
				"or do not send commands again when no reply came (`MaxRetries -1`).",
			Cost: "a field of the key for each hold; without retries, an acquire of unknown outcome",
		}}},
		{"left-behind", findLeftBehind, []evidence.Advice{{
			Text: "When an acquire gives up without a reply, remove what it may have created, and retry until a server " +
				"replies. The client has to choose the id of the request, so that it can find what the request created.",
			Cost: "a request for each acquire that gives up; until it is answered, the outcome of the acquire is unknown",
		}}},
		{"no-lease", findNoLease, []evidence.Advice{{
			Text: "Set the lease in the command that sets the key (`SET key value NX PX lease`), so that the server ends the " +
				"hold of a client that died or is cut off.",
			Cost: "work that takes longer than the lease has to renew it",
		}}},
		{"release-lost-in-failover", findReleaseLost, []evidence.Advice{{
			Text: "Give each hold a lease, also each permit of a semaphore: a hold whose release is lost in a failover then " +
				"ends with its lease.",
			Cost: "work that takes longer than the lease has to renew it",
		}}},
		{"message-lost", findLostMessage, []evidence.Advice{{
			Text: "Pub/sub delivers at most once: a waiter has to ask for the lock from time to time, with or without a " +
				"message.",
			Cost: "a request per waiter and interval",
		}}},
		{"split-votes", findSplitVotes, []evidence.Advice{{
			Text: "Retry after a random delay, several times as long as it takes to ask all masters, so that one client " +
				"asks alone.",
			Cost: "some of the delays are longer than needed",
		}, {
			Text: "Ask all masters in parallel: the shorter an attempt is, the less often two attempts overlap.",
			Cost: "a connection to each master is in use at the same time",
		}}},
		{"loss-confirmed", findConfirmedLoss, []evidence.Advice{{
			Text: "A release must report success only if it found the hold, or a record that the same release was executed " +
				"before. If the key is gone, the hold was lost.",
			Cost: "a record of each release, kept for as long as a release may be sent again",
		}}},
		{"late-reply-accepted", findLateGrant, []evidence.Advice{{
			Text: "Count the validity from before the request is sent, and release the lock if no validity is left when the " +
				"reply arrives.",
			Cost: "an acquire fails when its reply is late",
		}}},
		{"lease-shortened", findShortened, []evidence.Advice{{
			Text: "A re-entry, or the release of an inner level, must not shorten the lease: the key has to last until the " +
				"latest deadline that was promised to its owner.",
			Cost: "the script has to read the time to live before it sets it",
		}}},
		{"refused-by-own-key", findOwnKey, []evidence.Advice{{
			Text: "When a request is sent again, compare the stored value: if it is that of this acquire, the lock was " +
				"granted. An acquire that gives up has to remove what it may have set.",
			Cost: "a script instead of SET; a request for each acquire that gives up",
		}}},
		{"taken-over-twice", findTakenOverTwice, []evidence.Advice{{
			Text: "Acquire with one command that sets the key only if it is absent and lets the server end the lease " +
				"(`SET key value NX PX lease`), so that two clients cannot both read an expired value.",
			Cost: "none: it is one command instead of several",
		}}},
		{"foreign-data", findForeignData, []evidence.Advice{{
			Text: "Give the keys of locks a prefix that no other program uses, and check the type and format of a value " +
				"before overwriting or deleting it.",
			Cost: "a script instead of a single command",
		}}},
	}
}

func quorumAdvice() evidence.Advice {
	return evidence.Advice{
		Text: "Do not rely on one master: a quorum of independent masters with `appendfsync always`, or with restarts " +
			"delayed by more than the longest lease, survives the loss of any minority.",
		Cost: "five independent servers; each grant asks all of them",
	}
}
