package cause

import "slices"

// Mechanisms that the code names.
const (
	ForgottenInRestart = "forgotten-in-restart"
	faultBetween       = "fault-between"
	Unknown            = "unknown"
)

// mechanisms is the table, special causes before general ones: the first that fits the data is the cause. The last two
// fit always.
func mechanisms() []mechanism {
	return slices.Concat(requestMechanisms(), takeoverMechanisms(), nodeMechanisms(), replyMechanisms(),
		[]mechanism{{Name: faultBetween, find: findBetween}, {Name: Unknown, find: findUnknown}})
}

// requestMechanisms: a holder is stalled or cut off, or requests are executed twice, too late, or for another owner.
func requestMechanisms() []mechanism {
	return []mechanism{
		{"stolen", findStolen},
		{"not-recorded", findUnrecorded},
		{"stalled-holder", findStall},
		{"cut-off-holder", findCutOff},
		{"executed-twice", findExecutedTwice},
		{"foreign-release", findForeignRelease},
		{"granted-too-late", findSlowGrant},
	}
}

// takeoverMechanisms: other servers grant the lock than before.
func takeoverMechanisms() []mechanism {
	return []mechanism{
		{"forgotten-by-majority", findForgottenMajority},
		{"clock-in-majority", findAheadMajority},
		{"forgotten-by-ensemble", findForgottenEnsemble},
		{"moved-address", findMovedAddress},
		{"split-brain", findSplitBrain},
		{"replica-clock-ahead", findAheadReplica},
		{"lost-in-failover", findFailover},
	}
}

// nodeMechanisms: data on which the lock relies are gone or end early, although servers and clients are the same as
// before.
func nodeMechanisms() []mechanism {
	return []mechanism{
		{ForgottenInRestart, findRestart},
		{"key-removed", findDeleted},
		// That of ZooKeeper and etcd, which evict nothing and have no FLUSHALL.
		{"key-removed", findDeletedNode},
		{"expired-early", findEarlyExpiry},
		{"session-ended", findSessionEnded},
		{"client-clocks", findClientClocks},
		{"outlived-lease", findOutlived},
		{"owner-name-reused", findReusedName},
	}
}

// replyMechanisms: a reply, a message or a release is lost, late or untrue.
func replyMechanisms() []mechanism {
	return []mechanism{
		{"counted-twice", findCountedTwice},
		{"left-behind", findLeftBehind},
		{"no-lease", findNoLease},
		{"release-lost-in-failover", findReleaseLost},
		{"message-lost", findLostMessage},
		{"split-votes", findSplitVotes},
		{"loss-confirmed", findConfirmedLoss},
		{"late-reply-accepted", findLateGrant},
		{"lease-shortened", findShortened},
		{"refused-by-own-key", findOwnKey},
		{"demoted-server", findDemoted},
		{"taken-over-twice", findTakenOverTwice},
		{"foreign-data", findForeignData},
		{"overwritten", findOverwritten},
	}
}
